"""The one place where Spark sessions are made."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from holdfast.spark.java import java_home

LOCAL_HOST = "127.0.0.1"
LOGGING = Path(__file__).with_name("log4j2.properties")


def make_session(
    name: str = "holdfast", *, master: str = "local[*]", memory: str = "2g", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session, or the one that this process has already.

    `memory` is the driver's, which does all the work where `master` is local; `settings` are Spark's own and win over
    ours. NoJava if there is no Java.
    """
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**_settings(master, memory), **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _settings(master: str, memory: str) -> dict[str, str]:
    settings = {
        "spark.driver.memory": memory,
        # Before anything else is said: a log level that is set later comes too late for a dozen lines.
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Event times of boxes carry no zone; all others are in UTC. Nothing may depend on where a driver stands.
        "spark.sql.session.timeZone": "UTC",
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = LOCAL_HOST
        settings["spark.driver.bindAddress"] = LOCAL_HOST
        settings["spark.sql.shuffle.partitions"] = str(max(2, os.cpu_count() or 2))
    return settings
