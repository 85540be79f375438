"""Any sequence of calls, reopenings and power cuts gives what a simple model says."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.errors import RecordsGone
from holdfast.storage import LogSettings, Retention, open_log
from tests.storage.disk import MemoryDisk
from tests.storage.model import FOLDER, STREAMS, LogModel, contents, expected, ticking

names = st.sampled_from(STREAMS)


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk()
        self.clock = ticking()
        self.durable = LogModel()  # what was committed
        self.written = LogModel()  # with what was appended since
        self.times: dict[str, list[tuple[int, int]]] = {}
        self._open(32 * 1024, "newest")

    def _open(self, segment_bytes: int, verify: str) -> None:
        self.log = open_log(
            FOLDER,
            LogSettings(
                segment_bytes,
                700,
                2048,
                "all" if verify == "all" else "newest",
                False,
                clock=self.clock,
                first_segment_bytes=9 * 1024,
            ),
            self.disk,
        )

    @rule(
        name=names,
        size=st.sampled_from([0, 10, 100, 699, 700, 3000, 9000]),
        count=st.integers(1, 5),
        seed=st.integers(),
    )
    def append(self, name: str, size: int, count: int, seed: int) -> None:
        body = Random(seed).randbytes(size)
        stream = self.written.stream(name)
        assert self.log.append(name, seed % 256, body, count) == stream.next
        stream.append(seed % 256, body, count)

    @rule(name=names)
    def snapshot(self, name: str) -> None:
        stream = self.written.stream(name)
        number = stream.next
        assert self.log.snapshot(name, 0, b"snapshot") == number
        stream.append(0, b"snapshot", 1)
        stream.truncate(number)

    @rule(name=names, before=st.integers(0, 60))
    def truncate(self, name: str, before: int) -> None:
        self.log.truncate(name, before)
        self.written.stream(name).truncate(before)

    @rule(name=names, floor=st.integers(1, 60), limit=st.sampled_from([0, 5000, 100_000]))
    def retain(self, name: str, floor: int, limit: int) -> None:
        before = self.log.retain(name, Retention(bytes_max=limit), floor)
        stream = self.written.stream(name)
        assert before <= max(floor, stream.first)
        stream.truncate(before)

    @rule()
    def commit(self) -> None:
        self.log.commit()
        self.durable = self.written
        self.written = self.durable.copy()

    @rule()
    def mark(self) -> None:
        self.log.mark()

    @rule(
        segment_bytes=st.sampled_from([12 * 1024, 32 * 1024]),
        verify=st.sampled_from(["newest", "all"]),
        how=st.sampled_from(["close", "kill", "power"]),
        seed=st.integers(0, 1000),
    )
    def reopen(self, segment_bytes: int, verify: str, how: str, seed: int) -> None:
        if how == "close":
            self.log.close()
        if how == "power":
            self.disk.cut_power(Random(seed))
        self.disk.kill()
        self.written = self.durable.copy()
        self._open(segment_bytes, verify)
        assert self.log.opening.cut is None

    @precondition(lambda self: any(s.records for s in self.durable.streams.values()))
    @rule(name=names, place=st.floats(0, 1), limit=st.integers(1, 5))
    def read_somewhere(self, name: str, place: float, limit: int) -> None:
        stream = self.durable.stream(name)
        start = max(1, round(place * stream.next))
        if start < stream.first:
            with pytest.raises(RecordsGone):
                self.log.read(name, start)
            return
        records = [r for r in stream.records if r[0] + r[1] > start][:limit]
        found = self.log.read(name, start, limit, 10**9)
        assert [(n, count, kind, body) for n, count, _, kind, body in found] == records
        for number, _, time, _, _ in found[:1]:
            at = self.log.number_at(name, time)
            assert stream.first <= at <= max(number, stream.first)

    @invariant()
    def holds_what_was_committed(self) -> None:
        assert contents(self.log) == expected(self.durable)


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=150, stateful_step_count=40)
