"""The outbox: tokens, queues, and a recording that is what was asked for."""

from holdfast.kernel.messages import NOMINAL_WEIGHT, Message, Record
from holdfast.kernel.outbox import (
    LATEST,
    NOW,
    Append,
    CancelTimer,
    Complete,
    Connect,
    Deliver,
    Disconnect,
    Level,
    Note,
    Outbox,
    ReadLog,
    RecordingOutbox,
    Send,
    SetTimer,
    Snapshot,
    Truncate,
)
from holdfast.kernel.queues import Lane


class Word(Message, frozen=True):
    text: str

    def weight(self) -> int:
        return len(self.text)


class Line(Record, frozen=True):
    text: str


def tokens(out: Outbox, peer: str) -> list[tuple[str, int]]:
    return [
        (entry.message.text, entry.token)
        for entry in out.queue(peer).take(out.token, 1 << 30)[0]
        if isinstance(entry.message, Word)
    ]


def test_a_message_waits_for_everything_appended_before_it_and_nothing_after() -> None:
    out = Outbox()
    out.send("b", Word("first"))
    assert out.append("s", Line("1")) == 1
    assert out.append("t", Line("2")) == 2
    out.send("b", Word("second"))
    out.send("b", Word("now"), after=NOW)
    assert out.snapshot("s", Line("3")) == 3
    out.send("b", Word("third"), after=LATEST)
    assert sorted(tokens(out, "b")) == [("first", 0), ("now", 0), ("second", 2), ("third", 3)]


def test_a_message_leaves_when_its_token_is_durable() -> None:
    out = Outbox()
    out.append("s", Line("1"))
    out.send("b", Word("waits"))
    queue = out.queue("b")
    assert queue.take(0, 1000) == ([], 1)
    assert [len(taken) for taken, left in [queue.take(1, 1000)]] == [1]


def test_messages_weigh_what_they_say() -> None:
    out = Outbox()
    out.send("b", Word("12345"))
    out.send("b", Word("123"))
    assert out.queue("b").bytes == 8
    assert (Message().weight(), Message().event_ids()) == (NOMINAL_WEIGHT, [])


def test_a_queue_is_made_once_and_dropped_with_its_contents() -> None:
    out = Outbox()
    out.send("b", Word("1"))
    first = out.queue("b")
    assert out.queue("b") is first
    out.drop_queue("b")
    out.drop_queue("nobody")
    assert (first.is_closed, len(first)) == (True, 0)
    out.send("b", Word("2"))
    assert out.queue("b") is not first
    assert [queue.peer for queue in out.touched] == ["b", "b"]


def ask_for_everything(out: Outbox) -> None:
    out.send("b", Word("control"))
    out.send("b", Word("user"), Lane.USER, NOW)
    out.append("s", Line("1"))
    out.snapshot("s", Line("2"))
    out.truncate("s", 5)
    out.read_log(6, "s", 7, 8)
    out.connect("b", "b:1")
    out.disconnect(9, "enough")
    out.set_timer(("part", "tick"), 10)
    out.cancel_timer(("part", "tick"))
    out.deliver(11, ["event"])
    out.complete(12, "result")
    out.note("control", what="x")


EVERYTHING = [
    Send("b", Word("control"), Lane.CONTROL, LATEST),
    Send("b", Word("user"), Lane.USER, NOW),
    Append("s", Line("1"), 1),
    Snapshot("s", Line("2"), 2),
    Truncate("s", 5),
    ReadLog(6, "s", 7, 8),
    Connect("b", "b:1"),
    Disconnect(9, "enough"),
    SetTimer(("part", "tick"), 10),
    CancelTimer(("part", "tick")),
    Deliver(11, ["event"]),
    Complete(12, "result"),
    Note("control", {"what": "x"}),
]


def test_a_recording_holds_every_effect_in_order_and_is_taken_once() -> None:
    out = RecordingOutbox()
    ask_for_everything(out)
    assert out.take_effects() == EVERYTHING
    assert out.take_effects() == []


def test_a_recording_outbox_collects_what_a_plain_one_does() -> None:
    plain, recording = Outbox(tracing=True), RecordingOutbox(tracing=True)
    ask_for_everything(plain)
    ask_for_everything(recording)
    assert recording.stored == plain.stored == EVERYTHING[2:5]
    assert recording.actions == plain.actions == EVERYTHING[5:8] + EVERYTHING[10:12]
    assert recording.notes == plain.notes == EVERYTHING[12:]
    assert recording.timers == plain.timers == [(("part", "tick"), 10), (("part", "tick"), None)]
    assert tokens(recording, "b") == tokens(plain, "b") == [("control", 0), ("user", 0)]
    assert recording.token == plain.token == 2


def test_notes_are_made_only_for_a_trace_and_reports_always() -> None:
    for out in (Outbox(), RecordingOutbox(tracing=False)):
        out.note("control", what="x")
        assert out.notes == []
        out.report("leader", Level.INFO, replica="r1")
        assert out.notes == [Note("control", {"what": "leader", "detail": {"replica": "r1"}}, Level.INFO)]
    recording = RecordingOutbox(tracing=False)
    recording.report("leader")
    assert recording.take_effects() == recording.notes
