"""Events: what a publisher sends, and the bytes in which it travels.

An event's bytes are made once, by its publisher's client, and never again: brokers match from them and pass them on,
many events in a batch (`batch`). Whatever a scheme has to say about an event on its way stands beside them, in the
message that carries it (the hop header).

An event's id is (publisher, incarnation, sequence): unique without anyone's help, and ordered for each incarnation of a
publisher (D0-A7).

An event may have a lifetime. Its deadline is when it was published, by its publisher's clock, and so much more; whoever
gets it before that, by its own clock, gets it on time, and for others it has expired (D1-A4). So clocks are taken to
agree: one that is fast by a second makes events a second shorter-lived for those who go by it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Final, Protocol, TypeAlias

import msgspec

from holdfast.codec import UNREADABLE
from holdfast.errors import EventError
from holdfast.model.values import Value, check_attributes, is_unicode_text

ATTRIBUTES_MAX = 64
NAME_BYTES_MAX = 128
STRING_BYTES_MAX = 64 * 1024
PAYLOAD_BYTES_MAX = 512 * 1024
# All of an event's bytes. What carries one event, whichever way, has to fit into a frame of 1 MiB.
EVENT_BYTES_MAX = 1024 * 1024 - 1024
BATCH_EVENTS_MAX = 8_192  # that travel together
# Shorter bytes than these can't break any of the limits above: a name and its value take three bytes or more.
SMALL_BYTES = 128
# What encoding and checking raise for what can't be an event.
UNENCODABLE: Final = (EventError, TypeError, ValueError, OverflowError, RecursionError)
# Deadlines are kept in 64 bits, and what publishers say may add up to more.
DEADLINE_MAX = 2**63 - 1


def deadline_of(published_at: int, lifetime: int) -> int:
    """From then on an event is expired; 0: never."""
    if not lifetime:
        return 0
    deadline = published_at + lifetime
    return deadline if 0 < deadline < DEADLINE_MAX else max(1, min(deadline, DEADLINE_MAX))


class Event(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """One event. `lifetime` and `published_at` are nanoseconds, the latter by the publisher's clock; 0 is for ever."""

    publisher: str
    incarnation: int
    sequence: int
    topic: str
    attributes: dict[str, Value]
    payload: bytes = b""
    published_at: int = 0
    lifetime: int = 0

    @property
    def id(self) -> str:
        """The id as text, as traces show it."""
        return f"{self.publisher}/{self.incarnation}/{self.sequence}"

    @property
    def deadline(self) -> int:
        """From then on, by the wall clock, it is expired; 0: never."""
        return deadline_of(self.published_at, self.lifetime)


class Contents(Protocol):
    """What a publisher says of an event; the rest is known of the publisher."""

    @property
    def topic(self) -> str: ...

    @property
    def attributes(self) -> Mapping[str, Value]: ...

    @property
    def payload(self) -> bytes: ...

    @property
    def lifetime(self) -> int: ...


# An event's immutable bytes, or those of a msgpack array of events; embedded in a message as they are.
EventBytes = msgspec.Raw
NO_EVENTS: Final = EventBytes(b"\x90")

_ARRAY_HEADS: Final = {0xDC: 3, 0xDD: 5}  # bytes, by the first of them; others have one

_encode = msgspec.msgpack.Encoder().encode
_decode_one = msgspec.msgpack.Decoder(Event).decode
# A batch that claims more is refused before any of it is decoded: a frame of 1 MiB can hold 100,000 events of nothing.
_Batch: TypeAlias = Annotated[list[Event], msgspec.Meta(max_length=BATCH_EVENTS_MAX)]
_decode_events: Callable[[EventBytes | bytes], list[Event]] = msgspec.msgpack.Decoder(_Batch).decode
_decode_all: Callable[[EventBytes | bytes], list[Event]] = msgspec.msgpack.Decoder(list[Event]).decode
_decode_slices = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


_lifetime = operator.attrgetter("lifetime")


