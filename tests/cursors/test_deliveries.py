"""One cursor's events on their way, for any sequence of what may happen: in order, complete, within the window."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.time import SECOND
from holdfast.protocols.cursors.messages import Acknowledge, CursorEvents, CursorProgress, OpenCursor
from holdfast.protocols.desks.cursor_deliveries import DeliverySettings
from tests.cursors.bench import LogBench, told
from tests.sessions.bench import shown

acts = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(st.integers(0, 5), min_size=1, max_size=6)),
        st.tuples(st.just("report"), st.booleans()),
        st.tuples(st.just("consume"), st.integers(1, 4)),
        st.tuples(st.just("acknowledge"), st.just(0)),
        st.tuples(st.just("lose"), st.integers(1, 3)),
        st.tuples(st.just("wait"), st.integers(1, 3)),
        st.tuples(st.just("relink"), st.just(0)),
        st.tuples(st.just("hold"), st.just(0)),
        st.tuples(st.just("release"), st.just(0)),
    ),
    min_size=5,
    max_size=25,
)


class Client:
    """Takes messages as the real client does, but for what is lost on the way."""

    def __init__(self, bench: LogBench, window: int) -> None:
        self.bench, self.window = bench, window
        self.received = self.consumed = 0
        self.got: list[int] = []
        self.waiting: list[int] = []  # not consumed
        self.losing = 0
        self.gap = False

    def take(self, rows: list[Any]) -> None:
        for message in told(rows, "c"):
            if not isinstance(message, CursorEvents):
                continue
            if self.losing:
                self.losing -= 1
                continue
            if message.after > self.received:
                self.gap = True
            elif message.through > self.received:
                new = [position for position in message.positions if position > self.received]
                self.got += new
                self.waiting += new
                self.received = message.through
                if not self.waiting:
                    self.consumed = self.received
            assert len(self.waiting) <= self.window, "the window is exceeded"

    def consume(self, count: int) -> None:
        for _ in range(min(count, len(self.waiting))):
            self.consumed = self.waiting.pop(0)
        if not self.waiting:
            self.consumed = self.received

    def progress(self, missing: bool) -> CursorProgress:
        gap, self.gap = self.gap or missing, False
        return CursorProgress(1, self.received, self.consumed, gap, unconsumed=len(self.waiting))


@given(
    given_acts=acts,
    window=st.integers(1, 4),
    queue=st.integers(1, 3),
    read=st.sampled_from([1, 100_000]),
    size=st.integers(1, 3),
)
@settings(max_examples=200)
def test_nothing_is_lost_doubled_or_beyond_the_window(
    given_acts: list[tuple[str, Any]], window: int, queue: int, read: int, size: int
) -> None:
    delivery = DeliverySettings(queue_events=queue, read_bytes=read, message_events=size)
    bench = LogBench(delivery=delivery)
    bench.open("p")
    bench.open("c")
    client = Client(bench, window)
    numbers: list[int] = []
    client.take(bench.say("c", OpenCursor(1, "risk", "n < 4", window=window)))
    for what, argument in given_acts:
        match what:
            case "publish":
                numbers += argument
                rows = bench.publish("p", *argument)
            case "report":
                rows = bench.say("c", client.progress(argument))
            case "consume":
                client.consume(argument)
                rows = bench.say("c", client.progress(False))
            case "acknowledge":
                rows = bench.say("c", Acknowledge(1, client.received))
            case "lose":
                client.losing, rows = argument, []
            case "wait":
                rows = shown(bench.advance(argument * SECOND))
            case "relink":
                opening = OpenCursor(
                    1,
                    "risk",
                    "n < 4",
                    window=window,
                    generation=1,
                    received=client.received,
                    unconsumed=len(client.waiting),
                )
                rows = bench.open("c", opening)
            case "hold":
                bench.held, rows = True, []
            case _:
                rows = shown(bench.release())
        client.take(rows)
    client.losing = 0
    client.take(shown(bench.release()))
    for _ in range(200):
        client.consume(100)
        client.take(bench.say("c", client.progress(False)))
        client.take(shown(bench.advance(SECOND)))
        if client.received == len(numbers):
            break
    assert client.got == [position for position, number in enumerate(numbers, 1) if number < 4]
