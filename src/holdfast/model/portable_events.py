"""What is asked of the bytes of a batch of events, in Python: for where `_events` can't be compiled, and its oracle.

A batch is a msgpack array of events; `offsets` say where each of them begins in it, and where the last one ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from holdfast.errors import EventError
from holdfast.model.event import (
    UNENCODABLE,
    Contents,
    Event,
    EventBytes,
    any_expires,
    check_event,
    deadlines_in,
    decode_all,
    decode_events,
    encode_fields,
    slices_of,
    topics_in,
)

Encoded: TypeAlias = EventBytes | bytes
Offsets: TypeAlias = tuple[int, ...]
# As `EventBatch` is made of them, behind the bytes.
Made: TypeAlias = tuple[bytes, Offsets, bool]
Scanned: TypeAlias = tuple[Offsets, bool, tuple[int, ...], list[tuple[str, int, int, int]]]


def scan(encoded: EventBytes, bounded: bool) -> Scanned:
    """Offsets, whether some event has a lifetime, the rows of those that break a rule, and runs of publishers.
    EventError if the bytes are no events, or, if `bounded`, more than a stranger may send at once."""
    events, slices = decode_events(encoded) if bounded else decode_all(encoded), slices_of(encoded)
    offsets = [len(encoded) - sum(map(len, slices))]
    for slice in slices:
        offsets.append(offsets[-1] + len(slice))
    doubtful = [row for row, event in enumerate(events) if _breaks_a_rule(event, len(slices[row]))]
    expires = any_expires(events)
    return tuple(offsets), expires, tuple(doubtful), _runs(events)


def _breaks_a_rule(event: Event, size: int) -> bool:
    try:
        check_event(event, size)
    except EventError:
        return True
    return False


def _runs(events: Sequence[Event]) -> list[tuple[str, int, int, int]]:
    runs: list[tuple[str, int, int, int]] = []
    for event in events:
        publisher, incarnation, sequence = event.publisher, event.incarnation, event.sequence
        if runs:
            last, life, first, count = runs[-1]
            if last == publisher and life == incarnation and first + count == sequence:
                runs[-1] = (last, life, first, count + 1)
                continue
        runs.append((publisher, incarnation, sequence, 1))
    return runs


_PLAIN = {int, float, str, bool}


def encode(
    publisher: str, incarnation: int, first: int, contents: Sequence[Contents], published_at: int
) -> Made | None:
    """The bytes of what a publisher says from sequence `first` on, offsets, and whether some of it has a lifetime. None
    if some of it breaks a rule or is of an unusual type: then it has to be looked at singly."""
    begin = header(len(contents))
    pieces, offsets = [begin], [len(begin)]
    try:
        for sequence, new in enumerate(contents, first):
            attributes = new.attributes
            if type(attributes) is not dict or type(new.topic) is not str or type(new.lifetime) is not int:
                return None
            if not all(type(name) is str and type(attributes[name]) in _PLAIN for name in attributes):
                return None
            fields = (new.topic, attributes, new.payload, published_at, new.lifetime)
            data = bytes(encode_fields(publisher, incarnation, sequence, *fields))
            check_event(Event(publisher, incarnation, sequence, *fields), len(data))
            pieces.append(data)
            offsets.append(offsets[-1] + len(data))
    except UNENCODABLE:
        return None
    return b"".join(pieces), tuple(offsets), any(new.lifetime for new in contents)


def header(count: int) -> bytes:
    """What begins a msgpack array of so many."""
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + count.to_bytes(2, "big") if count < 65_536 else b"\xdd" + count.to_bytes(4, "big")


def take(encoded: Encoded, offsets: Offsets, rows: Sequence[int]) -> tuple[bytes, Offsets]:
    """The batch of some rows, which rise."""
    view = memoryview(encoded)
    begin = header(len(rows))
    pieces: list[bytes | memoryview] = [begin]
    found = [len(begin)]
    for row in rows:
        pieces.append(view[offsets[row] : offsets[row + 1]])
        found.append(found[-1] + offsets[row + 1] - offsets[row])
    return b"".join(pieces), tuple(found)


def join(parts: Sequence[tuple[Encoded, Offsets]]) -> tuple[bytes, Offsets]:
    """One batch of several."""
    begin = header(sum([len(offsets) - 1 for _, offsets in parts]))
    pieces: list[bytes | memoryview] = [begin]
    found = [len(begin)]
    for encoded, offsets in parts:
        pieces.append(memoryview(encoded)[offsets[0] : offsets[-1]])
        distance = found[-1] - offsets[0]
        found += [distance + offset for offset in offsets[1:]]
    return b"".join(pieces), tuple(found)


def _array(data: Encoded, offsets: Offsets) -> EventBytes:
    """These events alone, as a msgpack array."""
    if offsets[-1] == len(data) and offsets[0] == len(header(len(offsets) - 1)):
        return EventBytes(data)
    return EventBytes(join([(data, offsets)])[0])


def deadlines(data: Encoded, offsets: Offsets) -> list[int]:
    """When each is over; 0: never."""
    return deadlines_in(_array(data, offsets)) or [0] * (len(offsets) - 1)


def events_of(data: Encoded, offsets: Offsets) -> list[Event]:
    """As values."""
    return decode_all(_array(data, offsets))


def publishers(data: Encoded, offsets: Offsets) -> list[tuple[str, int, int, int]]:
    """Runs of events of one publisher, numbered without gaps: publisher, incarnation, first sequence, count."""
    return _runs(events_of(data, offsets))


def topics(data: Encoded, offsets: Offsets) -> list[str]:
    """Each once, in the order in which they come."""
    return list(dict.fromkeys(topics_in(_array(data, offsets))))
