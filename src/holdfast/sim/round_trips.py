"""Reads a measured network: a square table of round-trip times, and makes one-way delays of it.

The file is text, one line per row, cells apart by tabs, milliseconds; plain, or packed where its name ends in `.xz` or
`.gz`. Row i, column j is the round trip from host i to host j, and half of it is taken for the way from i to j.

Measurements have holes. A cell that is empty, `-`, `NA`, not a number, infinite, zero or negative was not measured. Its
value is that of the opposite direction, and where that is missing too, the median of all cells that were measured. The
diagonal is never read as a delay: a host's way to itself is no business of a table of round trips.

It never guesses what a malformed file meant: whatever is no such table is refused with its line.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from array import array
from math import inf, nan
from pathlib import Path
from statistics import median_high

import msgspec

from holdfast.errors import ScenarioError

# Half of a millisecond, in nanoseconds. What rounds to none is taken for one, since none means not measured.
ONE_WAY_NS_PER_MS = 500_000
ROUND_TRIP_MS_MAX = 3_600_000
NOT_MEASURED = frozenset({"", "-", "NA"})
_MISSING = 0


class RoundTrips(msgspec.Struct, frozen=True, kw_only=True):
    """One-way delays between the hosts 0 … hosts - 1, all present and positive but on the diagonal."""

    hosts: int
    one_way_ns: array[int]

    def delay_ns(self, source: int, target: int) -> int:
        """The delay of the way from one host to another."""
        return self.one_way_ns[source * self.hosts + target]


def read_round_trips(path: Path) -> RoundTrips:
    """Reads and repairs the table, or raises ScenarioError."""
    lines = _text(path).rstrip("\r\n").split("\n")
    if lines == [""]:
        raise ScenarioError("the file is empty", str(path), "give a table of round trips")
    hosts = len(lines)
    cells = array("q")
    for number, line in enumerate(lines, start=1):
        row, where = line.rstrip("\r").split("\t"), f"{path}:{number}"
        if len(row) != hosts:
            problem = f"the row has {_count(len(row), 'cell')} in a table of {_count(hosts, 'row')}"
            raise ScenarioError(problem, where, "give as many cells, apart by tabs, as there are rows")
        cells.extend(_one_way_ns(row, where))
    _repair(cells, hosts, path)
    return RoundTrips(hosts=hosts, one_way_ns=cells)


def _text(path: Path) -> str:
    try:
        packed = path.read_bytes()
        match path.suffix:
            case ".xz":
                packed = lzma.decompress(packed)
            case ".gz":
                packed = gzip.decompress(packed)
        return packed.decode("ascii")
    except FileNotFoundError as error:
        raise ScenarioError("there is no such file", str(path), "give the path of a table of round trips") from error
    except (OSError, EOFError, lzma.LZMAError, zlib.error, UnicodeDecodeError) as error:
        remedy = "give a readable text file, plain, or packed with its suffix .xz or .gz"
        raise ScenarioError(f"the file can't be read ({error})", str(path), remedy) from error


def _one_way_ns(row: list[str], where: str) -> list[int]:
    try:
        round_trips_ms = list(map(float, row))
    except ValueError:
        round_trips_ms = [_round_trip_ms(cell.strip(), where) for cell in row]
    for cell, round_trip_ms in zip(row, round_trips_ms, strict=True):
        if ROUND_TRIP_MS_MAX < round_trip_ms < inf:
            raise ScenarioError(f"a round trip of {cell[:40]} ms", where, "give milliseconds, an hour at most")
    # Whatever is not measured, a NaN too, is not between these bounds.
    return [(round(ms * ONE_WAY_NS_PER_MS) or 1) if 0 < ms <= ROUND_TRIP_MS_MAX else _MISSING for ms in round_trips_ms]


def _round_trip_ms(cell: str, where: str) -> float:
    if cell in NOT_MEASURED:
        return nan
    try:
        return float(cell)
    except ValueError as error:
        remedy = "give milliseconds, or leave the cell empty where nothing was measured"
        raise ScenarioError(f"{cell[:40]!r} is no number", where, remedy) from error


def _repair(cells: array[int], hosts: int, path: Path) -> None:
    """Fills what was not measured, in place, and clears the diagonal."""
    for host in range(hosts):
        cells[host * hosts + host] = _MISSING
    holes = [place for place, cell in enumerate(cells) if cell == _MISSING and place // hosts != place % hosts]
    if not holes:
        return
    measured = [cell for cell in cells if cell != _MISSING]
    if not measured:
        raise ScenarioError("no cell holds a measured round trip", str(path), "give a table with measurements")
    middle = median_high(measured)
    opposite = [cells[place % hosts * hosts + place // hosts] for place in holes]
    for place, cell in zip(holes, opposite, strict=True):
        cells[place] = cell or middle


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
