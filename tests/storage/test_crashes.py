"""The power goes at any system call: what was acknowledged is there, and a commit is there whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from holdfast.errors import LogCorrupt
from holdfast.storage import Log, open_log
from holdfast.storage.format import RECORD_BYTES
from holdfast.storage.group import Group
from holdfast.storage.sharing import Part, Shared
from tests.storage.disk import MemoryDisk, PowerCut
from tests.storage.model import FOLDER, LogModel, contents, do_something, expected, growing, ticking
from tests.tiers import blocks

SEEDS = 2_000


class Crashing:
    """A log that is used until the power goes, again and again, and a model of what it acknowledged."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.disk = MemoryDisk()
        self.clock = ticking()
        self.acknowledged = LogModel()
        self.in_flight = LogModel()

    def life(self) -> None:
        """Opens, compares, works, and ends by a power cut, a kill or a clean close."""
        self.disk.stop_after = self.rng.choice([None, self.rng.randrange(8), self.rng.randrange(40)])
        log = None
        try:
            log = open_log(FOLDER, growing(self.clock), self.disk)
            self._compare(log)
            self._work(log)
            if self.rng.random() < 0.5:
                log.close()
        except PowerCut:
            pass
        if self.rng.random() < 0.3:
            self.disk.kill()
        else:
            self.disk.cut_power(self.rng)

    def _compare(self, log: Log) -> None:
        found = contents(log)
        assert found in (expected(self.acknowledged), expected(self.in_flight))
        self.acknowledged = self.acknowledged if found == expected(self.acknowledged) else self.in_flight
        self.in_flight = self.acknowledged

    def _work(self, log: Log) -> None:
        for _ in range(self.rng.randrange(30)):
            next = self.acknowledged.copy()
            for _ in range(self.rng.choice([1, 1, 3, 12])):
                do_something(log, next, self.rng)
            self.in_flight = next
            log.commit()
            self.acknowledged = next
            if self.rng.random() < 0.1:
                log.mark()


def crash_often(seed: int) -> None:
    run = Crashing(seed)
    for _ in range(5):
        run.life()
    run.disk.stop_after = None
    log = open_log(FOLDER, growing(run.clock), run.disk)
    run._compare(log)
    log.close()


def _crash_all(seeds: range) -> None:
    for seed in seeds:
        try:
            crash_often(seed)
        except BaseException as failure:
            failure.add_note(f"crash_often({seed})")
            raise


@pytest.mark.parametrize("seeds", blocks(SEEDS, 250, first=0))
def test_nothing_acknowledged_is_lost_wherever_the_power_goes(seeds: range) -> None:
    _crash_all(seeds)


@pytest.mark.long
def test_nothing_acknowledged_is_lost_in_many_more_runs() -> None:
    for seed in range(SEEDS, 30 * SEEDS):
        crash_often(seed)


class LendsToLaterBlocks(Group):
    """What stood in a block before is taken for what stands in this one."""

    def _close_block(self) -> None:
        shared = self._shared
        super()._close_block()
        self._shared = shared


class CountsFromTheRecord(Shared):
    """The head of the record that lends is forgotten."""

    def lend(self, body: bytes, parts: Sequence[Part], at: int) -> None:
        super().lend(body, parts, at - RECORD_BYTES)


class LooksAtTheBeginning(Shared):
    """What begins alike is taken for the same."""

    def _find(self, body: bytes, at: int, end: int) -> tuple[int, int] | None:
        for lender, number in self._lent.get(body[at : min(at + 64, end)], ()):
            lent, place = lender.part(number)
            if len(lent) <= end - at:
                return place, len(lent)
        return None


@pytest.mark.parametrize(
    ("where", "mistake"),
    [
        ("holdfast.storage.log.Group", LendsToLaterBlocks),
        ("holdfast.storage.group.Shared", CountsFromTheRecord),
        ("holdfast.storage.group.Shared", LooksAtTheBeginning),
    ],
)
def test_a_record_that_borrows_from_the_wrong_place_is_seen(
    where: str, mistake: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, mistake)
    with pytest.raises((AssertionError, LogCorrupt)):
        _crash_all(range(20))
