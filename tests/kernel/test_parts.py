"""How a node is put together: who gets what, in which order, and what a peer's mistake ends."""

from typing import Any, ClassVar

import msgspec
import pytest

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import (
    ConnectFailed,
    Drained,
    Durable,
    Input,
    LinkDown,
    LinkUp,
    LogRead,
    Received,
    Requested,
    Started,
    StorageFailed,
    TimerFired,
)
from holdfast.kernel.links import Role, peer_name
from holdfast.kernel.messages import Message
from holdfast.kernel.node import InvariantBroken, require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Disconnect, Note, Outbox, RecordingOutbox
from holdfast.kernel.parts import Assembly, Part, handler_name


class Hello(Message, frozen=True):
    pass


class LongName(Message, frozen=True):
    """Two words."""


class Bad(Message, frozen=True):
    pass


class Quiet(Message, frozen=True):
    pass


BOTH = frozenset({Role.BROKER, Role.CLIENT})


class Rung(Notice, frozen=True):
    bell: str


class Scribe(Part):
    """Writes down everything that it gets."""

    messages: ClassVar[dict[type[Message], frozenset[Role]]] = {
        Hello: BOTH,
        LongName: frozenset({Role.BROKER}),
        Bad: BOTH,
    }
    notices: ClassVar[tuple[type[Notice], ...]] = (Rung,)

    def __init__(self, name: str, log: list[Any]) -> None:
        self.name = name  # type: ignore[misc]  # so that there can be two
        self._log = log

    def _write(self, what: str, *of: Any) -> None:
        self._log.append((self.name, what, *of))

    def on_hello(self, peer: str, message: Hello, out: Outbox) -> None:
        self._write("hello", peer)

    def on_rung(self, rung: Rung, out: Outbox) -> None:
        self._write("rung", rung.bell)

    def on_long_name(self, peer: str, message: LongName, out: Outbox) -> None:
        self._write("long name", peer)

    def on_bad(self, peer: str, message: Bad, out: Outbox) -> None:
        raise ProtocolError("that was bad")

    def on_timer(self, key: tuple[str, ...], out: Outbox) -> None:
        self._write("timer", key)

    def on_heard(self, peer: str, out: Outbox) -> None:
        self._write("heard", peer)

    def finish(self, out: Outbox) -> None:
        self._write("finish")

    def check_invariants(self) -> None:
        self._write("check")


def _writes(name: str) -> Any:
    return lambda self, event, out: self._write(name, event)


for _hook in vars(Part):
    if _hook.startswith("on_") and _hook not in vars(Scribe):
        setattr(Scribe, _hook, _writes(_hook))


class Bare(Part):
    """A part may have nothing but a name."""

    name: ClassVar[str] = "bare"


TURN_ENDS = [("a", "finish"), ("b", "finish")]


def make(log: list[Any]) -> tuple[Assembly, RecordingOutbox]:
    return Assembly([Scribe("a", log), Bare(), Scribe("b", log)]), RecordingOutbox()


def link_up(link: int, peer: str, role: Role) -> LinkUp:
    return LinkUp(link, peer, 1, role, False)


@pytest.fixture
def log() -> list[Any]:
    return []


def linked(log: list[Any]) -> tuple[Assembly, RecordingOutbox]:
    node, out = make(log)
    node.handle([link_up(1, "b1", Role.BROKER), link_up(2, "client:c", Role.CLIENT)], out)
    log.clear()
    return node, out


class Porter(Part):
    """Hears of clients alone."""

    name: ClassVar[str] = "porter"
    heard_from: ClassVar[frozenset[Role]] = frozenset({Role.CLIENT})

    def __init__(self, heard: list[str]) -> None:
        self._heard = heard

    def on_heard(self, peer: str, out: Outbox) -> None:
        self._heard.append(peer)


def test_a_part_hears_from_peers_of_its_roles_alone() -> None:
    heard: list[str] = []
    node, out = Assembly([Porter(heard)]), RecordingOutbox()
    node.handle([link_up(1, "b1", Role.BROKER), link_up(2, "client:c", Role.CLIENT)], out)
    node.handle([Received(1, "b1", []), Received(2, "client:c", [])], out)
    assert heard == ["client:c"]


def test_a_message_goes_to_the_parts_that_declare_it_in_their_order(log: list[Any]) -> None:
    node, out = linked(log)
    node.handle([Received(1, "b1", [Hello(), LongName()])], out)
    assert log == [
        ("a", "heard", "b1"),
        ("b", "heard", "b1"),
        ("a", "hello", "b1"),
        ("b", "hello", "b1"),
        ("a", "long name", "b1"),
        ("b", "long name", "b1"),
        *TURN_ENDS,
    ]
    assert out.take_effects() == []


