"""An operator's node: asks one broker, and hands on what it answers or that it does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import msgspec

from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.parts import Part
from holdfast.protocols.operating.messages import (
    Change,
    ChangeBegun,
    HistoryTold,
    Inspect,
    Inspected,
    LeadershipMoved,
    ListNames,
    MoveLeadership,
    NameRemoved,
    NamesListed,
    RemoveName,
    TellHistory,
)

BROKERS: Final = frozenset({Role.BROKER})


class AskBroker(msgspec.Struct, frozen=True, gc=False):
    """A request of the application: what to ask. Answered with what the broker says, or with `Unreachable`."""

    links: int = 100
    application: bool = False
    subscriptions: int = 0


class AskToMove(msgspec.Struct, frozen=True, gc=False):
    """A request of the application: let another replica lead."""

    to: str = ""


class AskToChange(msgspec.Struct, frozen=True, gc=False):
    """A request of the application: change the group or the network. The fields are those of `Change`."""

    action: str
    told: Mapping[str, str] = {}


class AskForNames(msgspec.Struct, frozen=True, gc=False):
    """A request of the application: which named subscriptions are there, behind that one?"""

    after: str = ""


class AskToForget(msgspec.Struct, frozen=True, gc=False):
    """A request of the application: give a named subscription up."""

    name: str
    force: bool = False


class AskForHistory(msgspec.Struct, frozen=True, gc=False):
    """A request of the application: what has happened?"""


Asked = AskBroker | AskToMove | AskToChange | AskForNames | AskToForget | AskForHistory
Answer = Inspected | LeadershipMoved | ChangeBegun | NamesListed | NameRemoved | HistoryTold


class Unreachable(msgspec.Struct, frozen=True, gc=False):
    reason: str


class Operator(Part):
    """A part, and all of an operator's node. It tries once: whoever asks may ask again."""

    name: ClassVar[str] = "operator"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = dict.fromkeys(
        (Inspected, LeadershipMoved, ChangeBegun, NamesListed, NameRemoved, HistoryTold), BROKERS
    )
    asked: ClassVar[tuple[type, ...]] = (
        AskBroker,
        AskToMove,
        AskToChange,
        AskForNames,
        AskToForget,
        AskForHistory,
    )

    def __init__(self, address: str) -> None:
        self._address = address
        self._broker = ""
        self._failure = ""
        self._waiting: dict[int, Message] = {}  # request → what is said of it

    def on_started(self, started: Started, out: Outbox) -> None:
        out.connect("", self._address)

    def on_ask_broker(self, request: int, asked: AskBroker, out: Outbox) -> None:
        self._ask(request, Inspect(request, asked.links, asked.application, asked.subscriptions), out)

    def on_ask_to_move(self, request: int, asked: AskToMove, out: Outbox) -> None:
        self._ask(request, MoveLeadership(request, asked.to), out)

    def on_ask_to_change(self, request: int, asked: AskToChange, out: Outbox) -> None:
        self._ask(request, Change(request, asked.action, dict(asked.told)), out)

    def on_ask_for_names(self, request: int, asked: AskForNames, out: Outbox) -> None:
        self._ask(request, ListNames(request, asked.after), out)

    def on_ask_to_forget(self, request: int, asked: AskToForget, out: Outbox) -> None:
        self._ask(request, RemoveName(request, asked.name, asked.force), out)

    def on_ask_for_history(self, request: int, asked: AskForHistory, out: Outbox) -> None:
        self._ask(request, TellHistory(request), out)

    def _ask(self, request: int, message: Message, out: Outbox) -> None:
        if self._failure:
            out.complete(request, Unreachable(self._failure))
            return
        self._waiting[request] = message
        if self._broker:
            out.send(self._broker, message, after=NOW)

    def on_link_up(self, up: LinkUp, out: Outbox) -> None:
        self._broker = up.peer
        for message in self._waiting.values():
            out.send(self._broker, message, after=NOW)

    def on_inspected(self, peer: str, inspected: Inspected, out: Outbox) -> None:
        self._complete(inspected, out)

    def on_change_begun(self, peer: str, begun: ChangeBegun, out: Outbox) -> None:
        self._complete(begun, out)

    def on_leadership_moved(self, peer: str, moved: LeadershipMoved, out: Outbox) -> None:
        self._complete(moved, out)

    def on_names_listed(self, peer: str, listed: NamesListed, out: Outbox) -> None:
        self._complete(listed, out)

    def on_name_removed(self, peer: str, removed: NameRemoved, out: Outbox) -> None:
        self._complete(removed, out)

    def on_history_told(self, peer: str, told: HistoryTold, out: Outbox) -> None:
        self._complete(told, out)

    def _complete(self, answer: Answer, out: Outbox) -> None:
        if self._waiting.pop(answer.request, None) is not None:
            out.complete(answer.request, answer)

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        self._fail(down.reason, out)

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None:
        self._fail(failed.reason, out)

    def _fail(self, reason: str, out: Outbox) -> None:
        self._failure = reason
        for request in self._waiting:
            out.complete(request, Unreachable(reason))
        self._waiting = {}
