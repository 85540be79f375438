"""`spark.readStream.format("holdfast")`: a log as a stream.

An offset is {"log": the log's id, "next": the number of the next position}: a range between two of them is the same
events whenever it is read, which is half of exactly once. With a name, what Spark is done with is acknowledged, and the
broker keeps the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from holdfast.client.blocking import BlockingBus, BlockingNamedSubscription
from holdfast.errors import PositionGone
from holdfast.model.position import Position
from holdfast.spark.options import NEW, SourceOptions
from holdfast.spark.patience import open_bus
from holdfast.spark.places import number_of
from holdfast.spark.ranges import PositionRange, gone, partitions_of, read_range
from holdfast.spark.schema import Layout

IDLE_S = 0.5  # that a query with nothing to do waits for an event before it looks whether it is to stop


class HoldfastStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in the driver's Python process as long as the query; `read` runs on executors, on a copy."""

    def __init__(self, options: SourceOptions, layout: Layout) -> None:
        self._options = options
        self._layout = layout
        self._until: int | None = None  # with AvailableNow: the last position
        self._latest: dict[str, Any] | None = None
        self._began: dict[str, Any] = {}  # where a query without a checkpoint began
        self._coming: tuple[int, Future[Position]] | None = None
        self._bus: BlockingBus | None = None
        self._named: BlockingNamedSubscription | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What goes to executors has no connection: each makes its own."""
        return {**self.__dict__, "_bus": None, "_named": None, "_coming": None}

    # ------------------------------------------------------------------------------------------------------ offsets
    def initialOffset(self) -> dict[str, Any]:
        bus = self._open()
        if self._options.name is not None:
            named = self._name(self._options.start)
            first = _offset(bus.head().log, named.acknowledged + 1)
        else:
            log = bus.head().log
            first = _offset(log, number_of(bus, self._options.start or NEW))
        self._began = {"began": first["next"]}
        return first

    def prepareForTriggerAvailableNow(self) -> None:
        self._until = self._open().head().number

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_events_per_batch
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        bus = self._open()
        begin = int(start["next"])
        tail, head = bus.bounds()
        if begin > head.number and self._until is None:
            head = self._wait_for(begin, head)
        self._latest = _offset(head.log, head.number + 1) | self._began
        if start["log"] != head.log:
            problem = f"the checkpoint is of log {start['log'][:8]}, and the broker's is {head.log[:8]}"
            raise gone(PositionGone(problem, tail.number), begin)
        if begin > head.number + 1:
            # A broker acknowledges what is on its disk: one that knows less has another disk, or lost it.
            raise gone(PositionGone(f"the log ends at position {head.number}", tail.number), begin)
        if begin < tail.number:
            raise gone(PositionGone(f"the log begins at position {tail.number}", tail.number), begin)
        end = head.number if self._until is None else max(begin - 1, min(self._until, head.number))
        if isinstance(limit, ReadMaxRows):
            end = min(end, begin - 1 + limit.max_rows)
        return _offset(head.log, end + 1)

    def _wait_for(self, position: int, head: Position) -> Position:
        """The head, when the log has reached a position, or else as it was: Spark asks again at once, without end. A
        question stays asked until it is answered, and is not asked twice."""
        if self._coming is None or self._coming[0] != position:
            self._coming = (position, self._open().head_later(position))
        try:
            reached = self._coming[1].result(IDLE_S)
        except TimeoutError:
            return head
        self._coming = None
        return reached

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """For a query's progress, whose first batch has no other word on where it began."""
        return self._latest

    # ------------------------------------------------------------------------------------------------------ reading
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[PositionRange]:
        return partitions_of(end["log"], int(start["next"]), int(end["next"]) - 1, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, PositionRange)
        return read_range(self._options, self._layout, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark never asks for anything before `end` again."""
        if self._options.name is None:
            return
        done = int(end["next"]) - 1
        if self._named is not None:
            # It is refused if another one has taken the name over meanwhile, which is not to be taken back.
            self._named.ack_up_to(Position(end["log"], self._named.acknowledged))
            self._named.close()
        # What was read as ranges did not come by way of the name, so it can't be acknowledged: the name is moved. Of a
        # query that was started from its checkpoint, that is the truth about how far it is.
        self._name(done + 1 if done else None)

    def stop(self) -> None:
        bus, self._bus, self._named, self._coming = self._bus, None, None, None
        if bus is not None:
            bus.close()

    # ------------------------------------------------------------------------------------------------- connections
    def _open(self) -> BlockingBus:
        if self._bus is None:
            self._bus = open_bus(self._options.url, self._options.wait_s)
        return self._bus

    def _name(self, start: Any) -> BlockingNamedSubscription:
        """The named subscription, as this query's. Its events are not waited for: ranges are read instead."""
        assert self._options.name is not None
        named = self._open().subscribe(
            self._options.filter, name=self._options.name, from_=start, window=1, auto_ack=False
        )
        self._named = named.__enter__()
        return named


def _offset(log: str, next: int) -> dict[str, Any]:
    return {"log": log, "next": next}
