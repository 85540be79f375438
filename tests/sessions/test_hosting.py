"""An application that the core hosts sees events in order, publishes what it makes, and executes requests once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from holdfast.errors import ApplicationChanged
from holdfast.kernel.application import Derived, Hosted
from holdfast.kernel.inputs import Durable
from holdfast.kernel.outbox import Append, Disconnect
from holdfast.protocols.core import commands
from holdfast.protocols.core.backlog import batch_of
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.hosting import PUBLISHER, Hosting
from holdfast.protocols.core.limits import HostingLimits
from holdfast.protocols.core.outputs import Reply
from holdfast.protocols.sessions import messages
from holdfast.protocols.sessions.messages import NO_APPLICATION, ApplicationAnswered, AskApplication, Refusal
from tests.sessions.bench import EPOCH, WALL, BrokerBench, batch
from tests.sessions.counting import Counting
from tests.sessions.test_core import publish, subscribe

A, B = "client:a", "client:b"


class Calls:
    """Hands what it is shown to a function."""

    topics = frozenset({"t"})

    def __init__(self, make: Callable[[int], Any]) -> None:
        self._make = make
        self.seen: list[tuple[Any, ...]] = []

    def execute(self, request: bytes) -> Any:
        return self._make(len(request))

    def observe(
        self, number: int, wall: int, topic: str, attributes: Mapping[str, Any], payload: bytes
    ) -> Sequence[Derived]:
        self.seen.append((number, wall, topic, dict(attributes), payload))
        made: Sequence[Derived] = self._make(number)
        return made

    def get_state(self) -> bytes:
        return b"%d" % len(self.seen)

    def set_state(self, state: bytes) -> None:
        self.seen = [()] * int(state)


def core_with(application: Hosted, log: bool = False, **limits: int) -> BrokerCore:
    core = BrokerCore(log=log)
    core.hosting = Hosting(application, "toy", HostingLimits(**limits))
    for client in (A, B):
        apply(core, commands.OpenSession(client, 1, 0))
    return core


def apply(core: BrokerCore, command: Command) -> list[Any]:
    outputs = core.apply(core.number + 1, WALL, command)
    core.check_invariants()
    return outputs


def execute(number: int, data: bytes = b"x", confirmed: int = 0, client: str = A) -> Command:
    return commands.Execute(client, EPOCH, number, confirmed, data)


def answers(core: BrokerCore, *given: Command) -> list[ApplicationAnswered]:
    replies = [output for command in given for output in apply(core, command)]
    assert all(isinstance(reply, Reply) for reply in replies)
    return [reply.message for reply in replies]


def kept(core: BrokerCore, client: str = B) -> list[tuple[str, int, str, dict[str, Any]]]:
    subscription = core.sessions[client].subscriptions[1]
    events = batch_of(subscription.read(0, len(subscription))).events
    return [(event.publisher, event.sequence, event.topic, event.attributes) for event in events]


# ----------------------------------------------------------------------------------------------------------- events
@pytest.mark.parametrize("log", [False, True])
def test_it_sees_every_event_of_its_topics_with_its_number(log: bool) -> None:
    application = Calls(lambda number: [])
    core = core_with(application, log)
    apply(core, publish(A, 1, batch(1, 2, topic="t", payload=b"p")))
    apply(core, publish(A, 3, batch(3, topic="u")))
    apply(core, publish(A, 4, batch(4, topic="t")))
    apply(core, publish(A, 3, batch(3, 4, topic="t")))  # once more
    assert application.seen == [
        (1, WALL, "t", {"n": 1}, b"p"),
        (2, WALL, "t", {"n": 2}, b"p"),
        (4, WALL, "t", {"n": 4}, b""),
    ]


@pytest.mark.parametrize("log", [False, True])
def test_what_it_makes_comes_right_behind_and_is_not_shown_to_it(log: bool) -> None:
    application = Calls(lambda number: [Derived("t", {"n": number}, b"made")])
    core = core_with(application, log)
    apply(core, subscribe(B, 1, text=""))
    apply(core, publish(A, 1, batch(1, 2, topic="t")))
    apply(core, publish(A, 3, batch(3, topic="t")))
    assert [row[0] for row in application.seen] == [1, 2, 5]
    assert [row[:2] for row in kept(core)] == [
        ("p", 1),
        ("p", 2),
        (PUBLISHER, 1),
        (PUBLISHER, 2),
        ("p", 3),
        (PUBLISHER, 3),
    ]
    assert core.events == 6
    if core.log is not None:
        assert core.log.head == 6


def test_it_sees_what_is_committed_in_stages_and_what_it_makes_comes_behind_all_of_that() -> None:
    application = Calls(lambda number: [Derived("t", {"n": number}, b"")])
    core = core_with(application, log=True)
    apply(core, subscribe(B, 1, text=""))
    for part in (1, 2):
        apply(core, commands.StageEvents(A, EPOCH, part, "q", 1, 0, "s", part, batch(part, topic="t")))
    committed = apply(core, commands.CommitStages(A, EPOCH, 3, "q", 1, ("s",)))[-1].message
    assert (committed.first, committed.last) == (1, 2)
    assert [row[:2] for row in kept(core)] == [("p", 1), ("p", 2), (PUBLISHER, 1), (PUBLISHER, 2)]


class Reshaping(Calls):
    def observe(
        self, number: int, wall: int, topic: str, attributes: Mapping[str, Any], payload: bytes
    ) -> Sequence[Derived]:
        attributes["n"] = 99  # type: ignore[index]
        return []


def test_it_can_not_change_what_it_is_shown() -> None:
    core = core_with(Reshaping(lambda number: []))
    apply(core, subscribe(B, 1, text="n = 1"))
    apply(core, publish(A, 1, batch(1, topic="t")))
    assert kept(core) == [("p", 1, "t", {"n": 1})]
    assert core.hosting.failed == 1


BAD: list[Any] = [
    Derived("t", {"n": float("nan")}, b""),
    Derived("t", {"n": 2**70}, b""),
    Derived("t", {"n": [1]}, b""),  # type: ignore[dict-item]
    Derived(7, {}, b""),  # type: ignore[arg-type]
    Derived("\ud800", {}, b""),
    Derived("t", {}, "text"),  # type: ignore[arg-type]
    Derived("t", {"x" * 200: 1}, b""),
    Derived("t", {}, bytes(600 * 1024)),
    Derived("t", None, b""),  # type: ignore[arg-type]
    None,
    "t",
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
def test_a_derived_event_that_breaks_a_rule_is_dropped_and_leaves_no_gap(bad: Any) -> None:
    good = Derived("t", {"n": 1}, b"")
    core = core_with(Calls(lambda number: [good, bad, good]), derived_bytes=1 << 20)
    apply(core, subscribe(B, 1, text="n = 1 AND topic = 't'"))
    apply(core, publish(A, 1, batch(7, topic="t")))
    assert [row[:2] for row in kept(core)] == [(PUBLISHER, 1), (PUBLISHER, 2)]
    assert (core.hosting.derived, core.hosting.dropped, core.hosting.failed) == (2, 1, 0)


def test_a_command_makes_no_more_than_its_limits() -> None:
    core = core_with(Calls(lambda number: [Derived("t", {"n": number}, b"")] * 3), derived_events=4)
    apply(core, publish(A, 1, batch(1, 2, topic="t")))
    assert (core.hosting.derived, core.hosting.dropped) == (4, 2)
    core = core_with(Calls(lambda number: [Derived("t", {"n": number}, bytes(400))] * 3), derived_bytes=1_000)
    apply(core, publish(A, 1, batch(1, topic="t")))
    assert (core.hosting.derived, core.hosting.dropped) == (2, 1)


@pytest.mark.parametrize("result", [None, 7, [None]])
def test_what_it_raises_or_gives_at_an_event_stops_nothing(result: Any) -> None:
    def make(number: int) -> Any:
        if number == 1:
            raise RuntimeError("broken")
        return result if number == 2 else [Derived("t", {"n": number}, b"")]

    core = core_with(Calls(make))
    apply(core, subscribe(B, 1, text=""))
    apply(core, publish(A, 1, batch(1, 2, 3, topic="t")))
    assert [row[:2] for row in kept(core)] == [("p", 1), ("p", 2), ("p", 3), (PUBLISHER, 1)]
    assert core.hosting.failed + core.hosting.dropped == 2


def test_a_broker_that_forgot_does_not_reuse_the_ids_of_what_it_made() -> None:
    ids = []
    for wall in (WALL, WALL + 1):
        core = BrokerCore()
        core.hosting = Hosting(Calls(lambda number: [Derived("t", {}, b"")]), "toy")
        for number, command in enumerate(
            [commands.OpenSession(A, 1, 0), subscribe(A, 1, text=""), publish(A, 1, batch(1, topic="t"))], 1
        ):
            core.apply(number, wall, command)
        ids.append(batch_of(core.sessions[A].subscriptions[1].read(0, 9)).ids[-1])
    assert ids == [f"{PUBLISHER}/{WALL}/1", f"{PUBLISHER}/{WALL + 1}/1"]


# --------------------------------------------------------------------------------------------------------- requests
def test_a_request_that_comes_again_is_executed_once_and_answered_again() -> None:
    """D4-C6."""
    core = core_with(Counting())
    first = answers(core, execute(1, b"a"), execute(2, b"a"))
    assert [answer.answer for answer in first] == [b"a 1", b"a 2"]
    assert answers(core, execute(1, b"a"), execute(2, b"b")) == first
    assert core.hosting.requests == 2


def test_answers_are_kept_until_they_are_confirmed() -> None:
    core = core_with(Counting())
    answers(core, execute(1), execute(2))
    answers(core, execute(3, confirmed=2))
    assert list(core.sessions[A].answers) == [3]
    assert answers(core, execute(2)) == []
    assert core.hosting.requests == 3


def test_a_session_has_no_more_requests_unconfirmed_than_its_limit() -> None:
    core = core_with(Counting(), requests_in_flight=2)
    assert len(answers(core, execute(1), execute(2), execute(3))) == 2
    assert len(answers(core, execute(3, confirmed=1))) == 1


def test_sessions_number_their_requests_on_their_own() -> None:
    core = core_with(Counting())
    said = answers(core, execute(1, b"a"), execute(1, b"a", client=B))
    assert [answer.answer for answer in said] == [b"a 1", b"a 2"]
    assert answers(core, commands.Execute(A, EPOCH + 1, 1, 0, b"a")) == []


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


class Raises(Calls):
    def __init__(self, error: Exception) -> None:
        super().__init__(lambda number: [])
        self._error = error

    def execute(self, request: bytes) -> bytes:
        raise self._error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "ValueError: no"),
        (UnspeakableError(), "UnspeakableError"),
        (KeyError("\ud800"), "KeyError: '\\ud800'"),
        (RuntimeError("\ud800"), "RuntimeError: ?"),
        (RuntimeError("x" * 2_000), "RuntimeError: " + "x" * 986),
    ],
)
def test_what_it_raises_at_a_request_is_the_answer_and_stops_nothing(error: Exception, text: str) -> None:
    core = core_with(Raises(error))
    failed = ApplicationAnswered(1, b"", Refusal.APPLICATION_FAILED, text)
    assert answers(core, execute(1), execute(1)) == [failed, failed]
    msgspec.msgpack.encode(failed)
    assert (core.hosting.requests, core.hosting.failed) == (1, 1)


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ("text", "the application answered with str, not bytes"),
        (None, "the application answered with NoneType, not bytes"),
        (bytes(11), "the answer's bytes are 11, beyond answer_bytes, 10"),
    ],
)
def test_what_is_no_answer_is_a_failure(made: Any, problem: str) -> None:
    core = core_with(Calls(lambda size: made), answer_bytes=10)
    assert answers(core, execute(1)) == [ApplicationAnswered(1, b"", Refusal.APPLICATION_FAILED, problem)]


# ------------------------------------------------------------------------------------------------------------ state
def test_the_state_holds_the_application_and_the_answers() -> None:
    """D4-B6.4, D4-C5."""
    core = core_with(Counting(every=2), log=True)
    apply(core, subscribe(B, 1, text=""))
    apply(core, publish(A, 1, batch(1, 2, 3, topic="count")))
    said = answers(core, execute(1, b"a"), execute(2, b"fail"))
    other = BrokerCore(log=True)
    other.hosting = Hosting(Counting(every=2), "toy")
    other.set_state(core.get_state())
    assert other.get_state() == core.get_state()
    assert answers(other, execute(1, b"a"), execute(2, b"fail")) == said
    assert answers(core, execute(1, b"a"), execute(2, b"fail")) == said
    for each in (core, other):
        apply(each, publish(A, 4, batch(4, topic="count")))
    assert other.get_state() == core.get_state()
    assert kept(other) == kept(core)


def test_a_state_of_another_application_is_refused_and_one_of_none_is_begun_with() -> None:
    state = core_with(Counting()).get_state()
    for application, name in [(None, ""), (Counting(), "other")]:
        core = BrokerCore()
        core.hosting = Hosting(application, name)
        with pytest.raises(ApplicationChanged) as changed:
            core.set_state(state)
        assert (changed.value.was, changed.value.given) == ("toy", name)
    plain = BrokerCore()
    apply(plain, commands.OpenSession(A, 1, 0))
    core = core_with(Counting())
    core.set_state(plain.get_state())
    assert answers(core, execute(1, b"a"))[0].answer == b"a 1"


def test_a_state_from_before_there_were_applications_is_read() -> None:
    plain = BrokerCore()
    apply(plain, commands.OpenSession(A, 1, 0))
    state = msgspec.msgpack.decode(plain.get_state())
    *older, hosting, _ = state
    assert hosting is None
    older[4] = [session[:7] for session in older[4]]
    core = BrokerCore()
    core.set_state(msgspec.msgpack.encode(older))
    assert core.get_state() == plain.get_state()


# -------------------------------------------------------------------------------------------------------- at a broker
def bench_with(
    application: Hosted | None, durable: bool = False, streams: Any = None, name: str = "toy", **limits: int
) -> BrokerBench:
    hosting = HostingLimits(**limits)
    return BrokerBench(durable=durable, streams=streams, application=application, hosted=name, hosting=hosting)


def ask(number: int, request: bytes = b"x", confirmed: int = 0) -> AskApplication:
    return AskApplication(number, request, confirmed)


def test_a_broker_without_an_application_says_so() -> None:
    bench = bench_with(None, name="")
    bench.open("a")
    refused = ApplicationAnswered(1, b"", Refusal.NO_APPLICATION, NO_APPLICATION)
    assert bench.say("a", ask(1)) == [(A, refused)]


def test_a_broker_says_how_many_requests_may_be_under_way() -> None:
    assert bench_with(Counting(), requests_in_flight=3).open("a")[0][1].request_window == 3
    assert bench_with(None, name="").open("a")[0][1].request_window == 0


def test_a_request_is_answered_and_asked_again_answered_without_a_command() -> None:
    bench = bench_with(Counting())
    bench.open("a")
    answered = (A, ApplicationAnswered(1, b"q 1"))
    assert bench.say("a", ask(1, b"q")) == [answered]
    number = bench.desk._core.number
    assert bench.say("a", ask(1, b"q"), ask(1, b"q")) == [answered, answered]
    assert bench.desk._core.number == number
    assert bench.say("a", ask(2, b"q", 1)) == [(A, ApplicationAnswered(2, b"q 2"))]
    assert bench.say("a", ask(1, b"q", 0)) == []


def test_a_request_that_is_too_large_is_refused_by_its_limit() -> None:
    bench = bench_with(Counting(), request_bytes=4)
    bench.open("a")
    problem = "a request's bytes are 5, beyond request_bytes, 4"
    assert bench.say("a", ask(1, b"12345")) == [
        (A, ApplicationAnswered(1, b"", Refusal.LIMIT, problem, "request_bytes", 4))
    ]
    assert bench.say("a", ask(2, b"1234", 1)) == [(A, ApplicationAnswered(2, b"1234 1"))]


@pytest.mark.parametrize(("number", "confirmed"), [(3, 0), (0, 0), (1, 1), (1, -1), (2**62 + 1, 2**62)])
def test_a_number_beyond_the_window_is_a_breach(number: int, confirmed: int) -> None:
    bench = bench_with(Counting(), requests_in_flight=2)
    bench.open("a")
    assert [type(row) for row in bench.say("a", ask(number, b"", confirmed))] == [Disconnect]


def test_nothing_is_answered_before_it_is_on_the_disk() -> None:
    bench = bench_with(Counting(), durable=True)
    bench.open("a")
    bench.handle(Durable(bench.out.token))
    bench.handle(bench.received("a", ask(1, b"q"), ask(1, b"q")))
    queue = bench.out.queues[A]
    assert not queue.take(bench.out.token - 1, 1 << 30)[0]
    assert [type(entry.message) for entry in queue.take(bench.out.token, 1 << 30)[0]] == [ApplicationAnswered] * 2


def recorded(bench: BrokerBench, *said: Any) -> list[Any]:
    """What a turn adds to the journal."""
    effects = bench.handle(bench.received("a", *said))
    return [effect.record for effect in effects if isinstance(effect, Append) and effect.stream == "state"]


def test_a_journal_is_read_with_the_application_that_saw_it_or_not_at_all() -> None:
    plain = bench_with(None, durable=True, name="")
    effects = plain.handle(plain.up("a")) + plain.handle(plain.received("a", messages.OpenSession(1)))
    before = [e.record for e in effects if isinstance(e, Append) and e.stream == "state"]
    before += recorded(plain, messages.Publish(1, batch(1, 2, topic="count")))
    # From now on there is an application: it begins with what comes next.
    hosting = bench_with(Counting(every=2), durable=True, streams={"state": before})
    core = hosting.desk._core
    assert (core.events, core.hosting.application.count) == (2, 0)
    hosting.handle(hosting.up("a"))
    opened = hosting.handle(hosting.received("a", messages.OpenSession(1, EPOCH)))
    after = [e.record for e in opened if isinstance(e, Append) and e.stream == "state"]
    after += recorded(hosting, messages.Publish(3, batch(3, 4, topic="count")), ask(1, b"q"))
    assert (core.events, core.hosting.application.count) == (5, 2)
    again = bench_with(Counting(every=2), durable=True, streams={"state": before + after}).desk._core
    assert again.get_state() == core.get_state()
    for application, name in [(None, ""), (Counting(), "other")]:
        with pytest.raises(ApplicationChanged):
            bench_with(application, durable=True, streams={"state": before + after}, name=name)
