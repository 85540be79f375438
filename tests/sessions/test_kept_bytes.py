"""A part of a batch that is kept for long does not keep the rest of the batch in memory, of which nobody counts the
bytes: a client that is slow with one event of each message could have its broker, or its own program, run full."""

from __future__ import annotations

import pytest

from holdfast.kernel import outbox
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.backlog import Backlog, Run, batch_of, positions_of
from holdfast.protocols.routing.feed import Feed
from holdfast.protocols.sessions.messages import Deliver, Overflow, Subscribed
from holdfast.protocols.sessions.requests import MakeSubscription
from tests.routing.events import numbered_events, numbers_of
from tests.sessions.test_client import subscribed

SIZE = 1_000


def in_memory(batch: EventBatch) -> int:
    return memoryview(batch.data).nbytes


@pytest.mark.parametrize("step", [1, 7, 100])
def test_a_backlog_keeps_no_more_than_as_much_again_as_it_counts(step: int) -> None:
    backlog = Backlog()
    backlog.add(Run(numbered_events(*range(1, 301), size=SIZE), range(11, 311)))
    backlog.add(Run(numbered_events(301, 302, size=SIZE), [400, 500]))
    for left in range(302 - step, 0, -step):
        backlog.drop(step)
        runs = backlog.read(0, left)
        assert numbers_of(batch_of(runs)) == list(range(303 - left, 303))
        assert positions_of(runs) == [*range(313 - left, 311), 400, 500][-left:]
        assert sum(in_memory(run.batch) for run in runs) <= 2 * backlog.bytes + 10
        assert backlog.bytes == sum(run.batch.bytes for run in runs)


def test_a_feed_keeps_of_a_batch_what_has_not_expired_and_nothing_else() -> None:
    feed = Feed()
    feed.put(numbered_events(*range(1, 201), deadlines=[5] * 199 + [0], size=SIZE))
    feed.drop_expired(wall=6)
    (left,) = feed.pending()
    assert (left.first, numbers_of(left.events)) == (200, [200])
    assert in_memory(left.events) <= 2 * feed.bytes


def test_a_subscription_with_few_events_of_each_message_does_not_keep_the_messages() -> None:
    bench = subscribed(window=1_000)
    bench.ask(MakeSubscription("n > 1", Overflow.DISCONNECT, 1_000))
    bench.say(Subscribed(2))
    message = Deliver([(1, 1, 99), (2, 1, 1)], numbered_events(*range(1, 101), size=SIZE).encoded)
    delivered = [effect for effect in bench.handle(bench.received(message)) if isinstance(effect, outbox.Deliver)]
    many, one = (effect.events.batch for effect in delivered)  # type: ignore[attr-defined]
    assert (numbers_of(many), numbers_of(one)) == (list(range(1, 100)), [100])
    assert in_memory(one) <= 2 * one.bytes
