"""Parts: the pieces that a node is put together from, and the dispatch between them.

A part gets what it declares, in the order in which the parts are listed. When the storage fails, the node stops after
that turn, whatever its parts do: what they decided since the last `Durable` is in their memory and will never be on the
disk, so that nothing they could still say is sure to hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from holdfast.errors import ProtocolError
from holdfast.kernel.inputs import (
    ConnectFailed,
    Drained,
    Durable,
    Input,
    LinkDown,
    LinkUp,
    LogRead,
    LogSent,
    Received,
    Requested,
    Started,
    StorageFailed,
    TimerFired,
    TimerKey,
)
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.node import broken, require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox

_Handler = Callable[[str, Any, Outbox], None]
_Table = Mapping[type, Sequence[_Handler]]

BREACH = "protocol error: "  # begins the reason of a link that is closed for what its peer said


class Part:
    """A piece of a node. What it does not override, it is not called for.

    Its collaborators come by its constructor; what it has to tell goes out as a notice (`Outbox.tell`). A method whose
    name begins with `on_` takes an input, a message, a notice or a request, and nothing else: others are refused.
    """

    name: ClassVar[str]  # begins the keys of its timers
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {}  # `on_<message>`, from peers of these roles
    heard_from: ClassVar[frozenset[Role]] = frozenset(Role)  # whose links `on_heard` is for
    notices: ClassVar[tuple[type[Notice], ...]] = ()  # that it hears, by `on_<notice>`
    asked: ClassVar[tuple[type, ...]] = ()  # requests of an application that it takes: `on_<request>(request, command)`

    # Whether `finish` is called at the end of the turn. A part that knows when it has something to finish says so here.
    due: bool = True

    def on_started(self, started: Started, out: Outbox) -> None: ...

    def on_link_up(self, up: LinkUp, out: Outbox) -> None: ...

    def on_link_down(self, down: LinkDown, out: Outbox) -> None: ...

    def on_connect_failed(self, failed: ConnectFailed, out: Outbox) -> None: ...

    def on_durable(self, durable: Durable, out: Outbox) -> None: ...

    def on_log_read(self, read: LogRead, out: Outbox) -> None: ...

    def on_log_sent(self, sent: LogSent, out: Outbox) -> None: ...

    def on_storage_failed(self, failed: StorageFailed, out: Outbox) -> None: ...

    def on_drained(self, drained: Drained, out: Outbox) -> None: ...

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        """A timer whose key begins with the part's name."""

    def on_heard(self, peer: str, out: Outbox) -> None:
        """Something came from the peer, whatever it was; ends the link if it raises ProtocolError."""

    def finish(self, out: Outbox) -> None:
        """The turn's inputs are all handled: says what concerns all of them, one message per destination. Called for
        parts that are due."""

    def check_invariants(self) -> None: ...

    def measure(self) -> dict[str, int]:
        """Numbers by name, for operators; names differ between parts."""
        return {}

    def measure_each(self) -> dict[str, dict[str, int]]:
        """Such numbers for each of several things, by their names, of which there is a bounded number."""
        return {}


@cache
def handler_name(kind: type) -> str:
    """`on_open_session` for `OpenSession`."""
    return "on_" + re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


_BROADCAST: dict[type, str] = {
    input_type: handler_name(input_type)
    for input_type in (
        Started, LinkUp, LinkDown, ConnectFailed, Durable, LogRead, LogSent, StorageFailed, Drained,
    )
}  # fmt: skip
_HOOKS = {name for name in vars(Part) if name.startswith("on_")}


def _hooks(parts: Sequence[Part], name: str) -> list[Any]:
    """Those of the parts that have their own."""
    return [getattr(part, name) for part in parts if getattr(type(part), name) is not getattr(Part, name)]


@cache
def _check_hooks(part: type[Part]) -> None:
    """Once for each class: nodes are made by the thousand in a simulated campaign."""
    known = _HOOKS | {handler_name(kind) for kind in (*part.messages, *part.notices, *part.asked)}
    for name in dir(part):
        if name.startswith("on_") and name not in known:
            promise = "a method that begins with on_ takes an input, a message, a notice or a request"
            broken(promise, part=part.name, method=name)


