"""What operators are told of named subscriptions, and what giving one up for them does."""

from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import LinkDown, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Note, RecordingOutbox, Send
from holdfast.kernel.parts import Assembly
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.kernel.time import SECOND
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.outputs import NameRemoval
from holdfast.protocols.cursors.messages import Acknowledge, CloseCursor, CursorEnded, OpenCursor
from holdfast.protocols.desks import names_desk as names
from holdfast.protocols.desks.log_desk import NO_LOG, NO_NAME, RetentionSettings
from holdfast.protocols.operating.messages import (
    Inspect,
    Inspected,
    ListNames,
    NameRemoved,
    NameReport,
    NamesListed,
    RemoveName,
)
from holdfast.protocols.sessions.messages import Refusal
from holdfast.runtime.metrics import exposition
from holdfast.runtime.refusals import REASONS
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.paxos.parts import make_replica
from holdfast.schemes.paxos.settings import Member, PaxosSettings
from tests.cursors.bench import LogBench, told
from tests.sessions.bench import EPOCH, WALL, BrokerBench, batch

OPERATOR = "operator:o"
LINK = 1_000


def opened(*clients: str, **settings: Any) -> LogBench:
    bench = LogBench(**settings)
    for client in (*clients, "p"):
        bench.open(client)
    bench.handle(LinkUp(LINK, OPERATOR, 1, Role.OPERATOR, False))
    return bench


def ask(bench: BrokerBench, message: Message) -> Any:
    """The answer to an operator."""
    effects = bench.handle(Received(LINK, OPERATOR, [message]))
    (answer,) = [effect.message for effect in effects if isinstance(effect, Send) and effect.to == OPERATOR]
    return answer


def listed(bench: LogBench) -> tuple[NameReport, ...]:
    answer = ask(bench, ListNames(1))
    assert isinstance(answer, NamesListed)
    return answer.names


# ---------------------------------------------------------------------------------------------------------- looking
def test_a_name_is_told_with_its_owner_its_place_and_its_age() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", "n > 1"))
    bench.advance(3 * SECOND)
    bench.publish("p", 1, 2, 3, 4)
    bench.say("c", Acknowledge(1, 1))
    bench.advance(4 * SECOND)
    (risk,) = listed(bench)
    assert bench.core.log is not None
    assert risk.bytes == 3 * bench.core.log.bytes // 4
    assert risk == NameReport("risk", "c", True, 1, 3, risk.bytes, 0, 7 * SECOND, 4 * SECOND, "n > 1")
    bench.handle(bench.down("c"))
    assert [(r.owner, r.connected, r.unused) for r in listed(bench)] == [("c", False, 4 * SECOND)], "it may come back"
    bench.open("c")
    bench.say("c", CloseCursor(1))
    bench.advance(2 * SECOND)
    assert [(r.owner, r.connected, r.unused) for r in listed(bench)] == [("", False, 2 * SECOND)]


def test_ages_come_from_commands_and_outlive_the_broker() -> None:
    """Time enters a core inside its commands: so replicas agree, and a clock that went back makes nothing younger."""
    core = BrokerCore(log=True)
    core.apply(1, WALL, commands.OpenSession("client:c", 1, 0))
    core.apply(2, WALL + 5, commands.OpenCursor("client:c", EPOCH, 1, "risk", "", 0, False, 4, 0, 0, -1))
    core.apply(3, WALL + 9, commands.AcknowledgeCursor("client:c", EPOCH, 1, 0))
    core.apply(4, WALL + 7, commands.CloseCursor("client:c", EPOCH, 1))
    restored = BrokerCore(log=True)
    restored.set_state(core.get_state())
    for each in (core, restored):
        cursor = each.cursors.cursors["risk"]
        assert (cursor.made_at, cursor.used_at) == (WALL + 5, WALL + 9)


def test_more_names_than_fit_into_an_answer_come_in_the_order_of_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "NAMES_LISTED_MAX", 2)
    bench = opened("c")
    for number, name in enumerate(("d", "a", "c", "e", "b"), 1):
        bench.say("c", OpenCursor(number, name, ""))
    pages = [ask(bench, ListNames(1, after)) for after in ("", "b", "d")]
    assert [[report.name for report in page.names] for page in pages] == [["a", "b"], ["c", "d"], ["e"]]
    assert [(page.total, page.more, page.problem) for page in pages] == [(5, True, ""), (5, True, ""), (5, False, "")]
    assert [report.name for report in ask(bench, ListNames(1, "", -7)).names] == ["a"]


