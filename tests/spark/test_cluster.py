"""Beyond one machine: the connector and the pipeline on a cluster of two workers, with our code sent to them."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from holdfast import blocking
from holdfast.apps.zapviewers.audience import Audience
from holdfast.apps.zapviewers.pipeline.facts import read_facts
from holdfast.apps.zapviewers.pipeline.running import BATCH, STREAMING
from holdfast.spark.pack import write_archive
from holdfast.spark.session import UNPACKED
from tests.repository import ROOT
from tests.spark.cluster import WORKERS, StandaloneCluster
from tests.spark.sink import DurableBroker
from tests.spark.zap_samples import mixed_payloads

pytestmark = pytest.mark.cluster

NUMBERS = 20_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with StandaloneCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DurableBroker]:
    with DurableBroker(tmp_path_factory.mktemp("broker")) as running:
        with blocking.connect(running.url) as bus:
            bus.publish_many(({"number": number}, "in") for number in range(NUMBERS))
            for _, payload in mixed_payloads():
                bus.publish({}, topic="zap", payload=payload)
        yield running


def drive(
    cluster: StandaloneCluster, broker: DurableBroker, folder: Path, *archive: Path
) -> subprocess.CompletedProcess[str]:
    """Runs the driver, which is installed here as a user's is. Executors are asked for Python by its bare name."""
    environment = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    environment |= {"PYSPARK_PYTHON": cluster.python.name}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    if archive:
        # With an archive, a session sees to that by itself.
        del environment["PYSPARK_PYTHON"]
        environment["PATH"] = os.environ["PATH"]
    arguments = [cluster.master, broker.url, broker.metrics, str(folder), *map(str, archive)]
    return subprocess.run(
        [sys.executable, "-m", "tests.spark.cluster_driver", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.fixture(scope="module")
def seen(
    cluster: StandaloneCluster, broker: DurableBroker, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("driver")
    archive = folder / "holdfast.tar.gz"
    write_archive(archive)
    done = drive(cluster, broker, folder, archive)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1]), folder


Seen = tuple[dict[str, Any], Path]


def test_without_the_archive_executors_know_nothing_of_us(
    cluster: StandaloneCluster, broker: DurableBroker, tmp_path: Path
) -> None:
    done = drive(cluster, broker, tmp_path)
    assert done.returncode != 0
    assert "No module named" in done.stderr


def test_a_range_is_read_by_both_workers_with_the_code_that_was_sent(seen: Seen, cluster: StandaloneCluster) -> None:
    told, _ = seen
    assert told["counted"] == [NUMBERS, sum(range(NUMBERS)), 0]
    assert sum(rows for *_, rows in told["places"]) == NUMBERS
    for python, file, engine, _ in told["places"]:
        assert Path(python) == cluster.python
        assert UNPACKED in Path(file).parts
        assert engine == "compiled"
    assert len(told["read_tasks"]) == WORKERS
    assert all(told["read_tasks"].values()), told["read_tasks"]


def test_a_stream_publishes_every_row_once_though_an_executor_dies(seen: Seen, broker: DurableBroker) -> None:
    told, folder = seen
    assert (folder / "killed").exists()
    assert len(told["tasks"]) > WORKERS, "another executor took the place of the one that died"
    assert len(told["micro_batches"]) == 2
    with blocking.connect(broker.url) as bus:
        published = Counter(event.attributes["number"] for event in bus.read("topic = 'out'"))
    assert published == Counter(range(NUMBERS))
    assert broker.staged_bytes() == 0


@pytest.mark.parametrize("engine", [BATCH, STREAMING])
def test_the_pipelines_tables_are_the_brokers_own_numbers(seen: Seen, engine: str) -> None:
    _, folder = seen
    audience = Audience()
    for position, payload in mixed_payloads():
        audience.take(payload, position)
    facts = read_facts(folder / engine)
    assert facts is not None
    counted = (facts.lines, facts.malformed, facts.boxes, facts.watching)
    assert counted == (audience.lines, audience.malformed, audience.boxes, audience.watching)
    rows = pq.read_table(folder / engine / "viewers_now").to_pylist()
    viewers = {row["channel"]: row["viewers"] for row in rows}
    assert viewers == {name: count for name in audience.names if (count := audience.num_viewers(name))}
    written = {path.name for path in (folder / engine).iterdir()}
    assert {"bronze", "silver", "quarantine", "intervals", "viewers_by_minute", "windows", "changes"} <= written
