"""`holdfast standin watch` and `history`: what goes on around stand-ins, and what went on."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator

from holdfast.cli.main import CHECK_FAILED, OK, UsageError
from holdfast.cli.network_view import WAIT_S_MAX, Network, View, look_within, nobody
from holdfast.protocols.operating.messages import HistoryEntry
from holdfast.protocols.operating.operator import Unreachable

LOOK_EVERY_S = 0.25
NOTHING = "nobody stands in for another, and nobody complains"


def add_watch_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--seconds", type=float, default=0.0, metavar="SECONDS", help="end then (default 0: go on until interrupted)"
    )


async def watch(network: Network, arguments: argparse.Namespace) -> int:
    """Prints each thing that is said when it is first said, and that it is over."""
    if not 0 <= arguments.seconds < WAIT_S_MAX:
        raise UsageError(f"--seconds is {arguments.seconds:g}, and has to be from 0 to {WAIT_S_MAX:g}")
    view = await look_within(network, arguments.wait)
    if view is None:
        return nobody(network)
    clock = asyncio.get_running_loop().time
    until = clock() + arguments.seconds if arguments.seconds else float("inf")
    said: dict[str, str] = {}
    if not dict(_said(view)):
        _print(NOTHING)
    while True:
        now = {} if view is None else dict(_said(view))
        for topic, text in now.items():
            if said.get(topic) != text and _is_news(said.get(topic, ""), text):
                _print(text)
        for topic in said.keys() - now.keys() if view is not None else ():
            _print(f"over: {topic}")
        said = now if view is not None else said
        if clock() >= until:
            return OK
        await asyncio.sleep(min(LOOK_EVERY_S, max(0.0, until - clock())))
        view = await network.look()


def _said(view: View) -> Iterator[tuple[str, str]]:
    """By topic, which stays the same while a text may go on to change."""
    for name, by in view.resting.items():
        if by:
            yield f"{by} stands in for {name}", f"{by} stands in for {name}"
    for name, by in view.sharing.items():
        yield f"{by} shares the work of {name}", f"{by} shares the work of {name}"
    if view.change:
        yield "the change", f"change: {view.change}"
    for broker, answer in view.answers.items():
        facts = answer.facts
        for complaint in filter(None, facts.get("complaints", "").split("; ")):
            about = complaint.partition(":")[0]
            yield f"{broker} complains of {about}", f"{broker} complains of {complaint}"
        for fact, topic in (("standin_case", "sees to it"), ("standin_back", "waits"), ("standin_problem", "failed")):
            if fact in facts:
                yield f"{broker} {topic}", f"{broker}: {facts[fact]}"


def _is_news(before: str, text: str) -> bool:
    """A complaint is said once, though its seconds count up."""
    return not before or " complains of " not in text


def _print(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


async def history(network: Network, arguments: argparse.Namespace) -> int:
    """What brokers remember, in the order of their clocks."""
    view = await look_within(network, arguments.wait)
    if view is None:
        return nobody(network)
    told = await asyncio.gather(*(desk.history() for desk in view.desks.values()))
    entries: list[tuple[HistoryEntry, str]] = []
    for answer in told:
        if not isinstance(answer, Unreachable):
            entries += [(entry, answer.broker) for entry in answer.entries]
    if not entries and not any("sla" in answer.facts for answer in view.answers.values()):
        print("these brokers remember nothing of stand-ins: the site file has no [standin.sla]")
        return CHECK_FAILED
    for entry, broker in sorted(entries, key=lambda one: (one[0].wall, one[1])):
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.wall / 1e9))
        print(f"{at} {broker:<4} map {entry.number}: {entry.text}")
    if not entries:
        print("nothing has happened")
    return OK
