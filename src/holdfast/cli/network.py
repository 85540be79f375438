"""`holdfast network`: who belongs to a network and who is joined with whom; and changing that while events flow."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence

from holdfast.cli import network_changes
from holdfast.cli.main import OK, UsageError
from holdfast.cli.network_view import Network, View, nobody
from holdfast.cli.where import DEFAULT_URL
from holdfast.client.url import SCHEME, addresses_of
from holdfast.runtime import loop
from holdfast.runtime.site_file import read_site

EXAMPLES = """\
examples:
  holdfast network show site.toml                           members, links, and what is under way
  holdfast network add-broker site.toml --id b8 --at b3     b8 runs, with an empty folder, and is `spare` in the file
  holdfast network add-broker site.toml --id b8 --at b3 --between b4    it comes to stand between those two
  holdfast network remove-broker site.toml --id b3          its neighbours are joined with each other
  holdfast network remove-broker site.toml --id b3 --lost   … and it will never come back
  holdfast network add-link site.toml --between b1 b5 --instead-of b2 b3
  holdfast network remove-link site.toml --between b1 b5    a link that is not needed to join all

A change that has begun goes on when this command is interrupted, or when its time is up.
exit code 1 if no broker of the network answers after a while (`--wait`), or if what was asked for does not come about
"""
ANSWER_WITHIN_S = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    show = verbs.add_parser("show", help="print who belongs to the network, its links, and what is under way")
    show.add_argument(
        "--wait", type=float, default=ANSWER_WITHIN_S, metavar="SECONDS",
        help=f"for a broker that answers, if none does yet (default {ANSWER_WITHIN_S:g}; 0: look once)",
    )  # fmt: skip
    shows = [(show, _show), *((verb, network_changes.carry_out) for verb in network_changes.add_verbs(verbs))]
    for verb, run in shows:
        verb.add_argument("where", metavar="SITE|URL", nargs="?", default=DEFAULT_URL, help=f"default {DEFAULT_URL}")
        verb.set_defaults(run=_run, show=run)


def _run(arguments: argparse.Namespace) -> int:
    if not 0 <= arguments.wait < network_changes.WAIT_S_MAX:
        raise UsageError(f"--wait is {arguments.wait:g} s, and has to be from 0 to {network_changes.WAIT_S_MAX:g}")
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


async def _show(network: Network, arguments: argparse.Namespace) -> int:
    clock = asyncio.get_running_loop().time
    deadline, said = clock() + arguments.wait, False
    while (view := await network.look()) is None:
        if network.is_none or clock() >= deadline:
            return nobody(network)
        if not said:
            print(f"no broker answers yet: waiting for up to {arguments.wait:g} s", file=sys.stderr, flush=True)
            said = True
        await asyncio.sleep(network_changes.LOOK_EVERY_S)
    for line in shown(view):
        print(line)
    return OK


def shown(view: View) -> list[str]:
    """What there is to say of a network."""
    lines = [f"members: {', '.join(view.members)}; {view.keeper} keeps the order of changes; map {view.number}"]
    lines.append(f"links: {', '.join(view.links)}")
    lines += [f"change: {view.change}"] if view.change else []
    lines += [f"it waits: {view.change_problem}"] if view.change_problem else []
    lines += [view.facts["difference"]] if "difference" in view.facts else []
    lines += [
        f"{name}: {answer.facts['problem']}" for name, answer in view.answers.items() if "problem" in answer.facts
    ]
    older = [name for name, answer in view.answers.items() if int(answer.facts["map"]) < view.number]
    # A spare begins with the map of its site file, and hears of newer ones when it is added.
    older = [name for name in older if name in view.members]
    if older:
        lines.append(f"{', '.join(older)}: {'has' if len(older) == 1 else 'have'} not heard of this map yet")
    silent = [name for name in view.members if name not in view.answers and name == view.keeper]
    return lines + [f"{name} does not answer: without it no change begins" for name in silent]
