"""Events that arrive at a broker from others: looked at once, kept as far as somebody wants them, and the same again
when the journal is read."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from holdfast.kernel.time import SECOND
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, EventBytes
from holdfast.protocols.core import commands
from holdfast.protocols.core.arrivals import Arrivals
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.interests import Interests
from holdfast.protocols.core.outputs import CursorFed, Expired, Logged, Output, Woken
from holdfast.protocols.routing.messages import Forward
from holdfast.protocols.sessions.messages import Deliver, Overflow, Publish, Subscribe
from tests.routing.events import batch_of, numbers_of
from tests.routing.test_clients import Home
from tests.routing.test_store import batch, sent

TEXTS = ("n > 3", "n % 2 = 0", "topic = 't'", "n BETWEEN 2 AND 6", "n > 100")


def made_core() -> BrokerCore:
    core = BrokerCore(log=True, interests=Interests(), arrivals=Arrivals(1_000))
    core.apply(1, 1, commands.OpenSession("client:c", 1, 0))
    return core


def shown(outputs: list[Output]) -> list[object]:
    """What outputs say, apart from what they are made of."""
    found: list[object] = []
    for output in outputs:
        match output:
            case Woken():
                found.append(("woken", [subscription.number for subscription in output.subscriptions]))
            case CursorFed():
                found.append(("fed", output.cursor.name, list(output.run.positions), bytes(output.run.batch.encoded)))
            case Logged():
                found.append(("logged", output.first, output.wall, bytes(output.batch.encoded)))
            case Expired():
                found.append(("expired", output.subscription.number, bytes(output.batch.encoded)))
            case _:
                found.append(type(output))
    return found


def drawn_batch(rng: Random, last: int) -> EventBatch:
    first = max(1, last - rng.choice((0, 0, 3)))
    lifetime = rng.choice((0, 0, 5))
    return batch_of(
        Event("p", 1, n, rng.choice("tu"), {"n": rng.randint(0, 8)}, b"", 10, lifetime)
        for n in range(first, first + rng.choice((1, 2, 9)))
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_core_that_is_told_what_it_found_comes_to_what_its_journal_says(seed: int) -> None:
    rng, core, again = Random(seed), made_core(), made_core()
    number, last = 1, 0
    for step in range(40):
        number += 1
        wall = 10 + step // 4
        wanted = None
        what = rng.choice(("subscribe", "unsubscribe", "name", "arrive", "arrive", "arrive"))
        command: commands.Command
        match what:
            case "subscribe":
                text, of = rng.choice(TEXTS), rng.randint(1, 4)
                command = commands.Subscribe("client:c", 1, of, text, Overflow.DROP_OLDEST, 10)
            case "unsubscribe":
                command = commands.Unsubscribe("client:c", 1, rng.randint(1, 4))
            case "name":
                of = rng.randint(1, 2)
                command = commands.OpenCursor("client:c", 1, of, f"name{of}", rng.choice(TEXTS), 0, False, 9, 0, 0, 0)
            case _:
                drawn = drawn_batch(rng, last)
                wanted = core.wanted_of(drawn)
                feed, numbers = rng.choice((("", ()), ("log", (last + 1,))))
                command = commands.Arrive("", "b1", feed, numbers, wanted.batch.encoded)
                last += len(drawn)
        record = msgspec.msgpack.encode(command)
        told = core.apply(number, wall, command, wanted)
        read = again.apply(number, wall, msgspec.msgpack.decode(record, type=commands.Command))
        assert shown(told) == shown(read)
        assert core.get_state() == again.get_state()
    assert core.events, "something arrived"


def test_what_arrives_is_matched_once_and_what_nobody_wants_is_not_kept() -> None:
    core = made_core()
    core.apply(2, 1, commands.Subscribe("client:c", 1, 1, "n > 1", Overflow.DISCONNECT, 10))
    core.apply(3, 1, commands.OpenCursor("client:c", 1, 1, "name", "n = 0", 0, False, 9, 0, 0, 0))
    wanted = core.wanted_of(batch_of(Event("p", 1, n + 1, "t", {"n": n}) for n in range(4)))
    assert numbers_of(wanted.batch) == [1, 3, 4]
    core.apply(4, 1, commands.Arrive("", "b1", "log", (1, 3, 4), wanted.batch.encoded), wanted)
    assert core.events == 3
    assert core.index.counters()["events"] == 4
    assert core.cursors._index.counters()["events"] == 4


def test_of_what_arrives_again_only_what_is_new_is_kept() -> None:
    core = made_core()
    core.apply(2, 1, commands.Subscribe("client:c", 1, 1, "n > 1", Overflow.DISCONNECT, 10))
    events = batch_of(Event("p", 1, n, "t", {"n": n}) for n in range(2, 6))
    for number, first in ((3, 1), (4, 3)):
        wanted = core.wanted_of(events if first == 1 else events.behind(1))
        core.apply(number, 1, commands.Arrive("", "b1", "log", (first,), wanted.batch.encoded), wanted)
    assert core.events == 4


def own(*numbers: int) -> EventBytes:
    return batch_of(Event("c", 1, number, "t", {}) for number in numbers).encoded


def test_what_comes_to_a_broker_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a client and from a neighbour, also where it goes on and where it is wanted."""
    node = Home()
    node.settle(node.say(Subscribe(1, "")))
    node.settle(node.say(Publish(1, own(1))))
    node.keep(node.advance(SECOND))
    published, reads = own(2, 3), list[int]()
    read = EventBatch.read.__func__  # type: ignore[attr-defined]

    def counted(of: type[EventBatch], encoded: EventBytes, bounded: bool = True) -> EventBatch:
        found: EventBatch = read(of, encoded, bounded)
        reads.append(len(found))
        return found

    monkeypatch.setattr(EventBatch, "read", classmethod(counted))
    delivered = sent(node.say(Publish(2, published)), Deliver) + sent(node.hear("b1", Forward(1, batch(4))), Deliver)
    assert [message.runs for _, message in delivered] == [[(1, 2, 2)], [(1, 4, 1)]]
    assert reads == [2, 1]
