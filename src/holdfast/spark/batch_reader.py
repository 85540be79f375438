"""`spark.read.format("holdfast")`: a range of a log, as it was when the query was planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from holdfast.errors import PositionAhead, PositionGone
from holdfast.spark.errors import OptionError
from holdfast.spark.options import EARLIEST, NEW, SourceOptions
from holdfast.spark.patience import open_bus
from holdfast.spark.places import number_of
from holdfast.spark.ranges import PositionRange, gone, partitions_of, read_range
from holdfast.spark.schema import Layout


class HoldfastBatchReader(DataSourceReader):
    """It does not implement `pushFilters`: Spark keeps what was pushed on an object that queries share, so that one
    query gets the answer to another (`pushdown` does it right)."""

    def __init__(self, options: SourceOptions, layout: Layout) -> None:
        if options.start == NEW:
            raise OptionError(
                "option 'from': a batch ends with what is there now, so it can't begin with 'new'", "from"
            )
        self._options = options
        self._layout = layout

    def partitions(self) -> Sequence[PositionRange]:
        options = self._options
        with closing(open_bus(options.url, options.wait_s)) as bus:
            tail, head = bus.bounds()
            start = number_of(bus, options.start or EARLIEST)
        if options.to is not None and options.to > head.number:
            raise PositionAhead(f"the log ends at position {head.number}, before option 'to', {options.to}")
        if start < tail.number:
            raise gone(PositionGone(f"the log begins at position {tail.number}", tail.number), start)
        # Spark makes a partition of its own of none at all.
        nothing = [PositionRange(head.log, 1, 0)]
        return partitions_of(head.log, start, options.to or head.number, options.partitions) or nothing

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, PositionRange)
        return read_range(self._options, self._layout, partition)
