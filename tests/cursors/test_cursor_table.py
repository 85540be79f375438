"""Cursors in the core: who has them, what they need, and a model that says the same more simply."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import FilterError
from holdfast.kernel.node import InvariantBroken
from holdfast.model import Filter
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.cursor import ATTEMPTS_KEPT, FILTERS_MAX, Cursor, attempt
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.outputs import CursorTaken, Logged, Reply
from holdfast.protocols.cursors.messages import CursorOpened, CursorRefused
from holdfast.protocols.sessions.messages import Refusal
from tests.sessions.bench import EPOCH, WALL, batch
from tests.sessions.command_strategies import steps, to_command

A, B = "client:a", "client:b"


def do(core: BrokerCore, command: commands.Command) -> list[Any]:
    outputs = core.apply(core.number + 1, WALL, command)
    core.check_invariants()
    return [output.message for output in outputs if isinstance(output, Reply)]


def opened(limits: CoreLimits | None = None) -> BrokerCore:
    core = BrokerCore(limits, log=True)
    for client in (A, B):
        do(core, commands.OpenSession(client, 1, 0))
    return core


def cursor_command(client: str, number: int, name: str = "risk", text: str = "", **fields: Any) -> commands.OpenCursor:
    wanted = {"start": 0, "move": False, "window": 4, "generation": 0, "received": 0, "sent": -1} | fields
    return commands.OpenCursor(client, EPOCH, number, name, text, **wanted)


# ----------------------------------------------------------------------------------------------------------- one cursor
def test_attempts_count_the_owners_that_may_have_had_an_event() -> None:
    cursor = Cursor("risk", Filter(""), 0)
    cursor.take_over((A, 1, 1), 1, 99)
    assert cursor.attempt(1) == 1, "nobody had it before its first owner"
    cursor.take_over((B, 1, 1), 2, 5)
    cursor.take_over((A, 1, 1), 3, 7)
    assert [cursor.attempt(position) for position in (1, 5, 6, 7, 8)] == [3, 3, 2, 2, 1]
    cursor.acknowledge(6)
    assert [cursor.attempt(position) for position in (7, 8)] == [2, 1]


def test_attempts_are_bounded_in_memory() -> None:
    cursor = Cursor("risk", Filter(""), 0)
    for generation in range(1, 20):
        cursor.take_over((A, 1, 1), generation, generation)
    assert len(cursor.takeovers) == ATTEMPTS_KEPT
    assert [cursor.attempt(position) for position in (19, 20)] == [2, 1]


def test_filters_that_still_count_are_bounded() -> None:
    cursor = Cursor("risk", Filter(""), 0)
    changed = [cursor.change_filter(Filter(f"n = {head}"), head) for head in range(1, FILTERS_MAX + 1)]
    assert changed == [True] * (FILTERS_MAX - 1) + [False]
    cursor.acknowledge(5)
    assert cursor.change_filter(Filter("n = 99"), 99)
    cursor.check_invariants(99)


@given(changes=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20)), max_size=10))
def test_one_filter_counts_for_every_position(changes: list[tuple[int, int]]) -> None:
    cursor, head = Cursor("risk", Filter("n = 0"), 0), 0
    model: dict[int, str] = {}
    for passed, acknowledged in changes:
        model |= dict.fromkeys(range(head + 1, head + passed + 1), str(cursor.filter))
        head += passed
        cursor.acknowledge(min(acknowledged, head))
        cursor.change_filter(Filter(f"n = {head}"), head)
        cursor.check_invariants(head)
        for position in range(cursor.acknowledged + 1, head + 1):
            assert model[position] == [str(f) for after, f in cursor.filters if after < position][-1]


# ------------------------------------------------------------------------------------------------------------ the table
def test_one_number_is_one_name() -> None:
    core = opened()
    do(core, cursor_command(A, 1))
    (refused,) = do(core, cursor_command(A, 1, "audit"))
    assert isinstance(refused, CursorRefused)
    assert refused.reason is Refusal.CONFLICT


def test_names_are_limited() -> None:
    core = opened(CoreLimits(named_subscriptions=1))
    do(core, cursor_command(A, 1))
    (refused,) = do(core, cursor_command(A, 2, "audit"))
    assert isinstance(refused, CursorRefused)
    assert refused.reason is Refusal.LIMIT
    assert set(core.cursors.cursors) == {"risk"}


def test_a_bad_filter_is_refused_with_its_place() -> None:
    (refused,) = do(opened(), cursor_command(A, 1, text="n >"))
    assert isinstance(refused, CursorRefused)
    assert (refused.reason, refused.offset) == (Refusal.FILTER, 3)


def test_a_client_that_comes_back_goes_on_where_it_was() -> None:
    core = opened()
    do(core, cursor_command(A, 1))
    do(core, commands.Publish(B, EPOCH, 1, 0, batch(1, 2, 3)))
    do(core, commands.DropSubscriptions(A, EPOCH))
    assert core.cursors.cursors["risk"].owner is None
    command = cursor_command(A, 1, generation=1, received=2, unconsumed=9, start=0, move=True)
    outputs = core.apply(core.number + 1, WALL, command)
    assert [o.message for o in outputs if isinstance(o, Reply)] == [CursorOpened(1, 1, 0, 2)]
    (taken,) = [o for o in outputs if isinstance(o, CursorTaken)]
    assert (taken.after, taken.unconsumed, taken.window) == (2, 4, 4), "no more than the window"


def test_losses_that_a_client_does_not_confirm_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.protocols.core.cursor_table.ENDED_MAX", 3)
    core = opened()
    for number in range(1, 6):
        do(core, cursor_command(A, number))
    (refused,) = do(core, cursor_command(A, 9))
    assert isinstance(refused, CursorRefused)
    assert refused.reason is Refusal.LIMIT
    do(core, commands.CloseCursor(A, EPOCH, 1))
    assert do(core, cursor_command(A, 9))[-1] == CursorOpened(9, core.cursors.generations, 0, 0)


def test_contradictions_are_found() -> None:
    core = opened()
    do(core, cursor_command(A, 1))
    core.cursors.ended[A, EPOCH] = {1: "lost"}
    with pytest.raises(InvariantBroken, match="does not have it"):
        core.check_invariants()


# ---------------------------------------------------------------------------------------------------------- a model
class Model:
    """What the core's cursors and positions come to, said in the simplest way."""

    def __init__(self) -> None:
        self.events = 0
        self.tail = 1
        self.names: dict[str, tuple[int, tuple[str, int, int] | None]] = {}  # name → acknowledged, owner
        self.lost: set[tuple[str, int, int]] = set()

    def owner(self, owner: tuple[str, int, int]) -> str | None:
        return next((name for name, (_, has) in self.names.items() if has == owner), None)

    def apply(self, command: commands.Command, known: bool, current: bool) -> None:
        """`known`: the session exists; `current`: the generation that was named is the cursor's."""
        match command:
            case commands.KeepLog():
                self.tail = max(self.tail, min(command.tail, self.events + 1))
            case commands.OpenCursor() if known:
                self._open(command, current)
            case commands.CloseCursor() if known:
                owner = (command.client, command.epoch, command.cursor)
                self.lost.discard(owner)
                name = self.owner(owner)
                if name is not None:
                    self.names[name] = (self.names[name][0], None)
            case commands.AcknowledgeCursor() if known:
                owner = (command.client, command.epoch, command.cursor)
                name = self.owner(owner)
                if name is not None and owner not in self.lost:
                    position = min(command.position, self.events)
                    self.names[name] = (max(self.names[name][0], position), owner)
            case commands.ForgetName() if known:
                _, owner_of = self.names.pop(command.name, (0, None))
                if owner_of is not None:
                    self.lost.add(owner_of)
            case commands.RemoveName() if command.force or self.names.get(command.name, (0, None))[1] is None:
                _, owner_of = self.names.pop(command.name, (0, None))
                if owner_of is not None:
                    self.lost.add(owner_of)

    def _open(self, command: commands.OpenCursor, current: bool) -> None:
        owner = (command.client, command.epoch, command.cursor)
        held = self.owner(owner)
        try:
            Filter(command.filter)
        except FilterError:
            return
        if owner in self.lost or held not in (None, command.name) or (command.generation and not current):
            return
        exists = command.name in self.names
        if command.generation and not exists:
            return
        acknowledged, has = self.names.get(command.name, (0, None))
        if not exists or (command.move and not command.generation and held is None):
            acknowledged = {-1: self.events, 0: self.tail - 1}.get(command.start, command.start - 1)
        if not self.tail - 1 <= acknowledged <= self.events:
            return
        if has is not None and has != owner:
            self.lost.add(has)
        self.names[command.name] = (acknowledged, owner)

    def leave(self, sessions: set[tuple[str, int]], wants: set[str]) -> None:
        """Sessions that are gone, and clients that stayed away, have no cursors."""
        for name, (acknowledged, has) in self.names.items():
            if has is not None and (has[:2] not in sessions or has[0] not in wants):
                self.names[name] = (acknowledged, None)
        self.lost = {owner for owner in self.lost if owner[:2] in sessions and owner[0] in wants}


