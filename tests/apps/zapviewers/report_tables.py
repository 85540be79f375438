"""Small tables of a pipeline, as Parquet, for tests of the report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

EVENING = datetime(2026, 11, 15, 20, 0)
TIME = pa.timestamp("us")
SCHEMAS = {
    "viewers_now": pa.schema({"channel": pa.string(), "viewers": pa.int64()}),
    "viewers_by_minute": pa.schema({"minute": TIME, "channel": pa.string(), "viewers": pa.int64()}),
    "intervals": pa.schema(
        {"box": pa.string(), "channel": pa.string(), "began": TIME, "ended": TIME, "seconds": pa.int64()}
        | {"retained": pa.bool_(), "position": pa.int64(), "line": pa.int32()}
    ),
    "windows": pa.schema(
        {
            "window_start": TIME,
            "window_end": TIME,
            "channel": pa.string(),
            "seconds": pa.int64(),
            "average_viewers": pa.float64(),
            "reach": pa.int64(),
            "share": pa.float64(),
            "rank": pa.int32(),
        }
    ),
    "changes": pa.schema({"from_channel": pa.string(), "to_channel": pa.string(), "zaps": pa.int64()}),
    "quarantine": pa.schema(
        {"position": pa.int64(), "line": pa.int32(), "text": pa.binary(), "reason": pa.string(), "published_at": TIME}
    ),
}
SCHEMAS["days"] = SCHEMAS["windows"]
FACTS = {
    "url": "holdfast://127.0.0.1:7411",
    "log": "0192f1c2a7e84b7f",
    "first": 1,
    "last": 2311,
    "lines": 462335,
    "boxes": 3934,
    "watching": 937,
    "engine": "batch",
    "when": "2026-11-15 23:20:11 UTC",
    "synthetic": True,
    "versions": {"holdfast": "0.1.0", "Spark": "4.3.0"},
}


def write_tables(folder: Path, rows: Mapping[str, Sequence[tuple[Any, ...]]], facts: Mapping[str, Any] = FACTS) -> Path:
    """Writes every table, with the rows that are given; each in two files, as several tasks would."""
    for name, schema in SCHEMAS.items():
        (folder / name).mkdir(parents=True)
        given = [dict(zip(schema.names, row, strict=False)) for row in rows.get(name, [])]
        for part in range(2):
            table = pa.Table.from_pylist(given[part::2], schema)
            pq.write_table(table, folder / name / f"part-{part}.parquet")
        (folder / name / "_SUCCESS").touch()
    (folder / "pipeline.json").write_text(json.dumps(dict(facts)), encoding="utf-8")
    return folder


def day_rows(*shares: tuple[str, int, int], start: datetime = EVENING, days: int = 1) -> list[tuple[Any, ...]]:
    """Rows of `days` from (channel, seconds, reach)."""
    began = start.replace(hour=0, minute=0)
    return [(began, began + timedelta(days=days), channel, seconds, 0.0, reach) for channel, seconds, reach in shares]


def minute_rows(channel: str, viewers: Sequence[int], start: datetime = EVENING) -> list[tuple[Any, ...]]:
    """Rows of `viewers_by_minute`, one for each minute with viewers."""
    return [(start + timedelta(minutes=minute), channel, count) for minute, count in enumerate(viewers) if count]


def interval_rows(channel: str, *spans: tuple[float, float | None]) -> list[tuple[Any, ...]]:
    """Rows of `intervals` from the seconds after EVENING at which they began and ended; 3 s are not retained."""
    rows = []
    for number, (began, ended) in enumerate(spans):
        end = None if ended is None else EVENING + timedelta(seconds=ended)
        retained = ended is None or ended - began > 3
        rows.append((f"10.0.0.{number}", channel, EVENING + timedelta(seconds=began), end, None, retained, number, 0))
    return rows


def two_minutes(folder: Path, names: Sequence[str] = ("Velkin", "Orrow", "Tavio")) -> Path:
    """Boxes that go on one after the other, for little more than a minute, as at the end of a demo."""
    ranked = list(enumerate(names))
    intervals = [
        row
        for place, name in ranked
        for row in interval_rows(name, *((second - 13, None) for second in range(place, 75, 1 + place)))
    ]
    minutes = [
        (EVENING + timedelta(minutes=minute), name, len(range(place, min(75, 60 * minute + 14), 1 + place)))
        for place, name in ranked
        for minute in range(3)
    ]
    return write_tables(
        folder, {"viewers_by_minute": minutes, "intervals": intervals, "days": day_rows(("Velkin", 9, 9))}
    )


def some_tables(folder: Path, names: Sequence[str] = ("Velkin", "Orrow", "Tavio")) -> Path:
    """A plausible evening of a few channels, under the given names."""
    ranked = list(enumerate(names))
    return write_tables(
        folder,
        {
            "viewers_now": [(name, 100 - place) for place, name in ranked],
            "viewers_by_minute": [
                row
                for place, name in ranked
                for row in minute_rows(name, [40 + minute - place for minute in range(90)])
            ],
            "days": day_rows(*((name, 9000 - place, 300 - place) for place, name in ranked)),
            "changes": [
                (a, b, 5 + (len(names) - x) * (len(names) - y)) for x, a in ranked for y, b in ranked if a != b
            ],
            "quarantine": [
                (17, 3, b"2026-11-15,25:00:00,10.0.0.1,mute", "no time", EVENING),
                (23, 0, b"", "empty", EVENING),
                (9, 2, b"\xff\xfe<script>alert(1)</script>\x00", "not 4 or 5 fields", EVENING),
            ],
        },
    )