def test_a_message_that_nobody_takes_from_that_role_ends_that_link_and_the_rest_of_the_read(log: list[Any]) -> None:
    node, out = linked(log)
    read = Received(2, "client:c", [Hello(), LongName(), Hello()])
    node.handle([read, Received(1, "b1", [LongName()]), Received(2, "client:c", [Hello()])], out)
    assert log == [
        ("a", "heard", "client:c"),
        ("b", "heard", "client:c"),
        ("a", "hello", "client:c"),
        ("b", "hello", "client:c"),
        ("a", "heard", "b1"),
        ("b", "heard", "b1"),
        ("a", "long name", "b1"),
        ("b", "long name", "b1"),
        *TURN_ENDS,
    ]
    problem = "LongName is not for this node to receive from client:c"
    assert out.take_effects() == [
        Note("control", {"what": "protocol-error", "detail": {"peer": "client:c", "problem": problem}}),
        Disconnect(2, f"protocol error: {problem}"),
    ]


def test_a_closed_link_stays_deaf_until_a_new_link_of_the_peer_comes_up(log: list[Any]) -> None:
    node, out = linked(log)
    node.handle([Received(2, "client:c", [Quiet()])], out)
    out.take_effects()
    log.clear()
    node.handle([Received(2, "client:c", [Hello()])], out)
    assert (log, out.take_effects()) == (TURN_ENDS, [])
    node.handle([LinkDown(2, "client:c", "gone"), link_up(3, "client:c", Role.CLIENT)], out)
    log.clear()
    node.handle([Received(3, "client:c", [Hello()])], out)
    assert ("a", "hello", "client:c") in log


def test_a_protocol_error_of_a_part_keeps_the_message_from_later_parts(log: list[Any]) -> None:
    node, out = linked(log)
    node.handle([Received(1, "b1", [Bad(), Hello()])], out)
    assert log == [("a", "heard", "b1"), ("b", "heard", "b1"), *TURN_ENDS]
    assert out.take_effects()[-1] == Disconnect(1, "protocol error: that was bad")


def test_a_part_that_refuses_to_hear_a_peer_ends_its_link(log: list[Any]) -> None:
    node, out = linked(log)

    def refuse(peer: str, out: Outbox) -> None:
        raise ProtocolError("not you")

    node._heard[Role.BROKER].insert(0, refuse)
    node.handle([Received(1, "b1", [Hello()])], out)
    assert (log, out.take_effects()[-1]) == (TURN_ENDS, Disconnect(1, "protocol error: not you"))


def test_what_comes_on_a_link_that_is_not_up_is_not_heard(log: list[Any]) -> None:
    node, out = linked(log)
    node.handle([LinkDown(1, "b1", "gone"), Received(1, "b1", [Hello()])], out)
    down = LinkDown(1, "b1", "gone")
    assert log == [("a", "on_link_down", down), ("b", "on_link_down", down), *TURN_ENDS]


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (Started(1), "on_started"),
        (link_up(5, "b9", Role.BROKER), "on_link_up"),
        (LinkDown(1, "b1", ""), "on_link_down"),
        (ConnectFailed("b1", "b1:1", ""), "on_connect_failed"),
        (Durable(1), "on_durable"),
        (LogRead(1, [], 0), "on_log_read"),
        (StorageFailed("full"), "on_storage_failed"),
        (Drained("b1", 1, 1), "on_drained"),
    ],
)
def test_every_other_input_goes_to_every_part_that_wants_it(log: list[Any], event: Input, name: str) -> None:
    node, out = linked(log)
    node.handle([event], out)
    assert log == [("a", name, event), ("b", name, event), *TURN_ENDS]


class Favour(msgspec.Struct, frozen=True):
    text: str


class Granting(Part):
    name: ClassVar[str] = "granting"
    due = False
    asked: ClassVar[tuple[type, ...]] = (Favour,)

    def __init__(self) -> None:
        self.granted: list[tuple[int, Favour]] = []
        self.finished = 0

    def on_favour(self, request: int, favour: Favour, out: Outbox) -> None:
        self.granted.append((request, favour))
        self.due = True

    def finish(self, out: Outbox) -> None:
        self.due = False
        self.finished += 1


