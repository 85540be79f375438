"""The pipeline as a Spark Declarative Pipeline: the same functions, declared, and what runs them in this process.

Bronze, silver and quarantine are streaming tables: every run takes what the log has gained since the last one, from
where their checkpoints stand. The others are materialised views: every run makes them anew from whole tables.

Not by `spark-pipelines`, which gives up after a run that went well: at its end Spark says something that the command
does not know. And with Hive's catalogue, in a Derby database beside the tables, since the one in memory has forgotten
by the second run that the tables exist. The tables' places are in that database: a folder that was moved is read
as well as before, but no run goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark import pipelines
from pyspark.pipelines.graph_element_registry import graph_element_registration_context
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run
from pyspark.sql import DataFrame, SparkSession

from holdfast.apps.zapviewers.pipeline import bronze, gold, silver

DAY_MINUTES = 24 * 60
CHECKPOINTS = "checkpoints"
METASTORE = "metastore"
# Where Spark puts how far the stream into bronze is, below the checkpoints.
BRONZE_CHECKPOINT = "_checkpoints/spark_catalog/default/bronze/bronze/0"


def settings_for(folder: Path) -> dict[str, str]:
    """What a session needs to keep the tables, and where they lie, below a folder."""
    place = folder.resolve()
    return {
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.sources.default": "parquet",
        "spark.sql.warehouse.dir": str(place),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={place / METASTORE};create=true",
        # Derby would leave a log wherever it is run.
        "spark.driver.extraJavaOptions": "-Dderby.stream.error.file=/dev/null",
    }


def declare(spark: SparkSession, events: Callable[[], DataFrame]) -> None:
    """Declares all tables, for a graph that the caller has opened. `events` is a stream."""

    def streaming_table(name: str, query: Callable[[], DataFrame]) -> None:
        pipelines.table(name=name)(query)

    def view(name: str, query: Callable[[], DataFrame]) -> None:
        pipelines.materialized_view(name=name)(query)

    def stream_of(name: str) -> DataFrame:
        return spark.readStream.table(name)

    def whole(name: str) -> DataFrame:
        return spark.read.table(name)

    streaming_table("bronze", lambda: bronze.raw_lines(events()))
    streaming_table("silver", lambda: silver.zap_events(stream_of("bronze")))
    streaming_table("quarantine", lambda: silver.quarantine(stream_of("bronze")))
    view("intervals", lambda: gold.intervals(whole("silver")))
    view("viewers_by_minute", lambda: gold.viewers_by_minute(gold.viewer_steps(whole("intervals"))))
    view("windows", lambda: gold.windows(whole("intervals")))
    view("days", lambda: gold.windows(whole("intervals"), DAY_MINUTES))
    view("changes", lambda: gold.changes(whole("silver")))
    view("viewers_now", lambda: gold.viewers_now(whole("silver")))


def run_declared(spark: SparkSession, events: Callable[[], DataFrame], folder: Path) -> Iterator[str]:
    """Brings the tables below a folder up to date, and gives what Spark tells meanwhile, as it happens.

    `spark` is a session by way of Connect, with the settings of `settings_for`.
    """
    graph = create_dataflow_graph(spark, default_catalog=None, default_database=None, sql_conf={})
    with graph_element_registration_context(SparkConnectGraphElementRegistry(spark, graph)):
        declare(spark, events)
    results = start_run(
        spark,
        graph,
        full_refresh=None,
        full_refresh_all=False,
        refresh=None,
        dry=False,
        storage=(folder / CHECKPOINTS).resolve().as_uri(),
    )
    for result in results:
        # Other results are answers to commands, and some that this Spark's own command does not expect.
        told = result.get("pipeline_event_result")
        if told is not None:
            yield told.event.message
