"""The data source `holdfast`: a broker's log, or a group's, as rows; and rows as events."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from holdfast.spark.batch_reader import HoldfastBatchReader
from holdfast.spark.options import source_options
from holdfast.spark.schema import DEFAULT_SCHEMA, layout_of
from holdfast.spark.sink_options import refuse_overwrite
from holdfast.spark.stream_reader import HoldfastStreamReader
from holdfast.spark.writer import HoldfastBatchWriter, HoldfastStreamWriter


class HoldfastSource(DataSource):
    """`format("holdfast")` of `spark.read`, `readStream`, `df.write`, `writeStream`; docs/spark.md has the options."""

    @classmethod
    def name(cls) -> str:
        return "holdfast"

    def schema(self) -> StructType:
        return DEFAULT_SCHEMA

    def reader(self, schema: StructType) -> HoldfastBatchReader:
        return HoldfastBatchReader(source_options(self.options, stream=False), layout_of(schema))

    def streamReader(self, schema: StructType) -> HoldfastStreamReader:
        return HoldfastStreamReader(source_options(self.options, stream=True), layout_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> HoldfastBatchWriter:
        refuse_overwrite(overwrite)
        return HoldfastBatchWriter(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> HoldfastStreamWriter:
        refuse_overwrite(overwrite)
        return HoldfastStreamWriter(self.options, schema)
