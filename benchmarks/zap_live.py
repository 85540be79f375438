"""Does the streaming pipeline keep up with live zaps? A broker, publishers at a pace, and the stream behind them.

    .venv/bin/python -m benchmarks.zap_live [--zaps 10000] [--seconds 120] [--every 5]

All on one machine: publishers, a broker with its log on disk, and Spark. Every second it is looked how many events
the tables are behind the log, which goes up until a micro-batch is done, and then down. `grows` is how fast the worst
of that grows over the second half: a straight line through the greatest of every 15 seconds, in seconds of log for each
second. The log is synthetic.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.machine import description
from benchmarks.zap_pipeline import ZAPS_A_LINE
from experiments.durability.broker import DurableBroker
from holdfast.apps.zapviewers.generator import BOXES, ZapSettings
from holdfast.apps.zapviewers.pipeline.running import EVENTS, EVENTS_PER_BATCH, source_options
from holdfast.apps.zapviewers.pipeline.streaming import start_stream
from holdfast.apps.zapviewers.pipeline.tables import Tables
from holdfast.apps.zapviewers.publishing import PublishedLines, PublishSettings, publish_log
from holdfast.client import blocking
from holdfast.spark import make_session

PUBLISHERS = 4
LOOK_EVERY_S = 1.0
WORST_OF_S = 15.0
GROWTH_MAX = 0.02  # seconds of log for each second: what is taken for noise


def publish(url: str, lines_a_second: float, seconds: float) -> None:
    settings = PublishSettings(
        run="live", log=ZapSettings(boxes=BOXES), publishers=PUBLISHERS, rate=lines_a_second, seconds=seconds
    )
    asyncio.run(publish_log(url, settings, PublishedLines(), asyncio.Event()))


def slope(points: list[tuple[float, float]]) -> float:
    """Of the straight line that fits best."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return above / sum((x - mean_x) ** 2 for x, _ in points)


def worst(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The greatest of every few seconds."""
    found: dict[int, tuple[float, float]] = {}
    for x, y in points:
        window = int(x / WORST_OF_S)
        found[window] = max(found.get(window, (x, y)), (x, y), key=lambda point: point[1])
    return list(found.values())


def measure(url: str, folder: Path, zaps_a_second: float, seconds: float, every_s: float) -> list[tuple[float, float]]:
    """(seconds since the beginning, seconds of log that the tables are behind)."""
    tables = Tables(folder / "tables")
    spark = make_session("live", master="local[2]")
    publishing = threading.Thread(target=publish, args=(url, zaps_a_second / ZAPS_A_LINE, seconds))
    publishing.start()
    source = spark.readStream.format("holdfast").schema(EVENTS).options(**source_options(url))
    query = start_stream(
        source.option("max_events_per_batch", str(EVENTS_PER_BATCH)).load(), tables, f"{every_s:g} seconds"
    )
    seen = []
    started = time.monotonic()
    try:
        with blocking.connect(url) as bus:
            while publishing.is_alive():
                publishing.join(LOOK_EVERY_S)
                problem = query.exception()
                if problem is not None:
                    raise problem
                head, last = bus.head().number, tables.last_progress()
                age = time.monotonic() - started
                behind = (head - (last.last if last else 0)) / (head / age)
                seen.append((age, behind))
                print(f"  {age:6.1f} s: position {head:,}, the tables are {behind:5.1f} s behind", flush=True)
    finally:
        query.stop()
        spark.stop()
        publishing.join()
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zaps", type=float, default=10_000, help="a second")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--every", type=float, default=5, help="seconds between micro-batches")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = DurableBroker(folder, folder / "data")
        broker.start()
        try:
            seen = measure(broker.url, folder, arguments.zaps, arguments.seconds, arguments.every)
        finally:
            broker.stop()
    growth = slope(worst(seen[len(seen) // 2 :]))
    verdict = "keeps up" if growth <= GROWTH_MAX else "FALLS BEHIND"
    print(f"{arguments.zaps:,.0f} zaps/s: {seen[-1][1]:.1f} s behind at the end, grows {growth:+.3f}: {verdict}")
    print(description())


if __name__ == "__main__":
    main()
