"""Whether clients saw one broker that never failed: nothing lost, doubled or in another order, anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from experiments.durability.broker import problems
from experiments.replication.load import Records, Sent


class Verdict(NamedTuple):
    """Counts over all subscribers and the log read back; all but the first three should be 0."""

    acknowledged: int
    read_back: int
    delivered: tuple[int, ...]  # to each subscriber
    lost: int  # acknowledged, and missing somewhere
    doubled: int
    inverted: int
    problems: tuple[str, ...]  # in words

    def __str__(self) -> str:
        each = sorted(set(self.delivered))
        got = f"{each[0]:,}" if len(each) == 1 else ", ".join(f"{count:,}" for count in self.delivered)
        found = "" if not self.problems else "\n  " + "\n  ".join(self.problems)
        return (
            f"{self.acknowledged:,} events acknowledged, {self.read_back:,} read back, {got} delivered to each of "
            f"{len(self.delivered)} subscribers: {self.lost} lost, {self.doubled} doubled, {self.inverted} out of order"
            f"{found}"
        )


def judge(records: Records, heads: dict[str, int]) -> Verdict:
    """`heads` are the replicas' own, when nothing is under way any more."""
    wrong: list[str] = []
    expected = records.log
    if records.unreadable:
        wrong.append(f"the log can't be read back: {records.unreadable}")
        expected = next(iter(records.order.values()))  # subscribers can still be compared with each other
    total = len(expected)
    if records.positions != list(range(1, total + 1)):
        wrong.append(f"positions are not 1 to {total:,}")
    if set(heads.values()) != {total}:
        wrong.append(f"the heads of the replicas differ, or are not {total:,}: {heads}")
    if records.gaps:
        wrong.append(f"plain subscriptions were forgotten {records.gaps} times")
    place = {event: number for number, event in enumerate(expected)}
    lost = sum(event not in place for event in records.claimed)
    doubled = inverted = 0
    if lost:
        wrong.append(f"the log: {lost} events that a deposed leader acknowledged are missing")
    for where, order in {"the log": records.log, **records.order}.items():
        by_publisher: dict[str, list[int]] = {}
        for publisher, number in order:
            by_publisher.setdefault(publisher, []).append(number)
        acknowledged = records.ledger.acknowledged
        wrong += problems(acknowledged, by_publisher, where)
        there = set(order)
        lost += sum((name, n) not in there for name, last in acknowledged.items() for n in range(1, last + 1))
        doubled += len(order) - len(there)
        inverted += inversions(order, place)
        if order != expected:
            wrong.append(f"{where}: other events than the log has, or in another order")
    delivered = tuple(len(order) for order in records.order.values())
    return Verdict(records.acknowledged, len(records.log), delivered, lost, doubled, inverted, tuple(wrong))


def inversions(order: Sequence[Sent], place: dict[Sent, int]) -> int:
    """How often one event came right after another that follows it in the log."""
    places = [place[event] for event in order if event in place]
    return sum(later < earlier for earlier, later in pairwise(places))