def any_expires(events: Iterable[Event]) -> bool:
    """Whether some have a lifetime. Most have none; then this is all that lifetimes cost."""
    return any(map(_lifetime, events))


def events_alone(encoded: EventBytes) -> memoryview:
    """The bytes of all events of a msgpack array, without its head."""
    view = memoryview(encoded)
    return view[_ARRAY_HEADS.get(view[0], 1) :] if len(view) else view


def encode_event(event: Event) -> EventBytes:
    return msgspec.Raw(_encode(event))


def encode_fields(
    publisher: str,
    incarnation: int,
    sequence: int,
    topic: str,
    attributes: dict[str, Value],
    payload: bytes,
    published_at: int,
    lifetime: int,
) -> EventBytes:
    """The bytes of an event of these fields, which nobody has checked; half the time of making the event first."""
    fields = (publisher, incarnation, sequence, topic, attributes, payload, published_at, lifetime)
    return msgspec.Raw(_encode(fields))


def decode_event(data: EventBytes) -> Event:
    """The event of these bytes, or EventError."""
    try:
        return _decode_one(data)
    except UNREADABLE as error:
        raise EventError(f"bytes are no event: {error}") from error


class _Id(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first fields of an event; the rest is skipped."""

    publisher: str
    incarnation: int
    sequence: int


_decode_ids = msgspec.msgpack.Decoder(list[_Id]).decode


def event_ids(events: EventBytes) -> list[str]:
    """The ids, as text, of a batch of events."""
    return [f"{id.publisher}/{id.incarnation}/{id.sequence}" for id in _decode_ids(events)]


class _Mark(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event's id and times; what lies between is skipped."""

    publisher: str
    incarnation: int
    sequence: int
    topic: msgspec.Raw
    attributes: msgspec.Raw
    payload: msgspec.Raw = msgspec.Raw(b"\xc4\x00")
    published_at: int = 0
    lifetime: int = 0


_decode_marks = msgspec.msgpack.Decoder(list[_Mark]).decode


def deadlines_in(batch: EventBytes) -> list[int]:
    """The deadlines of a batch of events, 0 for those without one; empty if none has any. EventError if it is none."""
    try:
        marks = _decode_marks(batch)
    except UNREADABLE as error:
        raise EventError(f"bytes are no events: {error}") from error
    return [deadline_of(mark.published_at, mark.lifetime) for mark in marks] if any(map(_lifetime, marks)) else []


def decode_events(batch: EventBytes) -> list[Event]:
    """The events of a stranger's msgpack array of them. EventError if the bytes are none, or too many."""
    try:
        return _decode_events(batch)
    except UNREADABLE as error:
        raise EventError(f"bytes are no events: {error}") from error


def decode_all(batch: EventBytes) -> list[Event]:
    """The same of an array that was found sound before, or made here: it may have any number of them."""
    try:
        return _decode_all(batch)
    except UNREADABLE as error:
        raise EventError(f"bytes are no events: {error}") from error


class _Topic(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An event's topic; the rest is skipped."""

    publisher: msgspec.Raw
    incarnation: msgspec.Raw
    sequence: msgspec.Raw
    topic: str


_decode_topics = msgspec.msgpack.Decoder(list[_Topic]).decode


def topics_in(batch: EventBytes) -> list[str]:
    """The topic of each event of a batch."""
    return [found.topic for found in _decode_topics(batch)]


def _head(batch: EventBytes) -> tuple[int, int]:
    """How many events a msgpack array says that it has, and in how many bytes."""
    head = bytes(memoryview(batch)[:5])
    if head and head[0] >> 4 == 0x9:
        return head[0] & 0x0F, 1
    if len(head) >= 3 and head[0] == 0xDC:
        return int.from_bytes(head[1:3], "big"), 3
    if len(head) == 5 and head[0] == 0xDD:
        return int.from_bytes(head[1:], "big"), 5
    raise EventError("bytes are no events: they begin as no array does")


def count_events(batch: EventBytes) -> int:
    """How many events a msgpack array has, without a look at them."""
    return _head(batch)[0]


def array_head(count: int) -> bytes:
    """What begins a msgpack array of so many."""
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + count.to_bytes(2, "big") if count < 65_536 else b"\xdd" + count.to_bytes(4, "big")


def join_arrays(batches: Sequence[EventBytes]) -> EventBytes:
    """One msgpack array of several, without a look at the events in them."""
    heads = [_head(batch) for batch in batches]
    bodies = [memoryview(batch)[size:] for batch, (_, size) in zip(batches, heads, strict=True)]
    return msgspec.Raw(b"".join([array_head(sum([count for count, _ in heads])), *bodies]))


def slices_of(batch: EventBytes) -> list[EventBytes]:
    """The bytes of each event of a msgpack array of them. EventError if the bytes are no array."""
    try:
        return _decode_slices(batch)
    except UNREADABLE as error:
        raise EventError(f"bytes are no events: {error}") from error


def encode_batch(events: Sequence[EventBytes]) -> EventBytes:
    """A msgpack array of the events' bytes, which are copied as they are."""
    return msgspec.Raw(_encode(events))


def check_limits(event: Event, size: int) -> None:
    """Refuses, with EventError, an event beyond a limit. `size` is that of its bytes.

    What its attributes hold is checked where they are matched: the index looks at every value anyway.
    """
    if size <= SMALL_BYTES:
        return
    # A character has at most four bytes; so most events need no look at single names and values.
    longest = max(map(len, event.attributes), default=0)
    if size <= STRING_BYTES_MAX and len(event.attributes) <= ATTRIBUTES_MAX and 4 * longest <= NAME_BYTES_MAX:
        return
    if len(event.attributes) > ATTRIBUTES_MAX:
        raise _beyond("attributes_max", ATTRIBUTES_MAX, "an event's attributes", len(event.attributes), "")
    _check_length("topic", event.topic, "topic")
    if len(event.payload) > PAYLOAD_BYTES_MAX:
        raise _beyond("payload_bytes_max", PAYLOAD_BYTES_MAX, "a payload's bytes", len(event.payload))
    for name, value in event.attributes.items():
        length = len(name.encode())
        if length > NAME_BYTES_MAX:
            shown = f"{name[:20]}…"
            raise _beyond("name_bytes_max", NAME_BYTES_MAX, f"the bytes of attribute name {shown!r}", length, name)
        if isinstance(value, str):
            _check_length(f"attribute {name!r}", value, name)
    if size > EVENT_BYTES_MAX:
        raise _beyond("event_bytes_max", EVENT_BYTES_MAX, "an event's bytes", size)


def _check_length(what: str, text: str, attribute: str) -> None:
    if len(text) > STRING_BYTES_MAX // 4 and len(text.encode()) > STRING_BYTES_MAX:
        raise _beyond("string_bytes_max", STRING_BYTES_MAX, f"the bytes of {what}", len(text.encode()), attribute)


def _beyond(limit: str, allowed: int, what: str, count: int, attribute: str = "") -> EventError:
    """`attribute` is cut short: an error is not to carry a name of a megabyte on."""
    problem = f"{what} are {count}, beyond {limit}, {allowed}"
    return EventError(problem, attribute[:NAME_BYTES_MAX], limit=limit, allowed=allowed)


def check_event(event: Event, size: int) -> None:
    """Refuses, with EventError, an event that no broker accepts; for publishers, who have no index."""
    check_topic(event.topic)
    check_attributes(event.attributes)
    if type(event.payload) is not bytes:
        raise EventError(f"payload is of type {type(event.payload).__name__}, not bytes")
    check_limits(event, size)


def check_topic(topic: object) -> None:
    if not isinstance(topic, str):
        raise EventError(f"topic is of type {type(topic).__name__}, not str", "topic")
    if not is_unicode_text(topic):
        raise EventError("topic holds a lone surrogate, which is no Unicode text", "topic")
