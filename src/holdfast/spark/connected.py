"""A Spark session by way of Spark Connect, whose server runs in this process: declarative pipelines know no other.

The server listens on a free port of the loopback address, and wants a word that only this process knows.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as ConnectSession

from holdfast.spark.errors import PipelineError
from holdfast.spark.session import LOCAL_HOST, make_session

# Tells pyspark.sql.functions whose columns to make.
MODE = "SPARK_CONNECT_MODE_ENABLED"
# An object of Scala, as Java names it.
SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService$"


@contextmanager
def connected(
    name: str = "holdfast",
    *,
    master: str = "local[*]",
    memory: str = "2g",
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Such a session, for as long as it is used. A process that has a session already can't have one beside it."""
    if SparkSession.getActiveSession() is not None:
        raise PipelineError("this process has a Spark session already; declared pipelines need one of their own")
    token = secrets.token_hex(16)
    server = make_session(
        name,
        master=master,
        memory=memory,
        settings={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": LOCAL_HOST,
            "spark.connect.grpc.binding.port": "0",
            "spark.connect.authenticate.token": token,
            **(settings or {}),
        },
    )
    try:
        java = server.sparkContext._jvm
        assert java is not None
        service = getattr(getattr(java, SERVICE), "MODULE$")
        os.environ[MODE] = "1"
        # By this name, pyspark sends the word without TLS: it does not leave the machine.
        url = f"sc://localhost:{service.localPort()}/;token={token}"
        session = ConnectSession.builder.remote(url).create()
        try:
            yield cast(SparkSession, session)
        finally:
            session.stop()
    finally:
        os.environ.pop(MODE, None)
        server.stop()
