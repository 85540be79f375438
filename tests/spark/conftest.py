"""One Spark session for all tests of this folder: to make one takes ten seconds."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import blocking
from holdfast.spark.errors import NoJava
from holdfast.spark.java import java_home
from tests.runtime.broker_process import BrokerProcess

collect_ignore_glob: list[str] = []
try:
    import pyspark  # noqa: F401
except ImportError:
    collect_ignore_glob = ["test_*.py"]
    print("tests/spark: skipped, since pyspark is not installed: pip install holdfast[spark]", file=sys.stderr)
else:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    from holdfast.spark import make_session

    try:
        java_home()
    except NoJava as error:
        pytest.skip(str(error))
    folder: Path = tmp_path_factory.mktemp("spark")
    session = make_session(
        "holdfast-tests",
        master="local[2]",
        settings={
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
        },
    )
    yield session
    end(session)


def end(session: "SparkSession") -> None:
    """Stops a session and its Java, which would else live as long as this process."""
    gateway = session.sparkContext._gateway
    session.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(30)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker with a log on disk, in a process of its own."""
    with BrokerProcess(tmp_path, entry=f'data = "{tmp_path / "data"}"\n') as running:
        yield running


def publish(url: str, count: int) -> None:
    """Events with volumes from 0 on."""
    with blocking.connect(url) as bus:
        bus.publish_many(({"symbol": f"S{i % 10}", "price": i * 0.5, "volume": i}, "stock") for i in range(count))