@given(taken=steps)
@settings(max_examples=300)
def test_cursors_and_positions_are_those_of_the_model(taken: list[tuple[Any, ...]]) -> None:
    core, model = opened(), Model()
    positions: list[int] = []
    for step in taken:
        command = to_command(core, step)
        session = core.sessions.get(command.client)
        known = session is not None and session.epoch == getattr(command, "epoch", 0)
        name = getattr(command, "name", "")
        cursor = core.cursors.cursors.get(name)
        current = cursor is not None and cursor.generation == getattr(command, "generation", 0)
        model.apply(command, known, current)
        outputs = core.apply(core.number + 1, WALL, command)
        core.check_invariants()
        for output in outputs:
            if isinstance(output, Logged):
                positions += range(output.first, output.first + len(output.batch))
        model.events = len(positions)
        sessions = {(client, session.epoch) for client, session in core.sessions.items()}
        model.leave(sessions, set(core.sessions) - set(core.register.dormant))
        assert {n: (c.acknowledged, c.owner) for n, c in core.cursors.cursors.items()} == model.names
        assert core.log is not None
        assert (core.log.tail, core.log.head, core.events) == (model.tail, len(positions), len(positions))
    assert positions == list(range(1, len(positions) + 1))


def test_a_cursors_state_has_everything() -> None:
    """Without its takeovers, an event would come again after a restart as if it came for the first time."""
    cursor = Cursor("name", Filter("price > 1"), 3)
    cursor.generation, cursor.owner, cursor.takeovers, cursor.born = 4, ("client:s", 7, 1), [9, 5], 2
    cursor.made_at, cursor.used_at = 11, 12
    cursor.filters.append((6, Filter("price > 2")))
    again = Cursor.from_state(cursor.get_state())
    for field in Cursor.__slots__:
        assert getattr(again, field) == getattr(cursor, field), field
    assert [attempt(again.takeovers, position) for position in (4, 6, 10)] == [3, 2, 1]
