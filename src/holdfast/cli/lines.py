"""Events as JSON lines: {"topic", "attributes", "payload" (base64), "lifetime_ms"}."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import Annotated, Any

import msgspec

from holdfast.errors import EventError
from holdfast.kernel.time import MILLISECOND
from holdfast.model.event import Event
from holdfast.model.received import ReceivedEvent
from holdfast.model.values import Value

LIFETIME_MS_MAX = 1 << 42  # 139 years: in nanoseconds it is a number that messages can carry


class EventLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What `publish` reads. Payloads are base64."""

    topic: str = ""
    attributes: dict[str, Value] = {}
    payload: bytes = b""
    lifetime_ms: Annotated[int, msgspec.Meta(ge=0, le=LIFETIME_MS_MAX)] = 0


class ReceivedLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What `subscribe` writes."""

    id: str
    topic: str = ""
    attributes: dict[str, Value] = {}
    payload: bytes = b""
    published_at: int = 0
    position: int = 0
    attempt: int = 1


_decode = msgspec.json.Decoder(EventLine).decode
_encode = msgspec.json.Encoder().encode


def read_line(line: bytes | str, number: int) -> EventLine:
    try:
        return _decode(line)
    except msgspec.DecodeError as error:
        raise EventError(f"line {number}: {error}") from error


def write_line(event: ReceivedEvent) -> bytes:
    line = ReceivedLine(
        id=event.id,
        topic=event.topic,
        attributes=event.attributes,
        payload=event.payload,
        published_at=event.published_at,
        position=0 if event.position is None else event.position.number,
        attempt=event.attempt,
    )
    return _encode(line) + b"\n"


def write_event(event: Event) -> bytes:
    """As `publish` reads it: under a new id, with the lifetime that it had from its publication on."""
    line = EventLine(
        topic=event.topic,
        attributes=dict(event.attributes),
        payload=bytes(event.payload),
        lifetime_ms=-(-event.lifetime // MILLISECOND),
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
    if text.isdigit() and int(text) > 0:
        return int(text)
    try:
        place = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no position and no time") from None
    return place if place.tzinfo is not None else place.astimezone()
