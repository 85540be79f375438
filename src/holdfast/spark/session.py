"""The one place where Spark sessions are made."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from holdfast.spark.errors import OptionError
from holdfast.spark.java import java_home

LOCAL_HOST = "127.0.0.1"
LOGGING = Path(__file__).with_name("log4j2.properties")
ARCHIVES = "spark.archives"
UNPACKED = "holdfast_environment"  # the folder of the archive, where an executor works


def make_session(
    name: str = "holdfast",
    *,
    master: str = "local[*]",
    memory: str = "2g",
    archive: str | Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session, or the one that this process has already.

    `memory` is the driver's, which does all the work where `master` is local; `settings` are Spark's own and win over
    ours. `archive` is for clusters whose executors lack Holdfast: what `python -m holdfast.spark.pack` has written; it
    is sent to them. NoJava if there is no Java; OptionError if there is no such archive, or if it comes too late.
    """
    ours = _settings(master, memory)
    if archive is not None:
        ours |= archive_settings(archive)
        _refuse_session_without(ours[ARCHIVES])
        _same_name_everywhere()
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**ours, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def archive_settings(archive: str | Path) -> dict[str, str]:
    """What sends an archive to every executor and lets its Python import from there. For sessions of your own."""
    path = Path(archive).absolute()
    if not path.is_file():
        raise OptionError(f"there is no archive {path}: python -m holdfast.spark.pack {path.name} makes one", "archive")
    return {ARCHIVES: f"{path}#{UNPACKED}", "spark.executorEnv.PYTHONPATH": UNPACKED}


def _refuse_session_without(archives: str) -> None:
    """What is sent to executors is decided when a session begins."""
    session = SparkSession.getActiveSession()
    if session is not None and session.sparkContext.getConf().get(ARCHIVES) != archives:
        raise OptionError("this process has a session without the archive: stop it, and make this one first", "archive")


def _same_name_everywhere() -> None:
    """Names Python so that driver and executors each find their own.

    Spark starts the workers of both by one name. A path of the driver's machine means nothing on another one, so it
    is a bare name with the version, and our interpreter's folder goes to the front of what the driver searches.
    """
    if "PYSPARK_PYTHON" in os.environ:
        return
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = Path(sys.executable).parent
    if not (folder / name).exists():
        raise OptionError(
            f"there is no {name} in {folder}, which executors would be asked for: set PYSPARK_PYTHON to a name or a "
            "path that is right for the driver and for executors",
            "archive",
        )
    os.environ["PYSPARK_PYTHON"] = name
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ.get("PATH", os.defpath)])


def _settings(master: str, memory: str) -> dict[str, str]:
    settings = {
        "spark.driver.memory": memory,
        # Before anything else is said: a log level that is set later comes too late for a dozen lines.
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # What is cached here is used at once, a few times: to compress it costs more than it saves.
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        # Event times of boxes carry no zone; all others are in UTC. Nothing may depend on where a driver stands.
        "spark.sql.session.timeZone": "UTC",
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = LOCAL_HOST
        settings["spark.driver.bindAddress"] = LOCAL_HOST
        settings["spark.sql.shuffle.partitions"] = str(max(2, os.cpu_count() or 2))
    return settings
