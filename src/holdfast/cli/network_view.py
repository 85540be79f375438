"""What the brokers of a network say of it: who belongs to it, and who keeps the order of its changes.

The map with the highest number counts, whoever tells it. Brokers that joined later are in no older site file: the
keeper is found by what any member says.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple

from holdfast.cli.main import CHECK_FAILED, UsageError
from holdfast.client.operator import BrokerDesk
from holdfast.client.url import SCHEME, addresses_of
from holdfast.protocols.operating.messages import Inspected
from holdfast.protocols.operating.operator import Unreachable
from holdfast.runtime import loop
from holdfast.runtime.site_file import read_site

NO_NETWORK = "belongs to no network that can be changed"
ANSWER_WITHIN_S = 10.0
WAIT_S_MAX = 1e6
LOOK_EVERY_S = 0.1


class View(NamedTuple):
    """`facts` are those of the newest map, `answers` what each broker says that answered, `desks` where it was asked;
    `problems` say why others did not."""

    facts: Mapping[str, str]
    answers: Mapping[str, Inspected]
    desks: Mapping[str, BrokerDesk]
    problems: Sequence[str]

    @property
    def number(self) -> int:
        return int(self.facts["map"])

    @property
    def members(self) -> list[str]:
        return _listed(self.facts["members"])

    @property
    def links(self) -> list[str]:
        return _listed(self.facts["links"])

    @property
    def keeper(self) -> str:
        return self.facts["keeper"]

    @property
    def change(self) -> str:
        """What is under way; empty if nothing is."""
        return self.facts.get("change", "")

    @property
    def change_problem(self) -> str:
        """What that waits for, as those say who carry it out."""
        newest = [answer.facts for answer in self.answers.values() if int(answer.facts["map"]) == self.number]
        problems = [facts["change_problem"] for facts in newest if "change_problem" in facts]
        return "; ".join(dict.fromkeys(problems)) if self.change else ""

    @property
    def resting(self) -> dict[str, str]:
        """Brokers that are no members for now, with the one that stands in for each; nobody, if that is empty."""
        return _by(self.facts.get("resting", ""))

    @property
    def sharing(self) -> dict[str, str]:
        """Brokers that are slow, with the one that shares the work of each."""
        return _by(self.facts.get("sharing", ""))

    def are_joined(self, one: str, other: str) -> bool:
        return f"{one}-{other}" in self.links or f"{other}-{one}" in self.links

    def is_linked(self, name: str) -> bool:
        """Whether a member has arrived: it says so, or one that it is joined with."""
        own = self.answers.get(name)
        if own is not None and int(own.facts["map"]) >= self.number:
            return True
        return any(name in _listed(answer.facts.get("neighbours_up", "")) for answer in self.answers.values())


class Network:
    """Brokers, by addresses at which operators ask them: those that are known, and the keeper wherever it is."""

    def __init__(self, addresses: Sequence[str], make: Callable[[str], BrokerDesk] = BrokerDesk) -> None:
        self._make = make
        self._desks = {address: make(address) for address in addresses}
        self.problems: Sequence[str] = ()  # why nobody told of a network, when `look` was last called
        self.is_none = False  # those who answered belong to none

    async def __aenter__(self) -> Network:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for desk in self._desks.values():
            await desk.close()

    def desk(self, address: str) -> BrokerDesk:
        """That of a broker; it is asked with the others from now on."""
        if address not in self._desks:
            self._desks[address] = self._make(address)
        return self._desks[address]

    async def look(self) -> View | None:
        """What all say now; None if nobody tells of a network."""
        view = await self._look()
        if view is not None and view.keeper not in view.answers:
            address = view.facts.get("keeper_address", "")
            if address and address not in self._desks:
                self.desk(address)
                view = await self._look()
        return view

    async def _look(self) -> View | None:
        asked = list(self._desks.values())
        said = await asyncio.gather(*(desk.inspect(0) for desk in asked))
        answers: dict[str, Inspected] = {}
        desks: dict[str, BrokerDesk] = {}
        problems: list[str] = []
        for desk, answer in zip(asked, said, strict=True):
            if isinstance(answer, Unreachable):
                problems.append(f"{desk.address}: {answer.reason}")
            elif "map" not in answer.facts:
                problems.append(f"{desk.address}: {answer.broker} {NO_NETWORK}")
            else:
                answers[answer.broker], desks[answer.broker] = answer, desk
        self.problems = problems
        self.is_none = not answers and any(problem.endswith(NO_NETWORK) for problem in problems)
        if not answers:
            return None
        newest = max(answers.values(), key=_newness)
        return View(newest.facts, answers, desks, problems)


def run_with_network(arguments: argparse.Namespace) -> int:
    """Asks the brokers that `arguments.where` names, a site file or a URL, by `arguments.show`."""
    if not 0 <= arguments.wait < WAIT_S_MAX:
        raise UsageError(f"--wait is {arguments.wait:g} s, and has to be from 0 to {WAIT_S_MAX:g}")
    arguments.site = None
    if arguments.where.startswith(SCHEME):
        addresses: Sequence[str] = addresses_of(arguments.where)
    else:
        site = read_site(arguments.where)
        if not site.scheme.has_links or not site.links:
            what = "one broker" if len(site.brokers) == 1 else f"a {site.scheme.called}"
            raise UsageError(f"{arguments.where} describes no network, but {what} of the scheme {site.scheme.kind!r}")
        addresses = [entry.advertised for entry in site.brokers]
        arguments.site = site
    return loop.run(_with_desks(addresses, arguments))


async def _with_desks(addresses: Sequence[str], arguments: argparse.Namespace) -> int:
    async with Network(addresses) as network:
        code: int = await arguments.show(network, arguments)
        return code


def add_look_argument(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--wait", type=float, default=ANSWER_WITHIN_S, metavar="SECONDS",
        help=f"for a broker that answers, if none does yet (default {ANSWER_WITHIN_S:g}; 0: look once)",
    )  # fmt: skip


async def look_within(network: Network, wait_s: float) -> View | None:
    """What all say as soon as one answers; None if none does in time."""
    clock = asyncio.get_running_loop().time
    deadline, said = clock() + wait_s, False
    while (view := await network.look()) is None:
        if network.is_none or clock() >= deadline:
            return None
        if not said:
            print(f"no broker answers yet: waiting for up to {wait_s:g} s", file=sys.stderr, flush=True)
            said = True
        await asyncio.sleep(LOOK_EVERY_S)
    return view


def nobody(network: Network) -> int:
    """Says why nobody told of a network; gives the exit code."""
    print("no broker of a network answers", file=sys.stderr)
    for problem in network.problems:
        print(f"  {problem}", file=sys.stderr)
    return CHECK_FAILED


def _newness(answer: Inspected) -> tuple[int, bool]:
    """Of those who have the same map, the keeper knows best; and who is no member knows least."""
    facts = answer.facts
    return int(facts["map"]), facts["keeper"] == answer.broker


def _listed(text: str) -> list[str]:
    return text.split(", ") if text else []


def _by(text: str) -> dict[str, str]:
    said = (each.partition(" by ") for each in _listed(text))
    return {name: by for name, _, by in said}
