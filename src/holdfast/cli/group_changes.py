"""`holdfast group add | remove | replace | cancel | protocol`: asks the leader, and waits until it is done.

The leader may change meanwhile, and what it was asked for and had not proposed is forgotten with it: then the next one
is asked again.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.broker.site import Site, is_address
from holdfast.cli.group_leader import find_leader, nobody
from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.messages import GroupAction
from holdfast.protocols.operating.operator import AskToChange, Unreachable

WAIT_S = 60.0
LOOK_EVERY_S = 0.1


def add_verbs(verbs: Any) -> list[argparse.ArgumentParser]:
    add = verbs.add_parser("add", help="take a replica in: it learns, catches up, and votes then")
    replace = verbs.add_parser("replace", help="put a new replica in the place of another, also of one that is lost")
    remove = verbs.add_parser("remove", help="let a replica go")
    cancel = verbs.add_parser("cancel", help="give up a change that has begun and is not done")
    protocol = verbs.add_parser("protocol", help="change how requests become values: multi, batch or fast")
    add.add_argument("--id", required=True, metavar="ID", help="of the new replica")
    replace.add_argument("--id", required=True, metavar="ID", help="of the one that goes")
    replace.add_argument("--by", required=True, metavar="ID", help="of the new replica")
    remove.add_argument("--id", required=True, metavar="ID")
    protocol.add_argument("--to", required=True, metavar="PROTOCOL", help="multi, batch or fast")
    for verb in (add, replace):
        verb.add_argument("--address", default="", help="where clients find it (default: as the site file says)")
        verb.add_argument("--peer-address", default="", help="where the others find it (likewise)")
    for action, verb in zip(GroupAction, (add, replace, remove, cancel, protocol), strict=True):
        verb.add_argument("--wait", type=float, default=WAIT_S, metavar="SECONDS", help=f"default {WAIT_S:g}")
        verb.set_defaults(action=action)
    return [add, replace, remove, cancel, protocol]


class _Wanted(NamedTuple):
    """What is asked for, and how it looks when it is done."""

    ask: AskToChange
    present: str = ""
    absent: str = ""

    def is_done(self, facts: dict[str, str]) -> bool:
        if "change" in facts:
            return False
        members = facts["members"].split(", ")
        if self.ask.protocol and facts["protocol"] != self.ask.protocol:
            return False
        return (not self.present or self.present in members) and self.absent not in members


def _wanted(arguments: argparse.Namespace) -> _Wanted:
    action: GroupAction = arguments.action
    match action:
        case GroupAction.ADD:
            return _Wanted(_newcomer(arguments, arguments.id, ""), present=arguments.id)
        case GroupAction.REPLACE:
            ask = _newcomer(arguments, arguments.by, arguments.id)
            return _Wanted(ask, present=arguments.by, absent=arguments.id)
        case GroupAction.REMOVE:
            return _Wanted(AskToChange(action, arguments.id), absent=arguments.id)
        case GroupAction.PROTOCOL:
            return _Wanted(AskToChange(action, protocol=arguments.to))
        case GroupAction.CANCEL:
            return _Wanted(AskToChange(action))


def _newcomer(arguments: argparse.Namespace, name: str, replaces: str) -> AskToChange:
    site: Site | None = arguments.site
    entry = next((each for each in site.brokers if each.id == name), None) if site is not None else None
    address = arguments.address or ("" if entry is None else entry.address)
    peer_address = arguments.peer_address or ("" if entry is None else entry.peer_address)
    for option, text in (("--address", address), ("--peer-address", peer_address)):
        if not text:
            where = f"add it to {arguments.where} as a [[broker]] with spare = true" if site else "give it"
            raise UsageError(f"where {name} is to be found is not known: {where}, or use {option}")
        if not is_address(text):
            raise UsageError(f"{text!r} is no address: write host:port")
    return AskToChange(arguments.action, name, address, peer_address, replaces)


async def carry_out(desks: Sequence[BrokerDesk], arguments: argparse.Namespace) -> int:
    """Asks whoever leads, until it is done, refused, or the time is up."""
    wanted = _wanted(arguments)
    clock = asyncio.get_running_loop().time
    deadline, asked_of, said = clock() + arguments.wait, "", ""
    while True:
        leader, problems = await find_leader(desks)
        if leader is not None:
            under_way = leader.facts.get("change", "")
            if asked_of and wanted.is_done(leader.facts):
                print(f"done: {leader.facts['members']}; {leader.name} leads; protocol: {leader.facts['protocol']}")
                return OK
            if not asked_of or (asked_of != leader.name and not under_way):
                begun = await leader.desk.change_group(wanted.ask)
                if not isinstance(begun, Unreachable):
                    if begun.problem and not asked_of:
                        return _refused(begun.problem)
                    asked_of = leader.name
            elif asked_of == leader.name and not under_way and "change_problem" in leader.facts:
                return _refused(leader.facts["change_problem"])
            if under_way and under_way != said:
                said = under_way
                print(said, flush=True)
        if clock() >= deadline:
            if leader is None:
                return nobody(problems)
            print(f"not done after {arguments.wait:g} s; look at `holdfast group members`", file=sys.stderr)
            return CHECK_FAILED
        await asyncio.sleep(LOOK_EVERY_S)


def _refused(problem: str) -> int:
    print(f"not changed: {problem}", file=sys.stderr)
    return CHECK_FAILED
