"""Parts: the pieces that a node is put together from, and the dispatch between them.

A part is an object with a `name` and some of these methods; it gets what it declares, in the order in which the parts
are listed:

- `messages`: a mapping from message type to the roles that may send it; each goes to `on_<message_type>(peer, message,
  out)`. A message that no part takes from a peer of that role is a breach of protocol, and ends the link.
- `on_timer(key, out)`: timers whose key begins with the part's name.
- `on_started`, `on_link_up`, `on_link_down`, `on_connect_failed`, `on_durable`, `on_log_read`, `on_log_sent`,
  `on_storage_failed`, `on_drained`, `on_requested`, each `(input, out)`.
- `on_heard(peer, out)`: something came from the peer, whatever it was; ends the link if it raises ProtocolError.
- `finish(out)`: the turn's inputs are all handled; say now what concerns all of them: one message per destination, one
  cumulative acknowledgement.
- `check_invariants()`.
- `measure()`: numbers by name, for operators; names differ between parts.

When the storage fails, the node stops after that turn, whatever its parts do: what they decided since the last
`Durable` is in their memory and will never be on the disk, so that nothing they could still say is sure to hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
)
from holdfast.kernel.links import Role
from holdfast.kernel.node import broken, require
from holdfast.kernel.outbox import Outbox

_Handler = Callable[[str, Any, Outbox], None]
_Table = Mapping[type, Sequence[_Handler]]

BREACH = "protocol error: "  # begins the reason of a link that is closed for what its peer said

_BROADCAST: dict[type, str] = {
    input_type: "on_" + re.sub(r"(?<!^)(?=[A-Z])", "_", input_type.__name__).lower()
    for input_type in (
        Started, LinkUp, LinkDown, ConnectFailed, Durable, LogRead, LogSent, StorageFailed, Drained, Requested,
    )
}  # fmt: skip


def handler_name(message_type: type) -> str:
    """`on_open_session` for `OpenSession`."""
    return "on_" + re.sub(r"(?<!^)(?=[A-Z])", "_", message_type.__name__).lower()


class Assembly:
    """A node put together from parts."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = tuple(parts)
        names = [part.name for part in parts]
        require(len(set(names)) == len(names), "parts have different names", names=names)
        self._timers = {part.name: part.on_timer for part in parts if hasattr(part, "on_timer")}
        self._broadcast = {
            input_type: [getattr(part, name) for part in parts if hasattr(part, name)]
            for input_type, name in _BROADCAST.items()
        }
        self._heard = [part.on_heard for part in parts if hasattr(part, "on_heard")]
        self._finish = [part.finish for part in parts if hasattr(part, "finish")]
        self._checks = [part.check_invariants for part in parts if hasattr(part, "check_invariants")]
        self._measures = [part.measure for part in parts if hasattr(part, "measure")]
        self._tables = {role: self._table(role) for role in Role}
        self._table_of_link: dict[int, _Table] = {}

    def _table(self, role: Role) -> _Table:
        table: dict[type, list[_Handler]] = {}
        for part in self.parts:
            for message_type, roles in getattr(part, "messages", {}).items():
                if role in roles:
                    table.setdefault(message_type, []).append(getattr(part, handler_name(message_type)))
        return table

    def handle(self, inputs: list[Input], out: Outbox) -> None:
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
            else:
                if kind is LinkUp:
                    self._table_of_link[event.link] = self._tables[event.role]  # type: ignore[union-attr]
                elif kind is LinkDown:
                    self._table_of_link.pop(event.link, None)  # type: ignore[union-attr]
                for handler in self._broadcast[kind]:
                    handler(event, out)
                if kind is StorageFailed:
                    out.stop(f"the storage failed: {event.reason}")  # type: ignore[union-attr]
        for finish in self._finish:
            finish(out)

    def _receive(self, received: Received, out: Outbox) -> None:
        table = self._table_of_link.get(received.link)
        if table is None:
            return  # a link that was closed for a breach of protocol in this very turn
        peer = received.peer
        try:
            for heard in self._heard:
                heard(peer, out)
            for message in received.messages:
                handlers = table.get(type(message))
                if handlers is None:
                    raise ProtocolError(f"{type(message).__name__} is not for this node to receive from {peer}")
                for handler in handlers:
                    handler(peer, message, out)
        except ProtocolError as error:
            # Our own state is sound, since a part checks before it changes anything; the peer's is not.
            del self._table_of_link[received.link]
            out.note("control", what="protocol-error", detail={"peer": peer, "problem": str(error)})
            out.disconnect(received.link, f"{BREACH}{error}")

    def measure(self) -> dict[str, int]:
        """What all parts measure, by name."""
        return {name: value for measure in self._measures for name, value in measure().items()}

    def check_invariants(self) -> None:
        for check in self._checks:
            check()
