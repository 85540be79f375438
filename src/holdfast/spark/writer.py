"""The sink: what a query writes is published exactly once, however often its tasks and its driver are tried again.

Executors only stage: each attempt of a task under a stage of its own, which nobody sees. When all tasks are done, the
driver commits the stages of (query, epoch), which the broker does once and answers as done ever after. So a task that
failed, or that ran twice, leaves a stage that is not named in the commit and goes with it; a driver that died before
the commit replays the epoch with new stages; and one that died behind it finds the epoch done.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from holdfast.client.blocking import BlockingBus
from holdfast.errors import EpochCommitted, LimitReached, NotConnected, StageLost
from holdfast.spark.encoding import EventEncoder
from holdfast.spark.patience import open_bus
from holdfast.spark.sink_options import SinkColumns, SinkOptions, sink_columns, sink_options

# What Spark tells a task of the streaming query that it works for.
QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"
ANSWER_S_MIN = 10.0  # a broker that is there may have much to do before it answers


@dataclass(frozen=True)
class TaskStaged(WriterCommitMessage):
    """What a task tells the driver. `stage` is empty if it had no rows, or if the epoch was committed already."""

    query: str
    epoch: int
    stage: str = ""
    rows: int = 0
    already: bool = False


class HoldfastStreamWriter(DataSourceStreamArrowWriter):
    """For `df.writeStream`: the query's id and the number of its batch come from Spark."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = sink_options(options, stream=True)
        self._columns = sink_columns(schema, self._options)

    def write(self, iterator: Iterator[Any]) -> TaskStaged:
        context = _context()
        query, epoch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query is None or epoch is None:
            raise RuntimeError(f"Spark does not tell which query this is: {QUERY_ID} or {BATCH_ID} is missing")
        return stage_rows(self._options, self._columns, query, int(epoch), context.partitionId(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        commit_stages(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing was published. What is staged goes with the next commit of the query, or expires."""


class HoldfastBatchWriter(DataSourceArrowWriter):
    """For `df.write`. Without the option `query` each write is one of its own."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._options = sink_options(options, stream=False)
        self._columns = sink_columns(schema, self._options)
        self._query = self._options.query or f"write-{secrets.token_hex(12)}"

    def write(self, iterator: Iterator[Any]) -> TaskStaged:
        partition = _context().partitionId()
        return stage_rows(self._options, self._columns, self._query, self._options.epoch, partition, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit_stages(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """As for a stream."""


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this is for Spark's executors: there is no task here")
    return context


def stage_rows(
    options: SinkOptions, columns: SinkColumns, query: str, epoch: int, task: int, batches: Iterator[Any]
) -> TaskStaged:
    """Stages the rows of one attempt of a task. A task without rows does not ask the broker for anything."""
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return TaskStaged(query, epoch)
    with closing(open_bus(options.url, options.wait_s)) as bus:
        try:
            return _stage(bus, options, columns, TaskStaged(query, epoch), task, first, batches)
        except EpochCommitted:
            # This is a replay, of an epoch that was committed before the driver knew. The rows are published.
            for _ in batches:
                pass  # Spark takes a task that leaves rows unread for one that failed
            return TaskStaged(query, epoch, already=True)
        except LimitReached as error:
            raise LimitReached(
                f"{error}; an epoch is staged as a whole: write less at a time (max_events_per_batch of the source, a "
                "filter), or raise [limits] staged_bytes of the broker",
                error.limit,
                error.allowed,
            ) from error
        except TimeoutError as error:
            raise _unanswered(options) from error


def _stage(
    bus: BlockingBus,
    options: SinkOptions,
    columns: SinkColumns,
    told: TaskStaged,
    task: int,
    first: Any,
    batches: Iterator[Any],
) -> TaskStaged:
    stage = bus.open_stage(told.query, told.epoch, task, _patience(options))
    encoder = EventEncoder(columns, options.topic, bus.name, stage.incarnation, f"partition {task}")
    try:
        for batch in chain((first,), batches):
            for events, count in encoder.parts(batch):
                stage.add(events, count)
        receipt = stage.finish()
    except BaseException:
        stage.cancel()
        raise
    return TaskStaged(told.query, told.epoch, receipt.id, receipt.count)


def commit_stages(options: SinkOptions, messages: list[WriterCommitMessage | None]) -> None:
    """Publishes what the tasks of an epoch staged; does nothing if it is published."""
    staged = [message for message in messages if isinstance(message, TaskStaged)]
    # An epoch that one task found committed is committed as a whole. To commit what others staged of it would be
    # answered so; and were it ever not, it would publish a part.
    if any(message.already for message in staged) or not any(message.stage for message in staged):
        return
    query, epoch = staged[0].query, staged[0].epoch
    if {(message.query, message.epoch) for message in staged} != {(query, epoch)}:
        raise RuntimeError(f"tasks of several epochs are to be committed as one: {staged}")
    with closing(open_bus(options.url, options.wait_s)) as bus:
        try:
            bus.commit(query, epoch, [message.stage for message in staged if message.stage], _patience(options))
        except StageLost as error:
            raise StageLost(
                f"{error}; nothing of the epoch was published. Start the query again, and it replays the epoch. Stages "
                "are kept for a while only ([retention] stage_s in the site file), and by brokers that keep their data"
            ) from error
        except TimeoutError as error:
            raise _unanswered(options) from error


def _patience(options: SinkOptions) -> float:
    return max(options.wait_s, ANSWER_S_MIN)


def _unanswered(options: SinkOptions) -> NotConnected:
    return NotConnected(
        f"no broker of {options.url} answered within {_patience(options):g} s (option 'wait_s' says how long to wait); "
        "a stream that is started again, or a write that is repeated with the same option 'query', publishes once"
    )
