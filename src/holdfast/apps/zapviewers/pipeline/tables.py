"""The tables of a pipeline: what they are called, what is in them, and where they lie below a folder, as Parquet.

    DIR/pipeline.json          which log they were made from, up to where, when, and by what: see `facts`
    DIR/bronze, silver, …      a table each. A stream writes it in pieces, batch=0, batch=1, …
    DIR/progress               a stream's: a file for every micro-batch whose pieces are whole
    DIR/checkpoint             a stream's: Spark's own

A piece that is written again replaces what was there: a micro-batch that is repeated after a crash changes nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession

SCHEMAS: Final[Mapping[str, str]] = {
    "bronze": "position BIGINT, line INT, published_at TIMESTAMP, text BINARY",
    "silver": (
        "position BIGINT, line INT, at TIMESTAMP_NTZ, box STRING, kind STRING, to_channel STRING, from_channel STRING, "
        "status STRING, published_at TIMESTAMP"
    ),
    "quarantine": "position BIGINT, line INT, text BINARY, reason STRING, published_at TIMESTAMP",
    "intervals": (
        "box STRING, channel STRING, began TIMESTAMP_NTZ, ended TIMESTAMP_NTZ, seconds BIGINT, retained BOOLEAN, "
        "position BIGINT, line INT"
    ),
    "viewers_by_minute": "minute TIMESTAMP_NTZ, channel STRING, viewers BIGINT",
    "windows": (
        "window_start TIMESTAMP_NTZ, window_end TIMESTAMP_NTZ, channel STRING, seconds BIGINT, average_viewers DOUBLE, "
        "reach BIGINT, share DOUBLE, rank INT"
    ),
    "days": (
        "window_start TIMESTAMP_NTZ, window_end TIMESTAMP_NTZ, channel STRING, seconds BIGINT, average_viewers DOUBLE, "
        "reach BIGINT, share DOUBLE, rank INT"
    ),
    "changes": "from_channel STRING, to_channel STRING, zaps BIGINT",
    "viewers_now": "channel STRING, viewers BIGINT",
    # What a stream knows of every box after a micro-batch: see `streaming`.
    "boxes": "box STRING, channel STRING, watching BOOLEAN, began TIMESTAMP_NTZ, position BIGINT, line INT",
}
PROGRESS = "progress"
CHECKPOINT = "checkpoint"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a stream is after a micro-batch; numbers are of all that came so far."""

    batch: int
    last: int  # position
    lines: int
    malformed: int
    late: int  # lines behind the watermark, which count all the same
    watermark: int | None  # seconds since 1970, by the boxes' clocks


class Tables:
    """The tables below one folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def path(self, name: str, piece: int | str | None = None) -> Path:
        table = self.folder / name
        return table if piece is None else table / f"batch={piece}"

    def read(self, spark: SparkSession, name: str, piece: int | str | None = None) -> DataFrame:
        """A table, or one piece of it, with the columns that its schema names."""
        found = spark.read.schema(SCHEMAS[name]).parquet(str(self.path(name, piece)))
        return found.select(*SCHEMAS_COLUMNS[name])

    def write(self, name: str, rows: DataFrame, piece: int | str | None = None) -> None:
        """Replaces a table, or one piece of it."""
        rows = rows.select(*SCHEMAS_COLUMNS[name])
        rows.write.mode("overwrite").option("compression", "zstd").parquet(str(self.path(name, piece)))

    def drop(self, name: str, piece: int | str | None = None) -> None:
        shutil.rmtree(self.path(name, piece), ignore_errors=True)

    def clear(self) -> None:
        """Drops all tables, and where a stream was."""
        for name in (*SCHEMAS, PROGRESS, CHECKPOINT):
            self.drop(name)

    def write_progress(self, progress: Progress) -> None:
        """Says that the pieces of a micro-batch are whole."""
        folder = self.path(PROGRESS)
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / "new"
        new.write_bytes(msgspec.json.encode(progress))
        new.replace(folder / f"{progress.batch}.json")

    def last_progress(self) -> Progress | None:
        """What the last micro-batch of all has left."""
        return self.progress_before(None)

    def progress_before(self, batch: int | None) -> Progress | None:
        """What the last micro-batch before one has left, if there was any."""
        numbers = [int(found.stem) for found in self.path(PROGRESS).glob("*.json")]
        last = max((number for number in numbers if batch is None or number < batch), default=None)
        if last is None:
            return None
        return msgspec.json.decode((self.path(PROGRESS) / f"{last}.json").read_bytes(), type=Progress)


SCHEMAS_COLUMNS: Final[Mapping[str, list[str]]] = {
    name: [column.split()[0] for column in schema.split(", ")] for name, schema in SCHEMAS.items()
}
