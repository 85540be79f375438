"""Clients with direct links, under faults: whatever becomes of what is said there, all that is promised holds."""

from typing import Any, ClassVar

import msgspec
import pytest

from holdfast.broker.kit import BrokerKit
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.core.commands import Publish
from holdfast.schemes.paxos.draw import group_shape
from holdfast.schemes.paxos.fast import FastRounds
from holdfast.schemes.paxos.parts import PaxosKit
from holdfast.schemes.paxos.replica import Replica
from holdfast.sim import scenario as said
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import Broker, Client, Scenario
from holdfast.trace import schema
from holdfast.trace.schema import Row
from tests.tiers import one_always

SEEDS = range(1, 21)
SHAPE = group_shape()


class DropsDirect(Replica):
    """Says that it takes publications directly, and drops them. Clients say them again to the leader."""

    seen: ClassVar[list[tuple[str, Publish]]] = []  # by which replica

    @property
    def takes_direct(self) -> bool:
        return True

    def submit_direct(self, command: Any, out: Outbox) -> None:
        self.seen.append((self._roster.name, command))


class LeaderTakesDirect(DropsDirect):
    """Only the leader takes them, as if all others were slow."""

    def submit_direct(self, command: Any, out: Outbox) -> None:
        super().submit_direct(command, out)
        self.submit(command, out)


class ChangesItsMind(LeaderTakesDirect):
    """Takes publications directly for some slots, and then not for some."""

    @property
    def takes_direct(self) -> bool:
        fast: FastRounds = self._fast  # type: ignore[assignment]
        return fast._decided.executed // 8 % 2 == 0


def group_of(replica: type[Replica]) -> Factories:
    return Factories(kit=BrokerKit(scheme=PaxosKit(replica=replica)))


class _Hops:
    """Counts the messages of a run, by type."""

    def __init__(self) -> None:
        self.count: dict[str, int] = {}

    def see(self, row: Row) -> None:
        if isinstance(row, schema.Hop):
            self.count[row.what] = self.count.get(row.what, 0) + 1


@pytest.mark.parametrize("replica", one_always([DropsDirect, LeaderTakesDirect, ChangesItsMind]))
def test_seeds_of_groups_with_direct_links_are_clean(replica: type[DropsDirect]) -> None:
    hops, delivered = _Hops(), 0
    replica.seen.clear()
    for seed in SEEDS:
        outcome = run_scenario(SHAPE.draw(seed), group_of(replica), sinks=[hops])
        assert outcome.clean, f"seed {seed}: {outcome.broken or outcome.violations[0]}"
        delivered += outcome.events_delivered
        # Whoever is given a publication is given the same bytes, and all of them in the order of their numbers.
        made: dict[tuple[str, int, int], set[bytes]] = {}
        for _, command in replica.seen:
            number = (command.client, command.epoch, command.first)
            made.setdefault(number, set()).add(msgspec.msgpack.encode(command))
        assert all(len(different) == 1 for different in made.values())
        replica.seen.clear()
    assert delivered > 20 * len(SEEDS)
    assert hops.count["OpenDirect"] > 2 * len(SEEDS)
    if replica is ChangesItsMind:
        assert hops.count["DirectChanged"] > len(SEEDS)


def quiet(publishes: int) -> Scenario:
    """A publisher and a subscriber at a group of three, and nothing befalls them."""
    names = ("b1", "b2", "b3")
    return Scenario(
        name="direct",
        seed=1,
        system="paxos",
        brokers=[Broker(id=name, durable=True) for name in names],
        clients=[Client(id="c1", brokers=names), Client(id="c2", brokers=names)],
        actions=[
            said.Subscribe(at_ms=500, client="c2", name="all", filter="n > 0"),
            *[
                said.Publish(at_ms=2_000 + 100 * n, client="c1", events=[said.ScenarioEvent(attributes={"n": n + 1})])
                for n in range(publishes)
            ],
        ],
        faults=[],
        safety_ms=4_000,
        liveness_ms=4_000,
        checkers=["no-loss", "liveness"],
    )


def test_every_replica_is_given_every_publication_once_when_nothing_goes_wrong() -> None:
    LeaderTakesDirect.seen.clear()
    outcome = run_scenario(quiet(10), group_of(LeaderTakesDirect))
    assert outcome.clean
    assert outcome.events_delivered == 10
    for name in ("b1", "b2", "b3"):
        assert [command.first for by, command in LeaderTakesDirect.seen if by == name] == list(range(1, 11))
    assert len({msgspec.msgpack.encode(command) for _, command in LeaderTakesDirect.seen}) == 10


def test_a_group_that_takes_nothing_directly_has_no_direct_links() -> None:
    hops = _Hops()
    assert run_scenario(quiet(10), sinks=[hops]).events_delivered == 10
    assert "OpenDirect" not in hops.count