def test_who_inspects_a_broker_gets_the_names_that_are_furthest_behind_and_the_one_that_holds_the_log() -> None:
    bench = opened("c")
    bench.publish("p", *range(1, 10))
    for number, start in ((1, 9), (2, 4), (3, 6)):
        bench.say("c", OpenCursor(number, f"from {start}", "", start))
    answer = ask(bench, Inspect(1, 0, False, 2))
    assert isinstance(answer, Inspected)
    assert [(report.name, report.behind) for report in answer.names] == [("from 4", 6), ("from 6", 4)]
    assert answer.facts["log_held_by"] == "from 4"
    assert (answer.measures["named_subscriptions"], answer.measures["named_lag_events"]) == (3, 6)
    for number in (1, 2, 3):
        bench.say("c", Acknowledge(number, 9))
    assert "log_held_by" not in ask(bench, Inspect(1)).facts


# --------------------------------------------------------------------------------------------------------- measures
def series(bench: LogBench) -> dict[str, str]:
    runner = SimpleNamespace(name="b1", measure=bench.node.measure, measure_each=bench.node.measure_each)
    runner.refusals = dict.fromkeys(REASONS, 0)
    lines = exposition([cast(NodeRunner, runner)], {}).splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if line.startswith("holdfast_named_"))


def test_no_more_names_than_a_limit_have_measures_of_their_own_and_the_others_are_summed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(names, "NAMES_MEASURED_MAX", 2)
    bench = opened("c")
    bench.publish("p", *range(1, 10))
    for number, start in ((1, 9), (2, 4), (3, 6), (4, 5), (5, 8)):
        bench.say("c", OpenCursor(number, f"from {start}", "", start))
    shown = series(bench)
    events = {name: value for name, value in shown.items() if name.startswith("holdfast_named_behind_events")}
    assert events == {
        'holdfast_named_behind_events{broker="b1",name="from 4"}': "6",
        'holdfast_named_behind_events{broker="b1",name="from 5"}': "5",
        'holdfast_named_behind_events{broker="b1",name=""}': str(4 + 2 + 1),
    }
    assert shown['holdfast_named_others{broker="b1"}'] == "3"
    assert {name for name in shown if "bytes" in name} == {
        'holdfast_named_behind_bytes{broker="b1",name="from 4"}',
        'holdfast_named_behind_bytes{broker="b1",name="from 5"}',
    }


def test_a_name_can_not_write_lines_of_its_own() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, 'a"} 7\nholdfast_sessions{broker="b1"} 9\\', ""))
    (events,) = [name for name in series(bench) if name.startswith("holdfast_named_behind_events")]
    wanted = r'holdfast_named_behind_events{broker="b1",name="a\"} 7\nholdfast_sessions{broker=\"b1\"} 9\\"}'
    assert events == wanted


# --------------------------------------------------------------------------------------------------------- removing
def test_a_name_that_nobody_has_is_forgotten_once_it_is_on_the_disk() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", ""), CloseCursor(1))
    bench.publish("p", 1, 2)
    bench.held = True
    effects = bench.handle(Received(LINK, OPERATOR, [RemoveName(7, "risk")]))
    (sent,) = [effect for effect in effects if isinstance(effect, Send)]
    assert sent.message == NameRemoved(7, True, "", 2)
    assert bench.out.queues[OPERATOR].take(bench.disk.durable, 1 << 20)[0] == [], "it is claimed when it is durable"
    bench.release()
    assert listed(bench) == ()
    assert ask(bench, RemoveName(8, "risk")) == NameRemoved(8, False)
    again = LogBench(bench.disk)
    assert not again.core.cursors.cursors


def test_a_name_that_a_client_has_is_taken_away_by_force_alone_and_its_reader_is_told() -> None:
    bench = opened("c")
    bench.say("c", OpenCursor(1, "risk", ""))
    assert ask(bench, RemoveName(7, "risk")) == NameRemoved(7, False, "c", 0)
    assert [report.name for report in listed(bench)] == ["risk"]
    rows = bench.handle(Received(LINK, OPERATOR, [RemoveName(8, "risk", True)]))
    sent = [(effect.to, effect.message) for effect in rows if isinstance(effect, Send)]
    ended = CursorEnded(1, Refusal.SUPERSEDED, "an operator has forgotten the named subscription")
    assert sorted(sent, key=lambda each: each[0]) == [("client:c", ended), (OPERATOR, NameRemoved(8, True, "c", 0))]
    assert told(bench.publish("p", 1), "c") == []


def test_what_can_not_be_removed_is_said() -> None:
    bench = opened()
    assert ask(bench, RemoveName(1, "x" * 129)).problem == NO_NAME
    without = BrokerBench()
    without.handle(LinkUp(LINK, OPERATOR, 1, Role.OPERATOR, False))
    assert ask(without, RemoveName(1, "risk")).problem == NO_LOG
    assert ask(without, ListNames(1)) == NamesListed(1, "b1", (), 0, False, NO_LOG)