def test_a_request_goes_to_the_part_that_takes_it(log: list[Any]) -> None:
    granting = Granting()
    Assembly([Scribe("a", log), granting]).handle([Requested(7, Favour("x"))], RecordingOutbox())
    assert granting.granted == [(7, Favour("x"))]
    assert log == TURN_ENDS[:1]


def test_a_request_that_no_part_takes_stops_the_node(log: list[Any]) -> None:
    node, out = make(log)
    with pytest.raises(InvariantBroken, match="a node knows what it is asked"):
        node.handle([Requested(1, Favour("x"))], out)


def test_a_part_finishes_only_the_turns_in_which_it_is_due() -> None:
    granting, out = Granting(), RecordingOutbox()
    node = Assembly([granting])
    node.handle([Started(1)], out)
    node.handle([Requested(1, Favour("x")), Requested(2, Favour("y"))], out)
    node.handle([Durable(1)], out)
    assert granting.finished == 1


def test_a_timer_goes_to_the_part_that_its_key_names(log: list[Any]) -> None:
    node, out = make(log)
    node.handle([TimerFired(("b", "tick", "peer")), TimerFired(("a", "tick"))], out)
    assert log == [("b", "timer", ("b", "tick", "peer")), ("a", "timer", ("a", "tick")), *TURN_ENDS]


@pytest.mark.parametrize("part", ["nobody", "bare"])
def test_a_timer_of_no_part_stops_the_node(log: list[Any], part: str) -> None:
    node, out = make(log)
    with pytest.raises(InvariantBroken, match="every timer belongs to a part"):
        node.handle([TimerFired((part, "tick"))], out)


def test_a_turn_without_inputs_finishes_too(log: list[Any]) -> None:
    node, out = make(log)
    node.handle([], out)
    assert log == TURN_ENDS


def test_parts_of_one_name_are_refused(log: list[Any]) -> None:
    with pytest.raises(InvariantBroken, match="different names"):
        Assembly([Scribe("a", log), Scribe("a", log)])


def test_all_parts_check_their_invariants(log: list[Any]) -> None:
    make(log)[0].check_invariants()
    assert log == [("a", "check"), ("b", "check")]


def test_a_part_without_a_handler_for_what_it_declares_is_found_when_the_node_is_made() -> None:
    class Forgetful(Part):
        name: ClassVar[str] = "forgetful"
        messages: ClassVar[dict[type[Message], frozenset[Role]]] = {Hello: BOTH}

    with pytest.raises(AttributeError, match="on_hello"):
        Assembly([Forgetful()])


def test_a_part_with_a_misspelt_hook_is_refused_when_the_node_is_made() -> None:
    class Misspelt(Part):
        name: ClassVar[str] = "misspelt"

        def on_link_dwn(self, down: LinkDown, out: Outbox) -> None: ...

    for _ in range(2):  # a class is looked at once, and one that was refused again each time
        with pytest.raises(InvariantBroken, match="on_link_dwn"):
            Assembly([Misspelt()])


def test_a_notice_goes_at_once_to_the_parts_that_hear_it_in_their_order(log: list[Any]) -> None:
    class Ringer(Part):
        name: ClassVar[str] = "ringer"

        def on_started(self, started: Started, out: Outbox) -> None:
            out.tell(Rung("ding"))
            log.append("told")

    out = RecordingOutbox()
    Assembly([Ringer(), Bare(), Scribe("a", log), Scribe("b", log)]).handle([Started(1)], out)
    assert log[:3] == [("a", "rung", "ding"), ("b", "rung", "ding"), "told"]
    assert out.take_notices() == [Rung("ding")]


def test_handlers_are_named_after_messages() -> None:
    assert [handler_name(kind) for kind in (Hello, LongName)] == ["on_hello", "on_long_name"]


def test_peers_of_different_roles_never_share_a_name() -> None:
    names = [peer_name(role, "b1") for role in (Role.BROKER, Role.CLIENT, Role.OPERATOR)]
    assert names == ["b1", "client:b1", "operator:b1"]


def test_a_requirement_that_holds_says_nothing_and_one_that_does_not_says_everything() -> None:
    require(1, "fine")
    with pytest.raises(InvariantBroken) as caught:
        require([], "lists are not empty", list=[], peer="b1")
    error = caught.value
    assert (error.claim, error.fields) == ("lists are not empty", {"list": [], "peer": "b1"})
    assert str(error) == "lists are not empty (list=[], peer='b1')"
    with pytest.raises(InvariantBroken, match=r"^bare claim$"):
        require(None, "bare claim")
