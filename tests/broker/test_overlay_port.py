"""The port between a broker's core and its overlay, with an overlay that answers for nothing before it is told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from holdfast.broker.assembly import make_journalled
from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.kit import BrokerKit
from holdfast.kernel.inputs import LinkUp, Received, Requested, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message, Record
from holdfast.kernel.outbox import Append, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.storage import EVENTS, LogBounds, StoredStreams
from holdfast.model.batch import EventBatch
from holdfast.protocols.core.interests import Key
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.core.session import Session
from holdfast.protocols.cursors.messages import CommitStages, StageEvents, StagesCommitted
from holdfast.protocols.desks.home import Home
from holdfast.protocols.desks.overlay import EVERYTHING, PublicationsAnswerable, SubscriptionState
from holdfast.protocols.operating.messages import Change, ChangeBegun, Inspect, Inspected
from holdfast.protocols.sessions.messages import (
    Accepted,
    Advertise,
    OpenSession,
    Publish,
    SessionOpened,
    Subscribe,
    Subscribed,
)
from tests.sessions.bench import EPOCH, Bench, BrokerBench, batch, sent, shown


class LetAnswer(NamedTuple):
    """So many batches of what a client published may be answered, the first ones first."""

    client: str
    batches: int


class Patient(Part):
    name: ClassVar[str] = "patient"
    elsewhere: tuple[str, ...] = ()
    asked: ClassVar[tuple[type, ...]] = (LetAnswer,)

    def __init__(self, home: Home, recovered: Sequence[Entered]) -> None:
        self.home = home
        self.parts: Sequence[Part] = (self,)
        self.waiting: list[Entered] = list(recovered)
        self.changes = 0

    def admits(self, session: Session, message: Publish, batch: EventBatch, out: Outbox) -> bool:
        return True

    def entered(self, entered: Entered, out: Outbox) -> None:
        self.waiting.append(entered)

    def answerable_through(self, session: Session) -> int:
        of_session = [one.first for one in self.waiting if (one.client, one.epoch) == (session.client, session.epoch)]
        return min(of_session) - 1 if of_session else EVERYTHING

    def answerable_commands(self) -> int:
        return min(one.number for one in self.waiting) - 1 if self.waiting else EVERYTHING

    def interests_changed(self, out: Outbox) -> None:
        self.changes += len(self.home.interests.take()[0])

    def subscription_state(self, key: Key) -> SubscriptionState:
        return SubscriptionState.PENDING

    @property
    def member_since(self) -> int:
        return 17

    def facts(self) -> dict[str, str]:
        return {"waiting": str(len(self.waiting))}

    def change(self, action: str, told: Mapping[str, str], out: Outbox) -> str:
        return f"{action}: not while {len(self.waiting)} wait" if self.waiting else ""

    def on_let_answer(self, request: int, command: LetAnswer, out: Outbox) -> None:
        for entered in [one for one in self.waiting if one.client in (command.client, "")][: command.batches]:
            self.waiting.remove(entered)
        out.tell(PublicationsAnswerable([command.client]))


class PortBench(BrokerBench):
    def __init__(self, streams: StoredStreams | None = None) -> None:
        def weave(home: Home, recovered: Sequence[Entered], streams: StoredStreams) -> Patient:
            self.overlay = Patient(home, recovered)
            return self.overlay

        settings = BrokerSettings("b1", durable=True)
        node = make_journalled("patient", settings, streams or {}, None, BrokerKit(), make_overlay=weave)
        Bench.__init__(self, node)
        self.links, self._last_link = {}, 0
        self.handle(Started(1, "disk", {EVENTS: LogBounds(1, 1)}))

    def let(self, client: str, count: int = 1) -> list[Any]:
        effects = self.handle(Requested(1, LetAnswer(client, count)))
        self.drain()
        return sent(shown(effects), client)


P = "client:p"


def test_a_publisher_is_answered_as_far_as_the_overlay_answers_for_it() -> None:
    bench = PortBench()
    bench.open("p")
    assert sent(bench.say("p", Publish(1, batch(1, 2))), P) == [Accepted(0)]
    assert sent(bench.say("p", Publish(3, batch(3))), P) == [Accepted(0)]
    assert bench.let(P) == [Accepted(2)]
    assert bench.let(P) == [Accepted(3)]


def test_what_is_said_again_is_not_published_again_and_not_answered_sooner() -> None:
    bench = PortBench()
    bench.open("p")
    bench.say("p", Publish(1, batch(1)))
    assert sent(bench.say("p", Publish(1, batch(1, 2))), P) == [Accepted(0)]
    assert [one.first for one in bench.overlay.waiting] == [1, 2]
    assert bench.let(P, 2) == [Accepted(2)]


def test_a_publisher_waits_for_its_own_events_and_for_nobody_elses() -> None:
    bench = PortBench()
    for client in ("p", "q"):
        bench.open(client)
        bench.say(client, Publish(1, batch(1)))
    assert bench.let("client:q") == [Accepted(1)]
    assert sent(bench.say("p", Publish(2, batch(2))), P) == [Accepted(0)]


def test_a_refusal_is_told_with_the_answer_to_what_came_before_it() -> None:
    bench = PortBench()
    bench.open("p", Advertise(1, "n < 5"))
    answers = sent(bench.say("p", Publish(1, batch(1, 9))), P)
    assert answers == [Accepted(0)]
    (answer,) = bench.let(P)
    assert (answer.sequence, [number for number, *_ in answer.refused]) == (2, [2])


def test_a_client_is_told_since_when_the_broker_is_in_its_network() -> None:
    opened = sent(PortBench().open("p"), P)[0]
    assert isinstance(opened, SessionOpened)
    assert opened.member_since == 17


def test_a_client_that_comes_back_is_told_no_more_than_the_overlay_answers_for() -> None:
    bench = PortBench()
    opened = sent(bench.open("p"), P)[0]
    assert isinstance(opened, SessionOpened)
    bench.say("p", Publish(1, batch(1)), Publish(2, batch(2)))
    bench.let(P)
    again = sent(bench.open("p", epoch=opened.epoch), P)[0]
    assert (again.epoch, again.accepted) == (opened.epoch, 1)


def journal_of(bench: PortBench, client: str, *said: Message) -> list[Record]:
    """What the broker writes into its journal when a client says this."""
    effects = bench.handle(bench.up(client), bench.received(client, *said))
    return [effect.record for effect in effects if isinstance(effect, Append) and effect.stream == "state"]


def test_what_the_journal_says_was_published_here_is_the_overlays_again_after_a_restart() -> None:
    journal = journal_of(PortBench(), "p", OpenSession(1), Publish(1, batch(1)))
    bench = PortBench({"state": journal})
    opened = sent(bench.open("p", epoch=EPOCH), P)[0]
    assert (opened.epoch, opened.accepted, len(bench.overlay.waiting)) == (EPOCH, 0, 1)
    assert bench.let(P) == [Accepted(1)]


def test_a_commit_is_answered_when_the_overlay_answers_for_its_events() -> None:
    bench = PortBench()
    bench.open("p")
    bench.say("p", StageEvents(1, "q", 1, 0, "s", 1, batch(1)))
    assert sent(bench.say("p", CommitStages(2, "q", 1, ("s",))), P) == []
    assert sent(bench.say("p", CommitStages(3, "q", 1, ("s",))), P) == []
    answers = bench.let(P)
    assert [(type(one), one.request) for one in answers if not isinstance(one, Accepted)] == [
        (StagesCommitted, 2),
        (StagesCommitted, 3),
    ]


def committed(rows: list[Any]) -> list[int]:
    """The requests that are answered."""
    return [row.request for row in rows if isinstance(row, StagesCommitted)]


def test_nobody_is_told_sooner_that_stages_are_committed_than_who_committed_them() -> None:
    """Also not who asks again in its next life, as a sink does that was started again, or another client."""
    bench = PortBench()
    for client in ("p", "z"):
        bench.open(client)
    bench.say("p", StageEvents(1, "q", 1, 0, "s", 1, batch(1)), CommitStages(2, "q", 1, ("s",)))
    assert committed(sent(bench.say("z", CommitStages(1, "q", 1, ("s",))), "client:z")) == []
    bench.handle(bench.down("p"))
    bench.open("p", instance=2)
    assert committed(sent(bench.say("p", CommitStages(3, "q", 1, ("s",))), P)) == []
    effects = shown(bench.handle(Requested(1, LetAnswer(P, 1))))
    assert (committed(sent(effects, P)), committed(sent(effects, "client:z"))) == ([3], [1])


def test_a_commit_is_answered_though_its_client_goes_on_publishing() -> None:
    bench = PortBench()
    bench.open("p")
    bench.say("p", StageEvents(1, "q", 1, 0, "s", 1, batch(1)), CommitStages(2, "q", 1, ("s",)))
    bench.say("p", Publish(1, batch(2)))
    assert committed(bench.let(P)) == [2]


def test_an_answer_is_owed_once_however_often_it_is_asked_for() -> None:
    bench = PortBench()
    bench.open("p")
    bench.say("p", StageEvents(1, "q", 1, 0, "s", 1, batch(1)))
    for _ in range(50):
        bench.say("p", CommitStages(2, "q", 1, ("s",)))
    assert len(bench.desk._replies._owed) <= 2
    assert 1 <= len(committed(bench.let(P))) <= 2


def test_an_answer_that_waits_is_not_for_the_clients_next_life() -> None:
    bench = PortBench()
    bench.open("p")
    bench.say("p", StageEvents(1, "q", 1, 0, "s", 1, batch(1)))
    bench.say("p", CommitStages(2, "q", 1, ("s",)))
    bench.handle(bench.down("p"))
    assert bench.desk._replies._owed == {}
    bench.open("p", instance=2)
    assert [type(one) for one in bench.let(P)] == [Accepted]


def test_the_overlay_hears_of_what_clients_want_and_advertise_in_the_turn_in_which_it_changes() -> None:
    bench = PortBench()
    bench.open("p")
    bench.say("p", Advertise(1, "n > 0"), Subscribe(1, "n > 1"))
    assert bench.overlay.changes == 2
    bench.say("p", Subscribe(2, "n > 2"))
    assert bench.overlay.changes == 3


def test_the_overlay_hears_at_its_start_of_what_the_disk_brought_back() -> None:
    journal = journal_of(PortBench(), "p", OpenSession(1), Subscribe(1, "n > 1"))
    assert PortBench({"state": journal}).overlay.changes == 1


def test_operators_are_told_the_state_of_a_subscription_as_the_overlay_sees_it() -> None:
    bench = PortBench()
    answers = sent(bench.open("p", Subscribe(1, "n > 1")), P)
    assert Subscribed(1) in answers
    up = LinkUp(99, "operator:o", 1, Role.OPERATOR, False)
    effects = bench.handle(up, Received(99, "operator:o", [Inspect(1, subscriptions=5)]))
    inspected = sent(shown(effects), "operator:o")[0]
    assert isinstance(inspected, Inspected)
    assert [one.state for one in inspected.subscriptions] == ["pending"]
    assert inspected.facts["waiting"] == "0"


def test_operators_ask_the_overlay_for_changes_and_are_told_what_is_against_them() -> None:
    bench = PortBench()
    bench.open("p")
    bench.say("p", Publish(1, batch(1)))
    bench.handle(LinkUp(99, "operator:o", 1, Role.OPERATOR, False))
    ask = Received(99, "operator:o", [Change(1, "remove-link", {"one": "b1"})])
    problem = "remove-link: not while 1 wait"
    assert sent(shown(bench.handle(ask)), "operator:o") == [ChangeBegun(1, problem)]
    bench.let(P)
    assert sent(shown(bench.handle(ask)), "operator:o") == [ChangeBegun(1)]
