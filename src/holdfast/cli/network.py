"""`holdfast network`: who belongs to a network and who is joined with whom; and changing that while events flow."""

from __future__ import annotations

import argparse

from holdfast.cli import network_changes
from holdfast.cli.main import OK
from holdfast.cli.network_view import Network, View, add_look_argument, look_within, nobody, run_with_network
from holdfast.cli.where import DEFAULT_URL

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    show = verbs.add_parser("show", help="print who belongs to the network, its links, and what is under way")
    add_look_argument(show)
    shows = [(show, _show), *((verb, network_changes.carry_out) for verb in network_changes.add_verbs(verbs))]
    for verb, run in shows:
        verb.add_argument("where", metavar="SITE|URL", nargs="?", default=DEFAULT_URL, help=f"default {DEFAULT_URL}")
        verb.set_defaults(run=run_with_network, show=run)


async def _show(network: Network, arguments: argparse.Namespace) -> int:
    view = await look_within(network, arguments.wait)
    if view is None:
        return nobody(network)
    for line in shown(view):
        print(line)
    return OK


def shown(view: View) -> list[str]:
    """What there is to say of a network."""
    lines = [f"members: {', '.join(view.members)}; {view.keeper} keeps the order of changes; map {view.number}"]
    lines.append(f"links: {', '.join(view.links)}")
    lines += [f"{by} stands in for {name}" for name, by in view.resting.items() if by]
    lines += [f"{by} shares the work of {name}" for name, by in view.sharing.items()]
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
