"""The pipeline as a Spark Declarative Pipeline: the same functions, declared, and what runs them in this process.

Bronze, silver and quarantine are streaming tables: every run takes what the log has gained since the last one, from
where their checkpoints stand. The others are materialised views: every run makes them anew from whole tables.

Not by `spark-pipelines`, which gives up after a run that went well: at its end Spark says something that the command
does not know. And with Hive's catalogue, in a Derby database beside the tables, since the one in memory has forgotten
by the second run that the tables exist. The tables' places are in that database: a folder that was moved is read
as well as before, but no run goes on with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from pyspark import pipelines
from pyspark.pipelines.graph_element_registry import graph_element_registration_context
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, start_run
from pyspark.sql import DataFrame, SparkSession

from holdfast.apps.zapviewers.pipeline import bronze, gold, silver
from holdfast.apps.zapviewers.pipeline.batch import DAY_MINUTES
from holdfast.spark.errors import PipelineError

CHECKPOINTS = "checkpoints"
METASTORE = "metastore"
# Where Spark puts how far the stream into bronze is, below the checkpoints.
BRONZE_CHECKPOINT = "_checkpoints/spark_catalog/default/bronze/bronze/0"

_FLOW = re.compile(r"Flow (?:\S+\.)?(?P<table>\w+) (?:is|has) (?P<state>[A-Z]+)\.")


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


class Declared:
    """The tables, as they are declared, and from which others each is made."""

    def __init__(self, spark: SparkSession, events: Callable[[], DataFrame]) -> None:
        """Declares them all, for a graph that the caller has opened. `events` is a stream."""
        self.sources: dict[str, set[str]] = {}
        self._spark = spark
        self._table("bronze", lambda: bronze.raw_lines(events()))
        self._table("silver", lambda: silver.zap_events(self._stream("bronze")), "bronze")
        self._table("quarantine", lambda: silver.quarantine(self._stream("bronze")), "bronze")
        self._view("intervals", gold.intervals, "silver")
        self._view("viewers_by_minute", lambda of: gold.viewers_by_minute(gold.viewer_steps(of)), "intervals")
        self._view("windows", gold.windows, "intervals")
        self._view("days", lambda of: gold.windows(of, DAY_MINUTES), "intervals")
        self._view("changes", gold.changes, "silver")
        self._view("viewers_now", gold.viewers_now, "silver")

    def _table(self, name: str, query: Callable[[], DataFrame], *sources: str) -> None:
        self.sources[name] = set(sources)
        pipelines.table(name=name)(query)

    def _view(self, name: str, query: Callable[[DataFrame], DataFrame], source: str) -> None:
        self.sources[name] = {source}
        pipelines.materialized_view(name=name)(lambda: query(self._spark.read.table(source)))

    def _stream(self, name: str) -> DataFrame:
        return self._spark.readStream.table(name)


def run_declared(
    spark: SparkSession, events: Callable[[], DataFrame], folder: Path, tell: Callable[[str], None]
) -> None:
    """Brings the tables below a folder up to date, and tells meanwhile which of them it is at.

    `spark` is a session by way of Connect, with the settings of `settings_for`.
    """
    graph = create_dataflow_graph(spark, default_catalog=None, default_database=None, sql_conf={})
    with graph_element_registration_context(SparkConnectGraphElementRegistry(spark, graph)):
        tables = Declared(spark, events)
    results = start_run(
        spark,
        graph,
        full_refresh=None,
        full_refresh_all=False,
        refresh=None,
        dry=False,
        storage=(folder / CHECKPOINTS).resolve().as_uri(),
    )
    # Other results are answers to commands, and some that this Spark's own command does not expect.
    told = (result["pipeline_event_result"] for result in results if "pipeline_event_result" in result)
    messages = in_order((event.event.message for event in told), tables.sources)
    tell_tables(messages, tables.sources, tell)


def tell_tables(messages: Iterable[str], tables: Collection[str], tell: Callable[[str], None]) -> None:
    """Takes the messages of a run, and tells of each table when it is begun, and of what has failed."""
    begun: set[str] = set()
    for message in messages:
        found = _FLOW.fullmatch(message)
        if found is not None and found["state"] == "STARTING" and found["table"] not in begun:
            begun.add(found["table"])
            tell(f"table {len(begun)} of {len(tables)}: {found['table']}")
        elif "FAILED" in message:
            tell(message)


def in_order(messages: Iterable[str], sources: Mapping[str, set[str]]) -> Iterator[str]:
    """The messages of a run, if every table was made after those that it is made from; else PipelineError.

    Spark finds out by itself what is made from what, and misses a table that a query has looked up too early. What is
    made from it is then made from what the last run left, and nobody would know. Such a table is begun with the first
    ones, when those that it is made from wait themselves. That they are completed can't be asked for at that moment:
    Spark may tell it a little later than it begins what waited for it.
    """
    begun: set[str] = set()
    completed: set[str] = set()
    for message in messages:
        found = _FLOW.fullmatch(message)
        if found is not None and found["state"] == "COMPLETED":
            completed.add(found["table"])
        elif found is not None and found["state"] == "STARTING":
            begun.add(found["table"])
            too_late = sources.get(found["table"], set()) - begun
            if too_late:
                raise PipelineError(
                    f"Spark makes {found['table']} before {', '.join(sorted(too_late))}, which it is made from: its "
                    "query has an operation that Spark Connect looks up at once, such as withColumn; take select"
                )
        yield message
    if completed != set(sources):
        raise PipelineError(f"the run ended without {', '.join(sorted(set(sources) - completed))}")
