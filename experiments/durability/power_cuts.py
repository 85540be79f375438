"""Power cuts: the data folder lies on an image that is copied at a random moment without a sync, then mounted anew.

What the copy lacks is what a machine without power would lack. The broker is stopped with SIGSTOP while the copy is
made, since the power goes at one moment and a copy takes longer. Needs the right to mount.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from experiments.durability.broker import DurableBroker, Ledger, problems, publish, read_back

IMAGE_MIB = 384


class PowerCutsResult(NamedTuple):
    cuts: int
    acknowledged: int
    read_back: int
    problems: list[str]

    def __str__(self) -> str:
        verdict = "all clean" if not self.problems else "; ".join(self.problems)
        events = f"{self.acknowledged:,} events acknowledged, {self.read_back:,} read back"
        return f"{self.cuts} power cuts: {events}: {verdict}"


def why_impossible() -> str:
    """Why images can't be mounted here; empty if they can."""
    if shutil.which("mkfs.ext4") is None:
        return "there is no mkfs.ext4"
    with tempfile.TemporaryDirectory() as folder:
        image, place = Path(folder) / "image", Path(folder) / "mounted"
        try:
            _make_image(image, 8)
            _mount(image, place)
        except subprocess.CalledProcessError as error:
            return f"mounting an image fails: {error.stderr.decode(errors='replace').strip()}"
        _unmount(place)
    return ""


def run_power_cuts(count: int, seed: int = 1) -> PowerCutsResult:
    rng, acknowledged, found, wrong = random.Random(seed), 0, 0, list[str]()
    for cut in range(1, count + 1):
        with tempfile.TemporaryDirectory() as folder:
            result = _one_cut(Path(folder), rng.uniform(0.3, 2.0))
        acknowledged += result.acknowledged
        found += result.read_back
        wrong += [f"cut {cut}: {problem}" for problem in result.problems]
    return PowerCutsResult(count, acknowledged, found, wrong)


def _one_cut(folder: Path, after_s: float) -> PowerCutsResult:
    image, copy, place = folder / "image", folder / "copy", folder / "mounted"
    _make_image(image, IMAGE_MIB)
    _mount(image, place)
    broker = DurableBroker(folder, place / "data")
    broker.start()
    try:
        acknowledged = asyncio.run(_publish_until_cut(broker, after_s, image, copy))
    finally:
        broker.stop()
        _unmount(place)
    _mount(copy, place)
    again = DurableBroker(folder, place / "data")
    try:
        again.start()
        found = asyncio.run(read_back(again.url))
    finally:
        if again.process is not None:
            again.stop()
        _unmount(place)
    total = sum(map(len, found.values()))
    return PowerCutsResult(1, sum(acknowledged.values()), total, problems(acknowledged, found, "in the log"))


async def _publish_until_cut(broker: DurableBroker, after_s: float, image: Path, copy: Path) -> dict[str, int]:
    ledger, stop = Ledger(), asyncio.Event()
    publishing = [asyncio.create_task(publish(broker.url, name, ledger, stop)) for name in ("p1", "p2")]
    await asyncio.sleep(after_s)
    broker.send(signal.SIGSTOP)
    acknowledged = dict(ledger.acknowledged)
    shutil.copyfile(image, copy)
    broker.send(signal.SIGCONT)
    stop.set()
    await asyncio.gather(*publishing)
    return acknowledged


def _make_image(image: Path, mebibytes: int) -> None:
    with image.open("wb") as file:
        file.truncate(mebibytes * 1024 * 1024)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True, capture_output=True)


def _mount(image: Path, place: Path) -> None:
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True, capture_output=True)


def _unmount(place: Path) -> None:
    subprocess.run(["umount", str(place)], check=True, capture_output=True)
