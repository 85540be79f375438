"""One Spark session for all tests of this folder: to make one takes ten seconds."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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
