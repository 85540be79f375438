"""What is known about the tables of a folder besides the tables: `pipeline.json`."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from holdfast.spark.errors import PipelineError

FILE = "pipeline.json"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """How tables were made. What is not known, or not yet, is None or empty."""

    url: str = ""
    log: str = ""  # its id
    first: int | None = None  # position
    last: int | None = None
    lines: int | None = None
    malformed: int | None = None
    boxes: int | None = None
    watching: int | None = None
    engine: str = ""
    when: str = ""  # in UTC
    synthetic: bool = False
    versions: dict[str, str] = {}


def read_facts(folder: Path) -> Facts | None:
    """The facts about the tables of a folder; None if nothing is known, PipelineError if they can't be read."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Facts)
    except msgspec.DecodeError as problem:
        raise PipelineError(f"{path}: {problem}") from problem


def write_facts(folder: Path, facts: Facts) -> None:
    """Puts facts in place of others, all at once."""
    unfinished = folder / f"{FILE}.new"
    unfinished.write_bytes(msgspec.json.format(msgspec.json.encode(facts)) + b"\n")
    os.replace(unfinished, folder / FILE)