def test_an_operator_that_left_is_not_answered() -> None:
    bench = opened("c")
    effects = bench.handle(Received(LINK, OPERATOR, [RemoveName(1, "risk")]), LinkDown(LINK, OPERATOR, "gone"))
    assert [effect for effect in effects if isinstance(effect, Send)] == []
    assert OPERATOR not in bench.out.queues
    desk = next(part for part in bench.node.parts if part.name == "names")
    desk.on_commands_applied(CommandsApplied([NameRemoval(OPERATOR, 1, "risk", True)]), bench.out)
    assert [effect for effect in bench.handle() if isinstance(effect, Send)] == []


def test_a_replica_that_does_not_lead_sends_operators_elsewhere() -> None:
    members = tuple(Member(f"r{number}", f"p{number}:1", f"c{number}:1") for number in (1, 2, 3))
    node: Assembly = make_replica(BrokerSettings("r1", True), PaxosSettings("r1", members), Random(1), {})
    out = RecordingOutbox(tracing=False)
    node.handle([Started(1, "disk", {}), LinkUp(LINK, OPERATOR, 1, Role.OPERATOR, False)], out)
    out.take_effects()
    node.handle([Received(LINK, OPERATOR, [RemoveName(1, "risk")])], out)
    (sent,) = [effect for effect in out.take_effects() if isinstance(effect, Send)]
    assert isinstance(sent.message, NameRemoved)
    assert "does not lead" in sent.message.problem


def test_replicas_that_execute_a_removal_agree_and_only_the_one_that_was_asked_answers() -> None:
    """The core decides, from the command alone: a name that was taken since an operator asked stays."""
    cores = [BrokerCore(log=True) for _ in range(2)]
    for core in cores:
        core.apply(1, WALL, commands.OpenSession("client:c", 1, 0))
        core.apply(2, WALL, commands.OpenCursor("client:c", EPOCH, 1, "risk", "", 0, False, 4, 0, 0, -1))
        core.apply(3, WALL, commands.Publish("client:c", EPOCH, 1, 0, batch(1, publisher="c")))
    for command in (
        commands.RemoveName("", OPERATOR, 1, "risk"),
        commands.RemoveName("", OPERATOR, 2, "risk", True),
        commands.RemoveName("", OPERATOR, 3, "risk", True),
    ):
        first, second = (core.apply(core.number + 1, WALL, command) for core in cores)
        assert [type(output) for output in first] == [type(output) for output in second]
        assert first[-1] == second[-1]
        assert cores[0].get_state() == cores[1].get_state()
    assert first == [NameRemoval(OPERATOR, 3, "risk", False)]


# ---------------------------------------------------------------------------------------------------------- warning
def test_the_log_says_which_name_keeps_it_from_shrinking_with_every_doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.protocols.core.log_state.MARK_BYTES", 1)
    bench = opened("c", retention=RetentionSettings(bytes=100, bytes_hard=0))
    bench.say("c", OpenCursor(1, "forgotten", ""), CloseCursor(1), OpenCursor(2, "read", ""))
    said: list[tuple[int, str, str]] = []
    for first in range(1, 120, 10):
        bench.publish("p", *range(first, first + 10))
        bench.say("c", Acknowledge(2, first + 9))
        for effect in bench.advance(5 * SECOND):
            if isinstance(effect, Note) and effect.fields.get("what") == "log-held":
                detail = effect.fields["detail"]
                said.append((detail["log_bytes"], detail["name"], detail["owner"]))
    assert [(name, owner) for _, name, owner in said] == [("forgotten", "")] * len(said)
    sizes = [size for size, _, _ in said]
    assert sizes[0] >= 200
    assert len(sizes) >= 3
    assert all(after >= 2 * before for before, after in pairwise(sizes))
    ask(bench, RemoveName(1, "forgotten"))
    assert bench.core.log is not None
    bench.advance(6 * SECOND)
    assert bench.core.log.kept_bytes <= 200, "what it held is let go"


def test_it_is_said_again_when_the_alarm_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.protocols.core.log_state.MARK_BYTES", 1)
    bench = opened("c", retention=RetentionSettings(bytes=100, bytes_hard=400))
    bench.say("c", OpenCursor(1, "forgotten", ""), CloseCursor(1))
    alarms = []
    for first in range(1, 30, 5):
        bench.publish("p", *range(first, first + 5))
        notes = [e for e in bench.advance(5 * SECOND) if isinstance(e, Note) and e.fields.get("what") == "log-held"]
        if notes:
            alarms.append(bench.log.measure()["log_alarm"])
    assert alarms[:2] == [0, 1]
