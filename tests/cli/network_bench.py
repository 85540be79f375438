"""Brokers of a network as operators see them: they answer by its map, and carry a step out after some looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.messages import ChangeBegun, Inspected
from holdfast.protocols.operating.operator import Unreachable
from holdfast.protocols.routing.network_map import (
    NetworkMap,
    NetworkMember,
    done,
    founding_map,
    planned,
)
from holdfast.protocols.routing.objections import objection
from holdfast.schemes.tree.operations import change_of

SPARE = "b8"


def address_of(name: str) -> str:
    return f"127.0.0.1:71{name[1:]:0>2}"


def peer_address_of(name: str) -> str:
    return f"127.0.0.1:72{name[1:]:0>2}"


def members(*names: str) -> list[NetworkMember]:
    return [NetworkMember(name, address_of(name), peer_address_of(name)) for name in names]


def site_text() -> str:
    """The chain that the brokers begin with, and the spare."""
    lines = ['[scheme]\nreliability = "buffered"\n']
    for name in ("b1", "b2", "b3", "b4", SPARE):
        lines.append(f'[[broker]]\nid = "{name}"\naddress = "{address_of(name)}"\n')
        lines.append(f'peer_address = "{peer_address_of(name)}"\ndata = "var/{name}"\n')
    lines.append("spare = true\n")
    lines += [f'[[link]]\nbetween = ["b{n}", "b{n + 1}"]\n' for n in (1, 2, 3)]
    return "".join(lines)


class Brokers:
    """A chain b1 to b4, and the spare b8, which runs. `running` are those that answer; `looks`: how often one of them
    is looked at until a step is done; `stalled` says why none goes on."""

    def __init__(self, looks: int = 1) -> None:
        chain = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]
        self.map: NetworkMap = founding_map(members("b1", "b2", "b3", "b4"), chain)
        self.founded = self.map
        self.running = {"b1", "b2", "b3", "b4", SPARE}
        self.named: dict[str, str] = {address_of(name): name for name in (*self.map.names, SPARE)}
        self.looks = looks
        self.stalled = ""
        self.asked: list[tuple[str, str, Mapping[str, str]]] = []  # whom, for what
        self.before_asked: Callable[[], None] = lambda: None
        self.detours = False
        self.stand_ins = True  # whether their site files have [standin]
        self.without_stand_ins: set[str] = set()  # those whose own has not
        self.forgets = 0  # so many times the change that is asked for is forgotten
        self.more_facts: dict[str, dict[str, str]] = {}
        self._looked = 0

    def desk(self, address: str) -> BrokerDesk:
        return Desk(self, address)

    def look(self) -> None:
        """One of them was looked at."""
        self._looked += 1
        if self.map.steps and not self.stalled and self._looked >= self.looks:
            self._looked, self.map = 0, done(self.map)

    def facts(self, name: str) -> dict[str, str]:
        network = self.map if name in self.map.names else self.founded
        keeper = network.find(network.keeper)
        assert keeper is not None
        facts = {
            "scheme": "tree",
            "network": "of this name",
            "reliability": "buffered",
            "map": str(network.number),
            "members": ", ".join(network.names),
            "keeper": network.keeper,
            "keeper_address": keeper.client_address,
            "links": ", ".join(f"{one}-{other}" for one, other in network.graph.links),
            "neighbours_up": "",
        }
        if self.stand_ins and name not in self.without_stand_ins:
            facts["stand_ins"] = "yes"
        if network.under_way:
            facts["change"] = network.under_way
            facts |= {"change_problem": self.stalled} if self.stalled else {}
        if network.besides:
            facts["sharing"] = ", ".join(f"{one.faulty} by {one.name}" for one in network.besides)
        resting = [(one.name, network.stand_in(one.name)) for one in network.resting]
        if resting:
            facts["resting"] = ", ".join(f"{one} by {by}" if by else one for one, by in resting)
        if name not in network.names:
            facts["problem"] = "no member of this network yet"
        return facts | self.more_facts.get(name, {})

    def change(self, name: str, action: str, told: Mapping[str, str]) -> str:
        self.before_asked()
        self.asked.append((name, action, told))
        change = change_of(action, told)
        if isinstance(change, str):
            return change
        if action in ("replace", "hand-back") and not self.stand_ins:
            return "nobody stands in for brokers of this network: the site file has no [standin]"
        problem = objection(self.map, change, self.detours)
        if self.forgets:
            self.forgets -= 1
        elif not problem:
            self.map, self._looked = planned(self.map, change), 0
        return problem


class Desk(BrokerDesk):
    def __init__(self, brokers: Brokers, address: str) -> None:
        super().__init__(address)
        self._brokers = brokers

    async def inspect(
        self, links: int = 100, application: bool = False, subscriptions: int = 0
    ) -> Inspected | Unreachable:
        name = self._brokers.named.get(self.address, "")
        if name not in self._brokers.running:
            return Unreachable("connection refused")
        facts = self._brokers.facts(name)
        self._brokers.look()
        return Inspected(1, name, 1, 1, {}, facts, 0)

    async def change(self, action: str, told: Mapping[str, str]) -> ChangeBegun | Unreachable:
        name = self._brokers.named.get(self.address, "")
        if name not in self._brokers.running:
            return Unreachable("connection refused")
        return ChangeBegun(1, self._brokers.change(name, action, told))
