"""How the machines of Los Alamos failed from 1996 to 2005, and what that predicts (D1-F3, D1-H1).

    python -m experiments.qos.lanl FILE          # lanl-failures-1996-2005.csv.xz, or .csv

For each large system: availability, how far repair times are from exponential, and the probability that whoever needs a
node at any time has it within ten minutes, an hour, six hours: as it was, by exponential times, and by fitted ones.
"""

from __future__ import annotations

import csv
import io
import lzma
import sys
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from holdfast.qos.fitting import Observed, distance_from_exponential, part_fitted
from holdfast.qos.waiting import wait_for

LIFETIMES = (600, 3_600, 6 * 3_600)
FORM = "%m/%d/%Y %H:%M"


class NodeOutage(NamedTuple):
    system: str
    node: str
    began: datetime
    ended: datetime


def read_outages(path: Path) -> list[NodeOutage]:
    """All with times that can be read and that do not end before they begin."""
    data = path.read_bytes()
    text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode("utf-8", errors="replace")
    found = []
    for row in csv.DictReader(io.StringIO(text)):
        try:
            began, ended = (datetime.strptime(row[key].strip(), FORM) for key in ("Prob Started", "Prob Fixed"))
        except ValueError:
            continue
        if ended >= began:
            found.append(NodeOutage(row["System"], row["nodenumz"], began, ended))
    return found


def intervals_of(outages: Sequence[NodeOutage], system: str) -> tuple[list[Observed], list[Observed]]:
    """On and off times of a system's nodes. A node is looked at from when it first failed to when it last did, since
    nothing tells when it came and went; outages that overlap are one."""
    nodes: dict[str, list[NodeOutage]] = {}
    for outage in outages:
        if outage.system == system:
            nodes.setdefault(outage.node, []).append(outage)
    on, off = [], []
    for found in nodes.values():
        found.sort(key=lambda outage: outage.began)
        merged: list[tuple[datetime, datetime]] = []
        for outage in found:
            if merged and outage.began <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], outage.ended))
            else:
                merged.append((outage.began, outage.ended))
        for (begin, end), (following, _) in pairwise(merged):
            off.append(Observed(max((end - begin).total_seconds(), 30.0)))
            on.append(Observed((following - end).total_seconds()))
    return on, off


def within(on: Sequence[Observed], off: Sequence[Observed], lifetime: float) -> float:
    """The share of all time from which on a node was on within the lifetime."""
    up, down = sum(one.seconds for one in on), sum(one.seconds for one in off)
    return (up + sum(min(one.seconds, lifetime) for one in off)) / (up + down)


def main(words: Sequence[str]) -> None:
    if len(words) != 1:
        sys.exit("usage: python -m experiments.qos.lanl FILE")
    outages = read_outages(Path(words[0]))
    counts: dict[str, int] = {}
    for outage in outages:
        counts[outage.system] = counts.get(outage.system, 0) + 1
    print("system  outages  availability  distance  within    as it was  exponential   fitted")
    for system in sorted(counts, key=lambda name: -counts[name])[:6]:
        on, off = intervals_of(outages, system)
        plain, fitted = part_fitted(on, off, mixtures=False), part_fitted(on, off)
        distance, _ = distance_from_exponential(off)
        for place, lifetime in enumerate(LIFETIMES):
            head = (
                f"{system:>6}  {len(off):7,}  {fitted.availability:12.6f}  {distance:8.3f}" if not place else " " * 39
            )
            values = [within(on, off, lifetime), *(wait_for([part]).within(lifetime) for part in (plain, fitted))]
            print(f"{head}  {lifetime:6} s  {values[0]:9.6f}  {values[1]:11.6f}  {values[2]:7.6f}")


if __name__ == "__main__":
    main(sys.argv[1:])
