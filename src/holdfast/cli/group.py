"""`holdfast group`: who leads a group of replicas, letting another one lead, and changing the group while it serves."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

from holdfast.cli import group_changes
from holdfast.cli.group_leader import LEADER_WITHIN_S, await_leader, find_leader, nobody
from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.cli.where import DEFAULT_URL
from holdfast.client.operator import BrokerDesk
from holdfast.client.url import SCHEME, addresses_of
from holdfast.protocols.operating.operator import Unreachable
from holdfast.runtime import loop
from holdfast.runtime.site_file import read_site

EXAMPLES = """\
examples:
  holdfast group leader site.toml             who leads
  holdfast group transfer site.toml --to r2   let r2 lead
  holdfast group members site.toml            who belongs to it, and what is under way
  holdfast group add site.toml --id r4        take in r4, which runs, with an empty folder, and is `spare` in the file
  holdfast group replace site.toml --id r2 --by r4
  holdfast group remove site.toml --id r2
  holdfast group protocol site.toml --to fast
  holdfast group cancel site.toml             give up an add, replace or remove that is not done

A change that has begun goes on when this command is interrupted, or when its time is up.
exit code 1 if nobody leads after a while (`--wait`), or if what was asked for does not come about
"""
LOOK_EVERY_S = 0.05
MOVED_WITHIN_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    leader = verbs.add_parser("leader", help="print who leads, and where")
    transfer = verbs.add_parser("transfer", help="let another replica lead; clients go on with it")
    transfer.add_argument("--to", metavar="ID", default="", help="which (default: the one that is furthest)")
    members = verbs.add_parser("members", help="print who belongs to the group, and what is under way")
    for verb in (leader, transfer, members):
        verb.add_argument(
            "--wait", type=float, default=LEADER_WITHIN_S, metavar="SECONDS",
            help=f"for a leader, if there is none yet (default {LEADER_WITHIN_S:g}; 0: look once)",
        )  # fmt: skip
    shows = [(leader, _leader), (transfer, _transfer), (members, _members)]
    shows += [(verb, group_changes.carry_out) for verb in group_changes.add_verbs(verbs)]
    for verb, show in shows:
        verb.add_argument("where", metavar="SITE|URL", nargs="?", default=DEFAULT_URL, help=f"default {DEFAULT_URL}")
        verb.set_defaults(run=_run, show=show)


def _run(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.wait < group_changes.WAIT_S_MAX:
        raise UsageError(f"--wait is {arguments.wait:g} s, and has to be from 0 to {group_changes.WAIT_S_MAX:g}")
    arguments.site = None
    if arguments.where.startswith(SCHEME):
        addresses: Sequence[str] = addresses_of(arguments.where)
    else:
        site = read_site(arguments.where)
        if not site.scheme.is_one_broker:
            raise UsageError(f"{arguments.where} describes no group: its scheme is {site.scheme.kind!r}")
        addresses = [entry.advertised for entry in site.brokers]
        arguments.site = site
    return loop.run(_with_desks(addresses, arguments))


async def _with_desks(addresses: Sequence[str], arguments: argparse.Namespace) -> int:
    desks = [BrokerDesk(address) for address in addresses]  # to which the leader's is added, if it is another one
    try:
        code: int = await arguments.show(desks, arguments)
        return code
    finally:
        for desk in desks:
            await desk.close()


async def _leader(desks: list[BrokerDesk], arguments: argparse.Namespace) -> int:
    leader, problems = await await_leader(desks, arguments.wait)
    if leader is None:
        return nobody(problems)
    print(f"{leader.name} at {leader.address}")
    return OK


async def _members(desks: list[BrokerDesk], arguments: argparse.Namespace) -> int:
    leader, problems = await await_leader(desks, arguments.wait)
    if leader is None:
        return nobody(problems)
    print(f"members: {leader.facts['members']}; {leader.name} leads; protocol: {leader.facts['protocol']}")
    told = {"change": "change", "change_problem": "the last change was given up", "problem": "problem"}
    for name, title in told.items():
        if name in leader.facts:
            print(f"{title}: {leader.facts[name]}")
    return OK


async def _transfer(desks: list[BrokerDesk], arguments: argparse.Namespace) -> int:
    leader, problems = await await_leader(desks, arguments.wait)
    if leader is None:
        return nobody(problems)
    moved = await leader.desk.move_leadership(arguments.to)
    if isinstance(moved, Unreachable):
        print(f"{leader.name}: {moved.reason}", file=sys.stderr)
        return CHECK_FAILED
    if moved.problem:
        print(f"not moved: {moved.problem}", file=sys.stderr)
        return CHECK_FAILED
    deadline = asyncio.get_running_loop().time() + MOVED_WITHIN_S
    while asyncio.get_running_loop().time() < deadline:
        now, _ = await find_leader(desks)
        if now is not None and now.name == moved.to:
            print(f"{moved.to} leads at {now.address}, in place of {leader.name}")
            return OK
        await asyncio.sleep(LOOK_EVERY_S)
    print(f"{moved.to} was asked, and does not lead after {MOVED_WITHIN_S:g} s; look at status", file=sys.stderr)
    return CHECK_FAILED
