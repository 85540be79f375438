"""The data source `holdfast`: a broker's log, or a group's, as rows; and rows as events."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from holdfast.spark.batch_reader import HoldfastBatchReader
from holdfast.spark.options import source_options
from holdfast.spark.schema import DEFAULT_SCHEMA, layout_of
from holdfast.spark.stream_reader import HoldfastStreamReader


class HoldfastSource(DataSource):
    """`spark.read.format("holdfast")` and `spark.readStream.format("holdfast")`; docs/spark.md has the options."""

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> StructType:
        return DEFAULT_SCHEMA

    def reader(self, schema: StructType) -> HoldfastBatchReader:
        return HoldfastBatchReader(source_options(self.options, stream=False), layout_of(schema))

    def streamReader(self, schema: StructType) -> HoldfastStreamReader:
        return HoldfastStreamReader(source_options(self.options, stream=True), layout_of(schema))
