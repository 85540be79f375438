"""`holdfast network add-broker | remove-broker | add-link | remove-link`: what is asked for, and how it looks then."""

from __future__ import annotations

import argparse
from typing import Any

from holdfast.cli import changing
from holdfast.cli.changing import Wanted, add_wait_argument
from holdfast.cli.main import UsageError
from holdfast.cli.network_view import Network
from holdfast.cli.newcomer import add_address_arguments, told_of

GOES_ON = "what has begun goes on: `holdfast network show` shows it"
IF_LOST_ANSWERS = "stop it for good first, or take it out without --lost"


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
        add_wait_argument(verb)
        verb.set_defaults(action=action)
    return [add, remove, add_link, remove_link]


def _wanted(arguments: argparse.Namespace) -> Wanted:
    action: str = arguments.action
    match action:
        case "add-broker":
            at, between = arguments.at, arguments.between
            told = told_of(arguments, arguments.id) | {"at": at} | ({"between": between} if between else {})
            joined = ((at, arguments.id), *([(between, arguments.id)] if between else []))
            parted = ((at, between),) if between else ()
            return Wanted(action, told, GOES_ON, present=arguments.id, joined=joined, parted=parted)
        case "remove-broker":
            told = {"id": arguments.id} | ({"at": arguments.at} if arguments.at else {})
            if arguments.also_lost and not arguments.lost:
                raise UsageError("--also-lost goes with --lost: the one that --id names is lost, too")
            told |= {"lost": "yes"} if arguments.lost else {}
            told |= {"also_lost": ",".join(arguments.also_lost)} if arguments.also_lost else {}
            lost = (arguments.id, *arguments.also_lost) if arguments.lost else ()
            return Wanted(action, told, GOES_ON, absent=arguments.id, lost=lost, if_lost_answers=IF_LOST_ANSWERS)
        case "add-link":
            one, other = arguments.between
            told, parted = {"one": one, "other": other}, ()
            if arguments.instead_of:
                told["instead_of"] = ",".join(arguments.instead_of)
                parted = (tuple(arguments.instead_of),)
            return Wanted(action, told, GOES_ON, joined=((one, other),), parted=parted)
        case _:
            one, other = arguments.between
            return Wanted(action, {"one": one, "other": other}, GOES_ON, parted=((one, other),))


async def carry_out(network: Network, arguments: argparse.Namespace) -> int:
    return await changing.carry_out(network, _wanted(arguments), arguments.wait)
