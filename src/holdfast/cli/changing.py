"""A change of a network: asks the keeper for it, and waits until it is done.

The keeper makes the change's first map; those who carry out its steps make the others. One that crashed before its disk
had the map has forgotten what it was asked for: then it is asked again.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from typing import NamedTuple

from holdfast.cli import network_view
from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.cli.network_view import WAIT_S_MAX, Network, View, nobody
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.operator import Unreachable

WAIT_S = 60.0
TELL_AFTER_S = 1.0  # why nothing goes on: links that a step needs come up meanwhile, and brokers that are started


def add_wait_argument(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--wait", type=float, default=WAIT_S, metavar="SECONDS", help=f"default {WAIT_S:g}")


class Wanted(NamedTuple):
    """What is asked for, and how the network looks when it is done."""

    action: str
    told: Mapping[str, str]
    goes_on: str  # where what has begun can be looked at
    present: str = ""
    absent: str = ""
    joined: tuple[tuple[str, str], ...] = ()
    parted: tuple[tuple[str, str], ...] = ()
    shared: tuple[str, str] | None = None  # whose work, by whom
    unshared: str = ""
    lost: tuple[str, ...] = ()  # the one that is declared so, and others that will not order it
    if_lost_answers: str = ""  # what to do then
    all_have: tuple[str, str] = ("", "")  # a fact that all of them tell, if one does; and what it is in the site file
    seeks_for: str = ""  # the broker for which whoever is asked finds a spare by itself
    shares_for: str = ""  # whose work is to be shared, by whoever that is

    def counts(self, view: View) -> bool:
        """Whether the map is as wanted, and nothing is under way."""
        if view.change or (self.present and self.present not in view.members) or self.absent in view.members:
            return False
        if self.shares_for and self.shares_for not in view.sharing:
            return False
        if self.unshared in view.sharing or (self.shared is not None and self.shared not in view.sharing.items()):
            return False
        return all(view.are_joined(*ends) for ends in self.joined) and not any(
            view.are_joined(*ends) for ends in self.parted
        )

    def whom(self, view: View) -> str:
        """Who begins such a change: the keeper, or if it is lost, the first member that is not."""
        return next((name for name in view.members if name not in self.lost), "")


async def carry_out(network: Network, wanted: Wanted, wait_s: float) -> int:
    """Asks whoever orders changes, until it is done, refused, or the time is up."""
    if not 0 < wait_s < WAIT_S_MAX:
        raise UsageError(f"--wait is {wait_s:g} s, and has to be more than 0 and less than {WAIT_S_MAX:g}")
    changing = _Changing(network, wanted, wait_s)
    try:
        return await changing.run()
    except asyncio.CancelledError:
        if changing.asked_at is not None:
            print(wanted.goes_on, file=sys.stderr)
        raise


class _Changing:
    """One change, from when it is asked for until it is done. `asked_at`: the number of the map on which it was."""

    def __init__(self, network: Network, wanted: Wanted, wait_s: float) -> None:
        self.asked_at: int | None = None
        self._network = network
        self._wanted = wanted
        self._wait_s = wait_s
        self._step = ""  # these were told
        self._said = ""
        self._why_not = ""  # it has not begun
        self._waits = ""  # for what, and since when
        self._waits_since = 0.0

    async def run(self) -> int:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._wait_s
        is_late = False
        while True:
            view = await self._network.look()
            if view is None and self._network.is_none:
                return nobody(self._network)
            code = None if view is None else await self._go_on(view)
            if code is not None:
                return code
            if is_late:
                return nobody(self._network) if view is None else self._late(view)
            self._tell_waiting(view, clock())
            await asyncio.sleep(network_view.LOOK_EVERY_S)
            is_late = clock() >= deadline  # then all is looked at once more, also what has just been asked for

    def _tell_waiting(self, view: View | None, now: float) -> None:
        """What is waited for, when that has been so for a while."""
        if view is None:
            waits = "no broker answers"
        else:
            waits = view.change_problem if self.asked_at is not None and view.change else self._why_not
        if waits != self._waits:
            self._waits, self._waits_since = waits, now
        if waits and waits != self._said and now >= self._waits_since + TELL_AFTER_S:
            self._said = waits
            print(f"waiting for up to {self._wait_s:g} s: {waits}", file=sys.stderr, flush=True)

    async def _go_on(self, view: View) -> int | None:
        """The exit code, if it is over."""
        wanted = self._wanted
        if self.asked_at is None:
            return await self._refused_beforehand(view) or await self._ask(view)
        self._tell(view)
        if view.change:
            return None
        if wanted.counts(view):
            if wanted.present and not view.is_linked(wanted.present):
                return None
            links = ", ".join(view.links)
            print(f"done: members {', '.join(view.members)}; links {links}; map {view.number}")
            return OK
        if wanted.seeks_for:
            return await self._seek(view, wanted.seeks_for)
        if view.number > self.asked_at:
            return _refused(f"another change came first; the network is now {', '.join(view.links)}")
        return await self._ask(view)

    async def _seek(self, view: View, name: str) -> int | None:
        """How far the one is with it that was asked to find a spare."""
        whom = view.answers.get(self._wanted.whom(view))
        case = "" if whom is None else whom.facts.get("standin_case", "")
        if case.startswith(f"{name} "):
            if case != self._step:
                self._step = case
                print(case, flush=True)
            return None
        for answer in view.answers.values():
            for problem in answer.facts.get("standin_problem", "").split("; "):
                if problem.startswith(f"{name} gets no stand-in"):
                    return _refused(answer.facts["standin_problem"])
        return await self._ask(view) if whom is not None else None

    async def _refused_beforehand(self, view: View) -> int | None:
        """What only who asks can know: whether the new broker is there, and the lost one is not."""
        for name in self._wanted.lost:
            if name in view.answers:
                return _refused(f"{name} answers: {self._wanted.if_lost_answers}")
        fact, table = self._wanted.all_have
        if without := self._without(view, fact):
            return _refused(
                f"{', '.join(without)}: started without {table}, as others have it: restart with their file"
            )
        if not self._wanted.present:
            return None
        name, address = self._wanted.present, self._wanted.told["address"]
        answer = await self._network.desk(address).inspect(0)
        if isinstance(answer, Unreachable):
            return _refused(f"{name} does not answer at {address}, and is started first: {answer.reason}")
        if answer.broker != name:
            return _refused(f"{answer.broker} answers at {address}, not {name}")
        for what in ("scheme", "reliability"):
            own, others = answer.facts.get(what, "none of a network"), view.facts.get(what, "")
            if own != others:
                return _refused(
                    f"{name} has the {what} {own!r}, and the network {others!r}: give it the same site file"
                )
        own, others = answer.facts.get("network", ""), view.facts.get("network", "")
        if own and others and own != others:
            what = "`name`, or `advertisements` of `[routing]`, differs"
            return _refused(f"{name} belongs to another network: in its site file {what}; give it the same one")
        return None

    @staticmethod
    def _without(view: View, fact: str) -> list[str]:
        """Those who do not tell what others tell."""
        facts = {name: answer.facts for name, answer in view.answers.items()}
        without = [name for name in facts if fact and fact not in facts[name]]
        return without if len(without) < len(facts) else []

    async def _ask(self, view: View) -> int | None:
        whom = self._wanted.whom(view)
        desk = self._desk_of(view, whom)
        if isinstance(desk, str):
            self._why_not = desk
            return None
        begun = await desk.change(self._wanted.action, self._wanted.told)
        if isinstance(begun, Unreachable):
            # It may have begun all the same. If not, the map is the same when the keeper answers again.
            self._why_not = f"{whom} does not answer: {begun.reason}"
        elif begun.problem:
            return _refused(begun.problem)
        else:
            self._why_not = ""
        self.asked_at = view.number
        return None

    def _desk_of(self, view: View, name: str) -> BrokerDesk | str:
        """Where a broker is asked that answers; or why it can't be."""
        if name in view.desks:
            if int(view.answers[name].facts["map"]) < view.number:
                return f"{name} has not heard of map {view.number} yet"
            return view.desks[name]
        if self._wanted.lost and name != view.keeper:
            return (
                f"the keeper is lost, so {name or 'another member'} orders this change, and it does not answer:"
                f" name its address in a URL, or in the site file; or say --also-lost {name}, if it is"
            )
        problems = "; ".join(view.problems)
        also = f"; say --also-lost {name}, if it is" if self._wanted.lost else ""
        return f"{name} orders changes, and does not answer{f': {problems}' if problems else ''}{also}"

    def _tell(self, view: View) -> None:
        if view.change and view.change != self._step:
            self._step = view.change
            print(view.change, flush=True)

    def _late(self, view: View) -> int:
        now = view.change or self._why_not
        if not now and self._wanted.present in view.members:
            now = f"{self._wanted.present} is a member, and nobody has a link with it yet"
        said = "".join(f": {text}" for text in (now, view.change_problem) if text)
        print(f"not done after {self._wait_s:g} s{said}", file=sys.stderr)
        if self.asked_at is not None:
            print(self._wanted.goes_on, file=sys.stderr)
        return CHECK_FAILED


def _refused(problem: str) -> int:
    print(f"not changed: {problem}", file=sys.stderr)
    return CHECK_FAILED
