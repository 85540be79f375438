"""`holdfast standin`: lets a spare take the place of a broker that failed, while events flow; and gives it back."""

from __future__ import annotations

import argparse

from holdfast.cli import changing, standin_watch
from holdfast.cli.changing import Wanted, add_wait_argument
from holdfast.cli.main import OK, UsageError
from holdfast.cli.network_view import Network, View, add_look_argument, look_within, nobody, run_with_network
from holdfast.cli.newcomer import add_address_arguments, told_of
from holdfast.protocols.routing.network_map import REPLACING, StandInMode, StandInProtocol

EXAMPLES = """\
examples:
  holdfast standin show site.toml                who stands in for whom, what is under way, which spares are there
  holdfast standin replace site.toml b3 --by b8  b3 is down; b8 runs, with an empty folder, and is `spare` in the file
  holdfast standin replace site.toml b3 --by b8 --protocol increm
  holdfast standin replace site.toml b3 --by b8 --mode ms    b3 is slow: b8 shares its work
  holdfast standin relieve site.toml b3          b3 is to be stopped for a while: a spare takes its place over
  holdfast standin hand-back site.toml b3        b3 runs again, and has its place, or all its work, back
  holdfast standin watch site.toml               what goes on, as it goes on
  holdfast standin history site.toml             what happened, and why

A change that has begun goes on when this command is interrupted, or when its time is up.
exit code 1 if no broker of the network answers after a while (`--wait`), or if what was asked for does not come about
"""
GOES_ON = "what has begun goes on: `holdfast standin show` shows it"
HAVE = ("stand_ins", "[standin]")
SEES = ("sla", "[standin.sla]")
IF_FAULTY_ANSWERS = "stop it first; what it has not passed on is on its disk, and goes on when it has its place back"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    show = verbs.add_parser("show", help="print who stands in for whom, what is under way, and which spares are there")
    replace = verbs.add_parser("replace", help="let a broker that is no member take the place of one that failed")
    relieve = verbs.add_parser("relieve", help="let a spare take the place of a broker that runs, and is to be stopped")
    hand_back = verbs.add_parser(
        "hand-back", help="give a broker that is well again the place or the work that its stand-in has"
    )
    watch = verbs.add_parser("watch", help="print complaints, replacements and hand-backs as they come")
    history = verbs.add_parser("history", help="print what happened, as brokers remember it")
    for verb, run in (
        (show, _show), (replace, _replace), (relieve, _relieve), (hand_back, _hand_back),
        (watch, standin_watch.watch), (history, standin_watch.history),
    ):  # fmt: skip
        verb.add_argument("where", metavar="SITE|URL")
        verb.set_defaults(run=run_with_network, show=run)
    for verb in (show, watch, history):
        add_look_argument(verb)
    standin_watch.add_watch_arguments(watch)
    replace.add_argument("id", metavar="ID", help="the broker that failed, and is stopped; or is slow")
    relieve.add_argument("id", metavar="ID", help="the broker that is to be stopped, and runs until then")
    for verb in (replace, relieve):
        verb.add_argument(
            "--by", default="", metavar="ID",
            help="the broker that takes its place, and runs (default: a spare that is free, in sites with"
            " [standin.sla])",
        )  # fmt: skip
    replace.add_argument(
        "--protocol", choices=[each.value for each in StandInProtocol], default=StandInProtocol.SYNCH.value,
        help="how events go on meanwhile: basic, at once, as far as the stand-in knows; synch, when it knows everything"
        " (default); increm, each when it knows of somebody who wants it",
    )  # fmt: skip
    replace.add_argument(
        "--mode", choices=[each.value for each in REPLACING], default=StandInMode.FAILOVER.value,
        help="failover: for a broker that is down (default); ms: for one that is slow, whose work is shared; ms-ro: …"
        " and put in order again",
    )  # fmt: skip
    replace.add_argument(
        "--also-lost", action="append", default=[], metavar="ID",
        help="another that is down, and is not waited for; replace it, or declare it lost, next",
    )  # fmt: skip
    hand_back.add_argument("id", metavar="ID", help="the broker that was replaced or slow, and runs, with its folder")
    for verb in (replace, relieve, hand_back):
        add_address_arguments(verb)
        add_wait_argument(verb)