class Assembly:
    """A node put together from parts."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts: tuple[Any, ...] = tuple(parts)
        names = [part.name for part in parts]
        require(len(set(names)) == len(names), "parts have different names", names=names)
        for part in parts:
            _check_hooks(type(part))  # type: ignore[arg-type]  # a class is hashed as any object
        self._timers = {hook.__self__.name: hook for hook in _hooks(parts, "on_timer")}
        self._broadcast = {input_type: _hooks(parts, name) for input_type, name in _BROADCAST.items()}
        heard = _hooks(parts, "on_heard")
        self._heard = {role: [hook for hook in heard if role in hook.__self__.heard_from] for role in Role}
        self._finishing = [hook.__self__ for hook in _hooks(parts, "finish")]
        self._checks = _hooks(parts, "check_invariants")
        self._measures = _hooks(parts, "measure")
        self._measures_each = _hooks(parts, "measure_each")
        self._tables = {role: self._table(role) for role in Role}
        self._role_of_link: dict[int, Role] = {}
        self._hearers: dict[type[Notice], list[Callable[[Any, Outbox], None]]] = {}
        for part in parts:
            for notice in part.notices:
                self._hearers.setdefault(notice, []).append(getattr(part, handler_name(notice)))
        self._askable = {kind: getattr(part, handler_name(kind)) for part in parts for kind in part.asked}

    def _table(self, role: Role) -> _Table:
        table: dict[type, list[_Handler]] = {}
        for part in self.parts:
            for message_type, roles in part.messages.items():
                if role in roles:
                    table.setdefault(message_type, []).append(getattr(part, handler_name(message_type)))
        return table

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        if out.hearers is not self._hearers:
            out.tell_to(self._hearers)
        for event in inputs:
            kind = type(event)
            if kind is Received:
                self._receive(event, out)  # type: ignore[arg-type]
            elif kind is TimerFired:
                key = event.key  # type: ignore[union-attr]
                on_timer = self._timers.get(key[0])
                if on_timer is None:
                    broken("every timer belongs to a part", key=key)
                on_timer(key, out)
            elif kind is Requested:
                take = self._askable.get(type(event.command))  # type: ignore[union-attr]
                if take is None:
                    broken("a node knows what it is asked", asked=type(event.command))  # type: ignore[union-attr]
                take(event.request, event.command, out)  # type: ignore[union-attr]
            else:
                if kind is LinkUp:
                    self._role_of_link[event.link] = event.role  # type: ignore[union-attr]
                elif kind is LinkDown:
                    self._role_of_link.pop(event.link, None)  # type: ignore[union-attr]
                for handler in self._broadcast[kind]:
                    handler(event, out)
                if kind is StorageFailed:
                    out.stop(f"the storage failed: {event.reason}")  # type: ignore[union-attr]
        for part in self._finishing:
            if part.due:
                part.finish(out)

    def _receive(self, received: Received, out: Outbox) -> None:
        role = self._role_of_link.get(received.link)
        if role is None:
            return  # a link that was closed for a breach of protocol in this very turn
        peer, table = received.peer, self._tables[role]
        try:
            for heard in self._heard[role]:
                heard(peer, out)
            for message in received.messages:
                handlers = table.get(type(message))
                if handlers is None:
                    raise ProtocolError(f"{type(message).__name__} is not for this node to receive from {peer}")
                for handler in handlers:
                    handler(peer, message, out)
        except ProtocolError as error:
            # Our own state is sound, since a part checks before it changes anything; the peer's is not.
            del self._role_of_link[received.link]
            out.note("control", what="protocol-error", detail={"peer": peer, "problem": str(error)})
            out.disconnect(received.link, f"{BREACH}{error}")

    def measure(self) -> dict[str, int]:
        """What all parts measure, by name."""
        return {name: value for measure in self._measures for name, value in measure().items()}

    def measure_each(self) -> dict[str, dict[str, int]]:
        """What parts measure of each of several things, by name."""
        return {name: values for measure in self._measures_each for name, values in measure().items()}

    def check_invariants(self) -> None:
        for check in self._checks:
            check()
