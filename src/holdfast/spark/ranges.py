"""Ranges of positions: how one is cut into partitions, and how a partition is read."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from holdfast.errors import PositionGone
from holdfast.model.event import join_arrays
from holdfast.model.position import Position
from holdfast.protocols.cursors.requests import EncodedEvents
from holdfast.spark.columns import EventColumns
from holdfast.spark.options import SourceOptions
from holdfast.spark.patience import open_bus
from holdfast.spark.schema import Layout

PARTITION_EVENTS_MIN = 5_000  # fewer are not worth a task of their own
BATCH_EVENTS = 10_000  # about as many rows as Spark takes at a time

log = logging.getLogger("holdfast.spark")


@dataclass(frozen=True)
class PositionRange(InputPartition):
    """The positions from `start` to `end`, both included, of one log."""

    log_id: str
    start: int
    end: int


def partitions_of(log_id: str, start: int, end: int, count: int | None) -> list[PositionRange]:
    """A range in `count` parts of about the same size; if it is None, in one for each core, if they are worth it."""
    total = end - start + 1
    if total <= 0:
        return []
    wanted = max(1, min(os.cpu_count() or 1, total // PARTITION_EVENTS_MIN)) if count is None else count
    count = min(wanted, total)
    edges = [start + total * place // count for place in range(count + 1)]
    return [PositionRange(log_id, begin, behind - 1) for begin, behind in pairwise(edges)]


def read_range(options: SourceOptions, layout: Layout, part: PositionRange) -> Iterator[pa.RecordBatch]:
    """The events of a range that match, as record batches. PositionGone if a part of it is not there any more."""
    if part.start > part.end:
        return
    columns = EventColumns(layout)
    with closing(open_bus(options.url, options.wait_s)) as bus:
        sent = 0
        try:
            start, end = Position(part.log_id, part.start), Position(part.log_id, part.end)
            for read in _gathered(bus.read_encoded(options.filter, start, end, at_least=part.end)):
                sent += len(read.events)
                yield columns.batch(read)
        except PositionGone as error:
            raise gone(error, part.start) from error
    log.info("positions %d to %d: %d of %d events sent", part.start, part.end, sent, part.end - part.start + 1)


def gone(error: PositionGone, wanted: int) -> PositionGone:
    """The same, with what to do about it."""
    return PositionGone(
        f"{error.problem}. The query needs position {wanted}: begin anew from another place, with a new checkpoint "
        "(option 'from'), and give a stream a 'name', so that the broker keeps what it has not read.",
        error.tail,
    )


def _gathered(reads: Iterator[EncodedEvents]) -> Iterator[EncodedEvents]:
    """The same events in larger pieces: each costs Spark some time of its own."""
    positions: list[int] = []
    gathered: list[EncodedEvents] = []
    for read in reads:
        positions += read.positions
        gathered.append(read)
        if len(positions) >= BATCH_EVENTS:
            yield _together(gathered, positions)
            positions, gathered = [], []
    if gathered:
        yield _together(gathered, positions)


def _together(reads: list[EncodedEvents], positions: list[int]) -> EncodedEvents:
    events = join_arrays([read.events for read in reads])
    return EncodedEvents(reads[-1].through, reads[-1].log_id, positions, events, sum(read.scanned for read in reads))
