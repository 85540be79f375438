"""How fast ZapViewers' parts are, each on one core: making a synthetic log, cutting it, and counting viewers.

    .venv/bin/python -m benchmarks.zapviewers [--channels tv-channels.csv] [--runs 5] [--seconds 120] [--json]

The best of the runs counts: whatever else the machine does can only make a run slower. Where it is shared, seconds of
the processor say more than those of the clock, and both are printed. `generated` is the time from the draw of a line to
its bytes, without setting up the boxes, which is printed beside it. `observe` is what a replica pays for an event of
200 lines: with boxes that it knows, and with none (`first sight`). Events come as 10 a second, so that every tenth
derives the top list and the channels that changed, and that is in the mean; the median is of one that derives nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from benchmarks.machine import description
from holdfast.apps.zapviewers.channels import INVENTED, read_channels
from holdfast.apps.zapviewers.generator import BOXES, ZapSettings, generate
from holdfast.apps.zapviewers.publications import LINES_MAX, payloads
from holdfast.apps.zapviewers.viewership import ZAP, Viewership

LINES_A_SECOND_TARGET = 300_000
EVENTS_A_SECOND = 10


def measure(channels: Sequence[str], runs: int, seconds: int, boxes: int = BOXES) -> dict[str, float]:
    """The best of several runs of everything, by name."""
    found = [_run(channels, seconds, boxes) for _ in range(runs)]
    return {name: (max if name.endswith("_second") else min)(run[name] for run in found) for name in found[0]}


def _run(channels: Sequence[str], seconds: int, boxes: int) -> dict[str, float]:
    clock = time.perf_counter
    started = clock()
    log = generate(ZapSettings(channels=channels, boxes=boxes))
    texts = [next(log).text]
    set_up = clock() - started

    started, busy = clock(), time.process_time()
    turns = list(islice(log, seconds))
    generating, generating_busy = clock() - started, time.process_time() - busy
    lines = sum(turn.lines for turn in turns)
    texts += [turn.text for turn in turns]

    started = clock()
    events = list(payloads(texts))
    cutting = clock() - started

    viewership = Viewership()
    first = _observe(viewership, events, 0)
    busy = time.process_time()
    known = _observe(viewership, events, len(events))
    observing_busy = time.process_time() - busy
    started = clock()
    state = viewership.get_state()
    getting = clock() - started
    started = clock()
    Viewership().set_state(state)
    setting = clock() - started
    return {
        "generated_lines_a_second": lines / generating,
        "generated_lines_a_processor_second": lines / generating_busy,
        "generator_set_up_s": set_up,
        "cut_lines_a_second": lines / cutting,
        "observed_lines_a_second": LINES_MAX / statistics.fmean(known),
        "observed_lines_a_processor_second": LINES_MAX * len(events) / observing_busy,
        "observe_us_mean": statistics.fmean(known) * 1e6,
        "observe_us_median": statistics.median(known) * 1e6,
        "observe_first_sight_us_median": statistics.median(first[: len(first) // 4]) * 1e6,
        "bytes_a_line": sum(map(len, texts)) / (lines + texts[0].count(b"\n")),
        "boxes_seen": viewership.audience.boxes,
        "state_bytes": len(state),
        "get_state_s": getting,
        "set_state_s": setting,
    }


def _observe(viewership: Viewership, events: Sequence[bytes], before: int) -> list[float]:
    clock = time.perf_counter
    durations = []
    for number, payload in enumerate(events, start=before + 1):
        started = clock()
        viewership.observe(number, number * 10**9 // EVENTS_A_SECOND, ZAP, {}, payload)
        durations.append(clock() - started)
    return durations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels", type=Path, help="a CSV file with a column 'name' (default: invented names)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=120, help="of the log (default 120)")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    channels: Sequence[str] = INVENTED
    if arguments.channels is not None:
        with arguments.channels.open(encoding="utf-8", newline="") as file:
            channels = read_channels(file)
    found = measure(channels, arguments.runs, arguments.seconds)
    if arguments.json:
        print(json.dumps({"machine": description(), **found}))
        return
    print(", ".join(f"{name} {value}" for name, value in description().items()))
    print(f"{len(channels)} channels, {arguments.seconds} s of log, best of {arguments.runs} runs")
    for name, value in found.items():
        print(f"  {name:36} {value:>14,.0f}" if value >= 100 else f"  {name:36} {value:>14,.3f}")
    ratio = found["generated_lines_a_second"] / LINES_A_SECOND_TARGET
    print(f"  {'generated, beside 300,000':36} {ratio:>13.2f} ×")


if __name__ == "__main__":
    main()
