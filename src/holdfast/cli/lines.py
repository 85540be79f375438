"""Events as JSON lines: {"topic", "attributes", "payload" (base64), "lifetime_ms"}; what is written can be read again.

`subscribe` and `read` also write what a broker says of an event: `id`, `published_at`, `position`, `attempt`. `publish`
takes these fields and does nothing with them: the event is a new one, with an id and a place of its own. Its lifetime
is the one that it was first published with, counted anew, and not what was left of it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.cli.line_mistakes import mistake_in, mistake_in_attributes
from holdfast.codec import UNREADABLE
from holdfast.errors import EventError
from holdfast.kernel.time import MILLISECOND
from holdfast.model.event import Event, check_limits, check_topic, encode_event
from holdfast.model.received import ReceivedEvent
from holdfast.model.values import Value, check_attributes

LIFETIME_MS_MAX = 1 << 42  # 139 years: in nanoseconds it is a number that messages can carry
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # that some editors begin a file with


class EventLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One line. Payloads are base64; a lifetime of 0 is for ever."""

    id: str = ""
    topic: str = ""
    attributes: dict[str, Value] = {}
    payload: bytes = b""
    published_at: int = 0
    lifetime_ms: Annotated[int, msgspec.Meta(ge=0, le=LIFETIME_MS_MAX)] = 0
    position: int = 0
    attempt: int = 1


_decode = msgspec.json.Decoder(EventLine).decode
_decode_attributes = msgspec.json.Decoder(dict[str, Value]).decode
_encode = msgspec.json.Encoder().encode


def read_line(line: bytes | str, number: int) -> EventLine:
    """An event that brokers accept; EventError, which names the line and what is wrong in it, if it is none."""
    data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    if number == 1:
        data = data.removeprefix(BYTE_ORDER_MARK)
    try:
        return _checked(_decode(data))
    except UNREADABLE as error:
        raise EventError(f"line {number}: {mistake_in(data, EventLine.__struct_fields__, str(error))}") from error
    except EventError as error:
        raise _at(f"line {number}", error) from error


def read_event(topic: str, attributes: str) -> EventLine:
    """One event as the options `--topic` and `--attributes` give it."""
    data = attributes.encode("utf-8", "surrogatepass")
    try:
        return _checked(EventLine(topic=topic, attributes=_decode_attributes(data)))
    except UNREADABLE as error:
        raise EventError(f"--attributes: {mistake_in_attributes(data, str(error))}") from error
    except EventError as error:
        raise _at("--topic" if error.attribute == "topic" and topic else "--attributes", error) from error


def _at(place: str, error: EventError) -> EventError:
    return EventError(f"{place}: {error}", error.attribute, limit=error.limit, allowed=error.allowed)


def _checked(line: EventLine) -> EventLine:
    """The line, if a broker accepts its event: whoever asks the broker hears of it when the lines behind are sent."""
    check_topic(line.topic)
    check_attributes(line.attributes)
    # Without its publisher, an event is a few bytes shorter: what is this close to the limit, the bus refuses.
    event = Event("", 0, 0, line.topic, line.attributes, line.payload)
    check_limits(event, len(encode_event(event)))
    return line


def write_line(event: ReceivedEvent) -> bytes:
    """As its subscriber sees it."""
    return _line(
        event,
        {
            "id": event.id,
            "published_at": event.published_at,
            "position": 0 if event.position is None else event.position.number,
            "attempt": event.attempt,
        },
    )


def write_event(event: Event | ReceivedEvent) -> bytes:
    """What its publisher said of it."""
    return _line(event, {})


def _line(event: Event | ReceivedEvent, more: Mapping[str, Any]) -> bytes:
    line = EventLine(
        topic=event.topic,
        attributes=event.attributes,
        payload=event.payload,
        lifetime_ms=min(-(-event.lifetime // MILLISECOND), LIFETIME_MS_MAX),
        **more,
    )
    return _encode(line) + b"\n"


def as_builtins(line: EventLine) -> dict[str, Any]:
    """How `Bus.post` takes it."""
    lifetime = line.lifetime_ms / 1000 if line.lifetime_ms else None
    return {"topic": line.topic, "payload": line.payload, "lifetime": lifetime}


def read_place(text: str) -> str | int | datetime:
    """A place in a log, as a command line names it: `new`, `earliest`, a position, or a time in ISO 8601."""
    if text in ("new", "earliest"):
        return text
    if re.fullmatch("[0-9]{1,18}", text) and int(text) > 0:
        return int(text)
    try:
        place = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no position and no time") from None
    return place if place.tzinfo is not None else place.astimezone()
