"""What a log should hold, said in the simplest way; and drawing things to do to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from holdfast.storage import Log, LogSettings

STREAMS = ("events", "state", "acceptor")
FOLDER = "/data/log"


def small(clock: Callable[[], int] | None = None, segment_bytes: int = 32 * 1024) -> LogSettings:
    """Tiny segments and blocks, nothing in the background."""
    return LogSettings(
        segment_bytes=segment_bytes,
        block_bytes=700,
        index_bytes=2048,
        prepare_ahead=False,
        clock=clock or ticking(),
    )


def growing(clock: Callable[[], int] | None = None) -> LogSettings:
    """The same with segments that grow, as those of real logs do."""
    return replace(small(clock), first_segment_bytes=9 * 1024)


def ticking(start: int = 1_000) -> Callable[[], int]:
    """A clock that goes on by one at every look."""
    now = [start]

    def clock() -> int:
        now[0] += 1
        return now[0]

    return clock


@dataclass
class StreamModel:
    next: int = 1
    first: int = 1
    records: list[tuple[int, int, int, bytes]] = field(default_factory=list)  # number, count, kind, body

    def append(self, kind: int, body: bytes, count: int) -> None:
        self.records.append((self.next, count, kind, body))
        self.next += count

    def truncate(self, before: int) -> None:
        self.first = max(self.first, min(before, self.next))
        self.records = [record for record in self.records if record[0] + record[1] > self.first]


@dataclass
class LogModel:
    streams: dict[str, StreamModel] = field(default_factory=dict)

    def stream(self, name: str) -> StreamModel:
        return self.streams.setdefault(name, StreamModel())

    def copy(self) -> LogModel:
        return LogModel({n: StreamModel(s.next, s.first, list(s.records)) for n, s in self.streams.items()})


def contents(log: Log) -> dict[str, tuple[int, int, list[tuple[int, int, int, bytes]]]]:
    """First, end and all records of every stream that the log holds anything of."""
    return {
        name: (
            log.first(name),
            log.end(name),
            [(n, count, kind, body) for records in log.scan(name) for n, count, _, kind, body in records],
        )
        for name in sorted(log.streams())
        if log.end(name) > 1
    }


def expected(model: LogModel) -> dict[str, tuple[int, int, list[tuple[int, int, int, bytes]]]]:
    return {name: (s.first, s.next, s.records) for name, s in sorted(model.streams.items()) if s.next > 1}


def _with_parts(rng: Random) -> tuple[bytes, list[bytes]]:
    """A body of parts that others of the commit are likely to have, too, and what stands around them."""
    sizes = [rng.choice([20, 60, 700, 3000]) for _ in range(rng.choice([1, 1, 2, 3]))]
    parts = [bytes([rng.randrange(3)]) * size + bytes([rng.randrange(3)]) for size in sizes]
    around = [rng.randbytes(rng.choice([0, 3, 40])) for _ in range(len(parts) + 1)]
    return b"".join([around[0], *[some for pair in zip(parts, around[1:], strict=True) for some in pair]]), parts


def do_something(log: Log, model: LogModel, rng: Random) -> None:
    """Appends, snapshots or truncates, in both."""
    name = rng.choice(STREAMS)
    stream = model.stream(name)
    what = rng.random()
    if what < 0.3:
        body, parts = _with_parts(rng)
        kind, count = rng.randrange(256), rng.choice([1, 7])
        assert log.append(name, kind, body, count, parts) == stream.next
        stream.append(kind, body, count)
    elif what < 0.8:
        body = rng.randbytes(rng.choice([0, 1, 30, 100, 100, 900, 5000]))
        count = rng.choice([1, 1, 1, 7])
        kind = rng.randrange(256)
        assert log.append(name, kind, body, count) == stream.next
        stream.append(kind, body, count)
    elif what < 0.9:
        body = rng.randbytes(50)
        number = stream.next
        assert log.snapshot(name, 9, body) == number
        stream.append(9, body, 1)
        stream.truncate(number)
    else:
        before = rng.randint(stream.first, stream.next)
        log.truncate(name, before)
        stream.truncate(before)
