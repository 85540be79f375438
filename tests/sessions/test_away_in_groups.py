"""A group takes its time with what is asked: a client that has come back meanwhile is not away."""

from holdfast.kernel.time import SECOND
from holdfast.protocols.core import commands
from holdfast.protocols.sessions.messages import OpenSession, Subscribe
from tests.sessions.bench import EPOCH
from tests.sessions.direct_bench import ReplicaBench

S = "client:s"


def away(seconds: int) -> ReplicaBench:
    """A leader whose client has been away for so long, of ten seconds. From now on nothing is decided."""
    bench = ReplicaBench(leads=True, away_after=10 * SECOND)
    bench.open("s", Subscribe(1, "n > 0"))
    bench.handle(bench.down("s"))
    bench.advance(seconds * SECOND)
    bench.sequencer.take_submitted()
    bench.sequencer.is_slow = True
    return bench


def test_subscriptions_are_not_dropped_between_the_asking_for_a_session_and_the_answer() -> None:
    """The answer would say that they are known, and then they would be dropped."""
    bench = away(9)
    bench.handle(bench.up("s"))
    bench.say("s", OpenSession(1, EPOCH, (1,), (0,), (0,)))
    bench.advance(5 * SECOND)
    assert bench.sequencer.take_submitted() == [commands.OpenSession(S, 1, EPOCH, 1)]


def test_a_client_that_asks_and_leaves_again_is_away_from_then_on() -> None:
    bench = away(9)
    bench.handle(bench.up("s"))
    bench.say("s", OpenSession(1, EPOCH, (1,), (0,), (0,)))
    bench.handle(bench.down("s"))
    bench.advance(9 * SECOND)
    assert bench.sequencer.take_submitted() == [commands.OpenSession(S, 1, EPOCH, 1)]
    bench.advance(2 * SECOND)
    assert bench.sequencer.take_submitted() == [commands.DropSubscriptions(S, EPOCH)]