async def _replace(network: Network, arguments: argparse.Namespace) -> int:
    faulty, by = arguments.id, _by(arguments)
    mode = StandInMode(arguments.mode)
    told = _told(arguments) | {"protocol": arguments.protocol, "mode": mode.value}
    if arguments.also_lost and not by:
        raise UsageError("--also-lost goes with --by: where two are down, name the spare")
    told |= {"also_lost": ",".join(arguments.also_lost)} if arguments.also_lost else {}
    lost = (*arguments.also_lost,)
    wanted = Wanted(
        "replace", told, GOES_ON, present=by, lost=lost, if_lost_answers=IF_FAULTY_ANSWERS,
        all_have=HAVE if by else SEES, seeks_for="" if by else faulty,
    )  # fmt: skip
    if mode.shares:
        wanted = wanted._replace(shared=(faulty, by) if by else None, shares_for="" if by else faulty)
    else:
        wanted = wanted._replace(absent=faulty, lost=(faulty, *wanted.lost))
    return await changing.carry_out(network, wanted, arguments.wait)


async def _relieve(network: Network, arguments: argparse.Namespace) -> int:
    name, by = arguments.id, _by(arguments)
    wanted = Wanted(
        "relieve", _told(arguments), GOES_ON, present=by, absent=name,
        all_have=HAVE if by else SEES, seeks_for="" if by else name,
    )  # fmt: skip
    return await changing.carry_out(network, wanted, arguments.wait)


def _by(arguments: argparse.Namespace) -> str:
    by: str = arguments.by
    if arguments.id == by:
        raise UsageError(f"{by} can't stand in for itself: name a spare with --by")
    if not by and (arguments.address or arguments.peer_address):
        raise UsageError("--address and --peer-address are those of the spare: name it with --by")
    return by


def _told(arguments: argparse.Namespace) -> dict[str, str]:
    if not arguments.by:
        return {"id": arguments.id}
    return told_of(arguments, arguments.by) | {"id": arguments.id, "by": arguments.by}


async def _hand_back(network: Network, arguments: argparse.Namespace) -> int:
    told, name = told_of(arguments, arguments.id), arguments.id
    wanted = Wanted("hand-back", told, GOES_ON, present=name, unshared=name, all_have=HAVE)
    return await changing.carry_out(network, wanted, arguments.wait)


async def _show(network: Network, arguments: argparse.Namespace) -> int:
    view = await look_within(network, arguments.wait)
    if view is None:
        return nobody(network)
    for line in _shown(view, _listed_spares(arguments)):
        print(line)
    return OK


def _listed_spares(arguments: argparse.Namespace) -> list[str]:
    return [] if arguments.site is None else [entry.id for entry in arguments.site.brokers if entry.spare]


def _shown(view: View, listed: list[str]) -> list[str]:
    """Who stands where, what is under way, and who could stand in: spares of the site file, and whoever answers and is
    no member."""
    lines = [_place(name, by, view) for name, by in view.resting.items() if by]
    lines += [f"{by} shares the work of {name}" for name, by in view.sharing.items()]
    lines = lines or ["nobody stands in for another"]
    lines += [f"change: {view.change}"] if view.change else []
    lines += [f"it waits: {view.change_problem}"] if view.change_problem else []
    away = [name for name, by in view.resting.items() if by]
    outside = dict.fromkeys([*listed, *view.answers])
    spares = [name for name in outside if name not in view.members and name not in away]
    there = [name for name in spares if name in view.answers]
    lines.append(f"spares: {', '.join(there) or 'none that answers'}")
    return lines + [f"{name} is a spare, and does not answer" for name in spares if name not in view.answers]


def _place(name: str, by: str, view: View) -> str:
    answers = "runs again: `hand-back` gives it its place" if name in view.answers else "does not answer"
    return f"{by} stands in for {name}, which {answers}"
