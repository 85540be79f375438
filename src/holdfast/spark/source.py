"""The data source `holdfast`: a broker's log, or a group's, as rows; and rows as events.

Spark shows the traceback of whatever is raised here. So a mistake of the user leaves without our functions in it, and
as early as Spark lets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from holdfast.errors import HoldfastError, renewed
from holdfast.spark.batch_reader import HoldfastBatchReader
from holdfast.spark.options import source_options
from holdfast.spark.refused_stream import RefusedStream
from holdfast.spark.schema import DEFAULT_SCHEMA, layout_of
from holdfast.spark.sink_options import check_early, refuse_overwrite
from holdfast.spark.stream_reader import HoldfastStreamReader
from holdfast.spark.writer import HoldfastBatchWriter, HoldfastStreamWriter

_T = TypeVar("_T")


class HoldfastSource(DataSource):
    """`format("holdfast")` of `spark.read`, `readStream`, `df.write`, `writeStream`; docs/spark.md has the options."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        _plainly(lambda: check_early(options))

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> StructType:
        return DEFAULT_SCHEMA

    def reader(self, schema: StructType) -> HoldfastBatchReader:
        return _plainly(lambda: HoldfastBatchReader(source_options(self.options, stream=False), layout_of(schema)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            return HoldfastStreamReader(source_options(self.options, stream=True), layout_of(schema))
        except HoldfastError as problem:
            return RefusedStream(problem)

    def writer(self, schema: StructType, overwrite: bool) -> HoldfastBatchWriter:
        _plainly(lambda: refuse_overwrite(overwrite))
        return _plainly(lambda: HoldfastBatchWriter(self.options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> HoldfastStreamWriter:
        _plainly(lambda: refuse_overwrite(overwrite))
        return _plainly(lambda: HoldfastStreamWriter(self.options, schema))


def _plainly(make: Callable[[], _T]) -> _T:
    """The same; a mistake is raised anew, so that nothing but itself is shown of it."""
    try:
        return make()
    except HoldfastError as problem:
        raise renewed(problem) from None
