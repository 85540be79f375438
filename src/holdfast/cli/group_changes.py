"""`holdfast group add | remove | replace | cancel | protocol`: asks the leader, and waits until it is done.

The leader may change meanwhile, and what it was asked for and had not proposed is forgotten with it: then the next one
is asked again.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any, NamedTuple

from holdfast.cli.group_leader import find_leader, nobody
from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.cli.newcomer import add_address_arguments, told_of
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.operator import Unreachable

WAIT_S = 60.0
WAIT_S_MAX = 1e6
LOOK_EVERY_S = 0.1
ACTIONS = ("add", "replace", "remove", "cancel", "protocol")
GOES_ON = "what has begun goes on: `holdfast group members` shows it, `cancel` gives it up"


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
        add_address_arguments(verb)
    for action, verb in zip(ACTIONS, (add, replace, remove, cancel, protocol), strict=True):
        verb.add_argument("--wait", type=float, default=WAIT_S, metavar="SECONDS", help=f"default {WAIT_S:g}")
        verb.set_defaults(action=action)
    return [add, replace, remove, cancel, protocol]


class _Wanted(NamedTuple):
    """What is asked for, and how it looks when it is done."""

    action: str
    told: dict[str, str]
    present: str = ""
    absent: str = ""

    def is_done(self, facts: dict[str, str]) -> bool:
        if "change" in facts:
            return False
        members = facts["members"].split(", ")
        if facts["protocol"] != self.told.get("protocol", facts["protocol"]):
            return False
        return (not self.present or self.present in members) and self.absent not in members


def _wanted(arguments: argparse.Namespace) -> _Wanted:
    action: str = arguments.action
    match action:
        case "add":
            return _Wanted(action, told_of(arguments, arguments.id), present=arguments.id)
        case "replace":
            told = told_of(arguments, arguments.by) | {"replaces": arguments.id}
            return _Wanted(action, told, present=arguments.by, absent=arguments.id)
        case "remove":
            return _Wanted(action, {"id": arguments.id}, absent=arguments.id)
        case "protocol":
            return _Wanted(action, {"protocol": arguments.to})
        case _:
            return _Wanted(action, {})


async def carry_out(desks: list[BrokerDesk], arguments: argparse.Namespace) -> int:
    """Asks whoever leads, until it is done, refused, or the time is up."""
    if not 0 < arguments.wait < WAIT_S_MAX:
        raise UsageError(f"--wait is {arguments.wait:g} s, and has to be more than 0 and less than {WAIT_S_MAX:g}")
    wanted = _wanted(arguments)
    try:
        return await _carry_out(desks, wanted, arguments.wait)
    except asyncio.CancelledError:
        print(GOES_ON, file=sys.stderr)
        raise


async def _carry_out(desks: list[BrokerDesk], wanted: _Wanted, wait: float) -> int:
    clock = asyncio.get_running_loop().time
    deadline, asked_of, said = clock() + wait, "", ""
    while True:
        leader, problems = await find_leader(desks)
        if leader is not None:
            under_way = leader.facts.get("change", "")
            if asked_of and wanted.is_done(leader.facts):
                print(f"done: {leader.facts['members']}; {leader.name} leads; protocol: {leader.facts['protocol']}")
                return OK
            if not asked_of or (asked_of != leader.name and not under_way):
                begun = await leader.desk.change(wanted.action, wanted.told)
                if not isinstance(begun, Unreachable):
                    if begun.problem and not asked_of:
                        return _refused(begun.problem)
                    asked_of = leader.name
            elif asked_of == leader.name and not under_way and "change_problem" in leader.facts:
                return _refused(leader.facts["change_problem"])
            if under_way and under_way != said and wanted.action != "cancel":
                said = under_way
                print(said, flush=True)
        if clock() >= deadline:
            if leader is None:
                return nobody(problems)
            now = f": {under_way}" if under_way else ""
            print(f"not done after {wait:g} s{now}", file=sys.stderr)
            print(GOES_ON, file=sys.stderr)
            return CHECK_FAILED
        await asyncio.sleep(LOOK_EVERY_S)


def _refused(problem: str) -> int:
    print(f"not changed: {problem}", file=sys.stderr)
    return CHECK_FAILED
