"""`holdfast network add-broker | remove-broker | add-link | remove-link`: asks the keeper, and waits until it is done.

The keeper makes the change's first map; those who carry out its steps make the others. One that crashed before its disk
had the map has forgotten what it was asked for: then it is asked again.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any, NamedTuple

from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.cli.network_view import Network, View, nobody
from holdfast.cli.newcomer import add_address_arguments, told_of
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.operator import Unreachable

WAIT_S = 60.0
WAIT_S_MAX = 1e6
LOOK_EVERY_S = 0.1
TELL_AFTER_S = 1.0  # why nothing goes on: links that a step needs come up meanwhile, and brokers that are started
GOES_ON = "what has begun goes on: `holdfast network show` shows it"


def add_verbs(verbs: Any) -> list[argparse.ArgumentParser]:
    add = verbs.add_parser("add-broker", help="take a broker in, joined with one of the network or put between two")
    remove = verbs.add_parser("remove-broker", help="take a broker out; its neighbours are joined with each other")
    add_link = verbs.add_parser("add-link", help="join two brokers, instead of two others where only a tree is used")
    remove_link = verbs.add_parser("remove-link", help="take a link out that is not needed to join all")
    add.add_argument("--id", required=True, metavar="ID", help="of the new broker, which runs, with an empty folder")
    add.add_argument("--at", required=True, metavar="ID", help="the broker that it is joined with")
    add.add_argument("--between", default="", metavar="ID", help="a neighbour of that one, to stand between the two")
    add_address_arguments(add)
    remove.add_argument("--id", required=True, metavar="ID")
    remove.add_argument("--at", default="", metavar="ID", help="the neighbour with which the others are joined")
    remove.add_argument("--lost", action="store_true", help="it is gone for good, and what only it had with it")
    remove.add_argument(
        "--also-lost", action="append", default=[], metavar="ID",
        help="with --lost: another that is gone for good, and is not waited for; declare it lost next",
    )  # fmt: skip
    for verb in (add_link, remove_link):
        verb.add_argument("--between", required=True, nargs=2, metavar=("ID", "ID"), help="the two ends")
    add_link.add_argument("--instead-of", nargs=2, metavar=("ID", "ID"), help="the ends of the link that goes")
    for action, verb in zip(("add-broker", "remove-broker", "add-link", "remove-link"),
                            (add, remove, add_link, remove_link), strict=True):  # fmt: skip
        verb.add_argument("--wait", type=float, default=WAIT_S, metavar="SECONDS", help=f"default {WAIT_S:g}")
        verb.set_defaults(action=action)
    return [add, remove, add_link, remove_link]


class _Wanted(NamedTuple):
    """What is asked for, and how the network looks when it is done."""

    action: str
    told: dict[str, str]
    present: str = ""
    absent: str = ""
    joined: tuple[tuple[str, str], ...] = ()
    parted: tuple[tuple[str, str], ...] = ()
    lost: tuple[str, ...] = ()  # the one that is declared so, and others that will not order it

    def counts(self, view: View) -> bool:
        """Whether the map is as wanted, and nothing is under way."""
        if view.change or (self.present and self.present not in view.members) or self.absent in view.members:
            return False
        return all(view.are_joined(*ends) for ends in self.joined) and not any(
            view.are_joined(*ends) for ends in self.parted
        )

    def whom(self, view: View) -> str:
        """Who begins such a change: the keeper, or if it is lost, the first member that is not."""
        return next((name for name in view.members if name not in self.lost), "")


def _wanted(arguments: argparse.Namespace) -> _Wanted:
    action: str = arguments.action
    match action:
        case "add-broker":
            at, between = arguments.at, arguments.between
            told = told_of(arguments, arguments.id) | {"at": at} | ({"between": between} if between else {})
            joined = ((at, arguments.id), *([(between, arguments.id)] if between else []))
            parted = ((at, between),) if between else ()
            return _Wanted(action, told, present=arguments.id, joined=joined, parted=parted)
        case "remove-broker":
            told = {"id": arguments.id} | ({"at": arguments.at} if arguments.at else {})
            if arguments.also_lost and not arguments.lost:
                raise UsageError("--also-lost goes with --lost: the one that --id names is lost, too")
            told |= {"lost": "yes"} if arguments.lost else {}
            told |= {"also_lost": ",".join(arguments.also_lost)} if arguments.also_lost else {}
            lost = (arguments.id, *arguments.also_lost) if arguments.lost else ()
            return _Wanted(action, told, absent=arguments.id, lost=lost)
        case "add-link":
            one, other = arguments.between
            told, parted = {"one": one, "other": other}, ()
            if arguments.instead_of:
                told["instead_of"] = ",".join(arguments.instead_of)
                parted = (tuple(arguments.instead_of),)
            return _Wanted(action, told, joined=((one, other),), parted=parted)
        case _:
            one, other = arguments.between
            return _Wanted(action, {"one": one, "other": other}, parted=((one, other),))


async def carry_out(network: Network, arguments: argparse.Namespace) -> int:
    """Asks whoever orders changes, until it is done, refused, or the time is up."""
    if not 0 < arguments.wait < WAIT_S_MAX:
        raise UsageError(f"--wait is {arguments.wait:g} s, and has to be more than 0 and less than {WAIT_S_MAX:g}")
    changing = _Changing(network, _wanted(arguments), arguments.wait)
    try:
        return await changing.run()
    except asyncio.CancelledError:
        if changing.asked_at is not None:
            print(GOES_ON, file=sys.stderr)
        raise


class _Changing:
    """One change, from when it is asked for until it is done. `asked_at`: the number of the map on which it was."""

    def __init__(self, network: Network, wanted: _Wanted, wait_s: float) -> None:
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
            await asyncio.sleep(LOOK_EVERY_S)
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
        if view.number > self.asked_at:
            return _refused(f"another change came first; the network is now {', '.join(view.links)}")
        return await self._ask(view)

    async def _refused_beforehand(self, view: View) -> int | None:
        """What only who asks can know: whether the new broker is there, and the lost one is not."""
        told = self._wanted.told
        for name in self._wanted.lost:
            if name in view.answers:
                return _refused(f"{name} answers: stop it for good first, or take it out without --lost")
        if not self._wanted.present:
            return None
        name, address = told["id"], told["address"]
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
            print(GOES_ON, file=sys.stderr)
        return CHECK_FAILED


def _refused(problem: str) -> int:
    print(f"not changed: {problem}", file=sys.stderr)
    return CHECK_FAILED
