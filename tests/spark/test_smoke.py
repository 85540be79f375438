"""Spark reads a log and publishes to it: the one test of Spark in every run; the others are in full runs."""

import pytest
from pyspark.sql import SparkSession

from holdfast import blocking
from tests.runtime.broker_process import BrokerProcess
from tests.spark.conftest import publish


@pytest.mark.smoke
def test_what_spark_reads_it_publishes(spark: SparkSession, broker: BrokerProcess) -> None:
    publish(broker.url, 1_000)
    schema = "symbol string, price double, volume bigint"
    read = spark.read.format("holdfast").option("url", broker.url).option("filter", "topic = 'stock'")
    hot = read.schema(schema).load().where("volume >= 900").select("symbol", "volume")
    hot.write.format("holdfast").option("url", broker.url).option("topic", "hot").mode("append").save()
    with blocking.connect(broker.url) as bus:
        published = [event.attributes for event in bus.read("topic = 'hot'")]
    assert sorted(attributes["volume"] for attributes in published) == list(range(900, 1_000))
    assert all(attributes["symbol"] == f"S{attributes['volume'] % 10}" for attributes in published)
