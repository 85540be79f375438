"""The proof at the end of ./demo: what the log of a group says, and whether everyone agrees with it.

Viewers are counted from the log once more, in the simplest way and with nothing of ZapViewers: a dictionary of boxes.
And a viewership that never failed is fed with the log: its boxes and channels have to be those of the replicas, to the
last byte.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import holdfast
from experiments.processes import LOOK_EVERY_S
from experiments.replication.group import ReplicaGroup
from holdfast.apps.zapviewers.asking import ask_counts, ask_top
from holdfast.apps.zapviewers.viewership import ASKED_CHANNELS_MAX, ZAP, Viewership
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.messages import Inspected

EQUAL_WITHIN_S = 30.0


class Entry(NamedTuple):
    """An event of the log."""

    position: int
    topic: str
    publication: tuple[int, int]  # publisher and number; of no other topic than `zap`
    payload: bytes


class ReplicaState(NamedTuple):
    """How far a replica is, and a digest of the state of its viewership."""

    position: int
    digest: str


class Evidence(NamedTuple):
    """All that can be seen from outside when nothing is under way any more."""

    acknowledged: Sequence[tuple[int, int]]
    log: Sequence[Entry]
    states: dict[str, ReplicaState]
    top: dict[str, int]  # viewers by channel, as the group answers
    counts: dict[str, Any]


class Proof(NamedTuple):
    acknowledged: int
    lines: int
    lost: int
    doubled: int
    position: int
    viewers: int
    problems: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.acknowledged:,} publications acknowledged, with {self.lines:,} lines: "
        return f"{text}{self.lost} lost, {self.doubled} doubled; {self.viewers:,} viewers at position {self.position:,}"


async def gather(group: ReplicaGroup, acknowledged: Sequence[tuple[int, int]]) -> Evidence:
    """Call it when all publishers are done."""
    async with holdfast.connect(group.url) as bus:
        log = [entry_of(event) async for event in bus.read()]
        top = await ask_top(bus, ASKED_CHANNELS_MAX)
        counts = await ask_counts(bus)
    return Evidence(acknowledged, log, await equal_states(group), dict(top["top"]), counts)


def entry_of(event: holdfast.ReceivedEvent) -> Entry:
    said = event.attributes
    publication = (int(said["publisher"]), int(said["number"])) if event.topic == ZAP else (0, 0)
    position = event.position.number if event.position is not None else 0
    return Entry(position, event.topic, publication, event.payload)


async def equal_states(group: ReplicaGroup) -> dict[str, ReplicaState]:
    """The states of all replicas once they are equally far, or when time is up."""
    deadline = asyncio.get_running_loop().time() + EQUAL_WITHIN_S
    while True:
        states = dict(zip(group.names, await asyncio.gather(*map(state_of, group.addresses.values())), strict=True))
        if len({state.position for state in states.values()}) == 1 or asyncio.get_running_loop().time() > deadline:
            return states
        await asyncio.sleep(LOOK_EVERY_S)


async def state_of(address: str) -> ReplicaState:
    async with BrokerDesk(address) as desk:
        answer = await desk.inspect(0, application=True)
        if not isinstance(answer, Inspected):
            return ReplicaState(-1, answer.reason)
        return ReplicaState(answer.measures["log_head"], answer.facts["application_digest"])


# --------------------------------------------------------------------------------------------------------- judgement
def recount(payloads: Iterable[bytes]) -> dict[str, int]:
    """Viewers by channel."""
    channels: dict[str, str] = {}
    on: set[str] = set()
    for payload in payloads:
        for line in payload.decode().split("\n"):
            _, _, box, said, *more = line.split(",")
            if more:
                channels[box] = said
            if more or said == "power on":
                on.add(box)
            elif said == "power off":
                on.discard(box)
    return dict(Counter(channels[box] for box in on if box in channels))


def replay(log: Iterable[Entry]) -> Viewership:
    """One that was fed with the log."""
    viewership = Viewership()
    for entry in log:
        viewership.observe(entry.position, 0, entry.topic, {}, entry.payload)
    return viewership


def judge(evidence: Evidence) -> Proof:
    problems = []
    zaps = [entry for entry in evidence.log if entry.topic == ZAP]
    there = Counter(entry.publication for entry in zaps)
    lost = sum(not there[publication] for publication in evidence.acknowledged)
    doubled = sum(count - 1 for count in there.values())
    if lost:
        problems.append(f"{lost} publications were acknowledged and are not in the log")
    if doubled:
        problems.append(f"{doubled} publications are in the log again")
    head = len(evidence.log)
    if [entry.position for entry in evidence.log] != list(range(1, head + 1)):
        problems.append(f"positions are not 1 to {head:,}")
    if {state.position for state in evidence.states.values()} != {head}:
        problems.append(f"the replicas are not all at position {head:,}: {evidence.states}")
    if len({state.digest for state in evidence.states.values()}) != 1:
        problems.append(f"the viewerships of the replicas differ: {evidence.states}")
    viewers = recount(entry.payload for entry in zaps)
    if viewers != evidence.top:
        wrong = sorted(name for name in viewers | evidence.top if viewers.get(name) != evidence.top.get(name))
        problems.append(f"counted again from the log, others watch {', '.join(wrong)}")
    replayed = json.loads(replay(evidence.log).execute(b'{"ask": "counts"}'))
    for name in ("events", "lines", "malformed", "anomalies", "boxes", "audience", "position"):
        if replayed[name] != evidence.counts[name]:
            problems.append(f"{name}: {evidence.counts[name]}, and {replayed[name]} when fed with the log")
    lines = sum(entry.payload.count(b"\n") + 1 for entry in zaps)
    return Proof(len(evidence.acknowledged), lines, lost, doubled, head, sum(viewers.values()), tuple(problems))
