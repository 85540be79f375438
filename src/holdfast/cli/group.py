"""`holdfast group`: who leads a group of replicas, and letting another one lead."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.cli.subscribe import DEFAULT_URL
from holdfast.client.operator import BrokerDesk
from holdfast.client.url import SCHEME, addresses_of
from holdfast.protocols.operating.messages import Inspected
from holdfast.protocols.operating.operator import Unreachable
from holdfast.runtime import loop
from holdfast.runtime.site_file import read_site

EXAMPLES = """\
examples:
  holdfast group leader site.toml             who leads
  holdfast group transfer site.toml --to r2   let r2 lead

exit code 1 if nobody leads, or if the other replica does not come to lead
"""
LOOK_EVERY_S = 0.05
MOVED_WITHIN_S = 5.0


class Leader(NamedTuple):
    name: str
    address: str
    desk: BrokerDesk


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    leader = verbs.add_parser("leader", help="print who leads, and where")
    transfer = verbs.add_parser("transfer", help="let another replica lead; clients go on with it")
    transfer.add_argument("--to", metavar="ID", default="", help="which (default: the one that is furthest)")
    for verb, show in ((leader, _leader), (transfer, _transfer)):
        verb.add_argument("where", metavar="SITE|URL", nargs="?", default=DEFAULT_URL, help=f"default {DEFAULT_URL}")
        verb.set_defaults(run=_run, show=show)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.where.startswith(SCHEME):
        addresses: Sequence[str] = addresses_of(arguments.where)
    else:
        site = read_site(arguments.where)
        if not site.is_group:
            raise UsageError(f"{arguments.where} describes no group: its scheme is {site.scheme.kind!r}, not 'paxos'")
        addresses = [entry.address for entry in site.brokers]
    return loop.run(_with_desks(addresses, arguments))


async def _with_desks(addresses: Sequence[str], arguments: argparse.Namespace) -> int:
    async with AsyncExitStack() as stack:
        desks = [await stack.enter_async_context(BrokerDesk(address)) for address in addresses]
        code: int = await arguments.show(desks, arguments)
        return code


async def _find(desks: Sequence[BrokerDesk]) -> tuple[Leader | None, list[str]]:
    """The leader of the highest ballot among those who think that they lead; and what is to be said if there is none.
    One that stood still for a while may think so too, in an older ballot."""
    answers = await asyncio.gather(*(desk.inspect(0) for desk in desks))
    found: list[tuple[int, Leader]] = []
    problems = []
    for desk, answer in zip(desks, answers, strict=True):
        if isinstance(answer, Unreachable):
            problems.append(f"{desk.address}: {answer.reason}")
        elif answer.facts.get("scheme") != "paxos":
            problems.append(f"{desk.address}: {answer.broker} is no member of a group")
        elif answer.measures["replica_is_leading"]:
            found.append((answer.measures["replica_ballot"], Leader(answer.broker, desk.address, desk)))
        else:
            problems.append(f"{desk.address}: {answer.broker} does not lead{_follows(answer)}")
    return max(found)[1] if found else None, problems


def _follows(answer: Inspected) -> str:
    leader = answer.facts.get("leader", "")
    standing = {"unknown": "its group is not formed yet", "wiped": "it takes no part: its disk is another one"}
    role = answer.facts["role"]
    return f", it follows {leader}" if leader else f": {standing.get(role, f'it is {role}')}"


def _nobody(problems: Sequence[str]) -> int:
    print("nobody leads", file=sys.stderr)
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    return CHECK_FAILED


async def _leader(desks: Sequence[BrokerDesk], arguments: argparse.Namespace) -> int:
    leader, problems = await _find(desks)
    if leader is None:
        return _nobody(problems)
    print(f"{leader.name} at {leader.address}")
    return OK


async def _transfer(desks: Sequence[BrokerDesk], arguments: argparse.Namespace) -> int:
    leader, problems = await _find(desks)
    if leader is None:
        return _nobody(problems)
    moved = await leader.desk.move_leadership(arguments.to)
    if isinstance(moved, Unreachable):
        print(f"{leader.name}: {moved.reason}", file=sys.stderr)
        return CHECK_FAILED
    if moved.problem:
        print(f"not moved: {moved.problem}", file=sys.stderr)
        return CHECK_FAILED
    deadline = asyncio.get_running_loop().time() + MOVED_WITHIN_S
    while asyncio.get_running_loop().time() < deadline:
        now, _ = await _find(desks)
        if now is not None and now.name == moved.to:
            print(f"{moved.to} leads at {now.address}, in place of {leader.name}")
            return OK
        await asyncio.sleep(LOOK_EVERY_S)
    print(f"{moved.to} was asked, and does not lead after {MOVED_WITHIN_S:g} s; look at status", file=sys.stderr)
    return CHECK_FAILED
