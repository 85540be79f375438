"""What makes `format("holdfast")` known to Spark: it looks for data sources in modules whose names begin like this."""

from holdfast.spark.source import HoldfastSource as DefaultSource

__all__ = ["DefaultSource"]
