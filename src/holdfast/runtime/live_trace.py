"""A broker's trace while it serves: what it noted, what it put on links, what its clients published (docs/trace.md).

It is bounded: when a file has half of what the trace may take, it becomes FILE.1, in place of an older one, and FILE
begins anew; so the newest rows are there. It is sampled by event: which events have rows follows from their ids, so
that all brokers of a network tell of the same ones. Whatever happens to the file, the broker goes on.
"""

from __future__ import annotations

import logging
import math
import time
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from holdfast.codec import UNREADABLE
from holdfast.errors import EventError
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Note
from holdfast.model.event import EventBytes, decode_events
from holdfast.trace import schema

TRACE_BYTES_MAX: Final = 256 * 1024**2  # of a broker's trace, unless another size is asked for
TRACE_BYTES_MIN: Final = 64 * 1024
PUBLISHERS_MAX: Final = 10_000  # publishers of which it is known how far they came: the oldest are forgotten
_CLIENT: Final = f"{Role.CLIENT.value}:"

log = logging.getLogger("holdfast")


class TraceSettings(msgspec.Struct, frozen=True):
    """`path` is a file; of several brokers, a folder with a file for each. `share` of the events is traced."""

    path: str
    is_folder: bool = False
    share: float = 1.0
    bytes_max: int = TRACE_BYTES_MAX

    def file_of(self, broker: str) -> Path:
        return Path(self.path) / f"{broker}.jsonl" if self.is_folder else Path(self.path)


def is_traced(event: str, share: float) -> bool:
    """Whether a sampled trace tells of this event: the same answer everywhere."""
    return share >= 1 or zlib.crc32(event.encode()) < share * 2**32


class LiveTrace:
    """The trace of one broker. OSError if its file can't be made; later, it ends and says so in the log."""

    def __init__(self, settings: TraceSettings, broker: str, site: str, system: str) -> None:
        self._broker = broker
        self._share = settings.share
        self._file_bytes_max = settings.bytes_max // 2
        self._path = settings.file_of(broker)
        told = {"view": schema.OF_BROKERS, "site": site, "broker": broker, "share": settings.share}
        run = f"{site}/{broker}"
        self._header = schema.Header(run=run, system=system, sampled=settings.share < 1, settings=told)
        self._encode = msgspec.json.Encoder().encode
        self._file: BinaryIO | None = None
        self._lines: list[bytes] = []
        self._size = 0
        self._last = 0  # time of the last row: rows stand in order, also when the clock goes back
        self._hops = 0
        self._published: OrderedDict[tuple[str, int], int] = OrderedDict()  # publisher, incarnation → sequence
        if settings.is_folder:
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._begin()

    # -------------------------------------------------------------------------------------------------------- rows
    def note(self, note: Note) -> None:
        """What the node noted. Of a sample, notes on queues are left out: there is one for every event."""
        kind = schema.KINDS[note.kind]
        fields: dict[str, Any] = note.fields
        if kind is schema.Control:
            fields = {"node": self._broker, **fields}
        if self._share < 1:
            if kind is schema.QueueLength or not self._is_traced(fields.get("event", "")):
                return
            if "events" in fields:
                fields = {**fields, "events": self._traced(fields["events"])}
                if not fields["events"]:
                    return
        self._put(kind(t=self._now(), **fields))

    def sent(self, peer: str, message: Message, size: int) -> None:
        """Put on the link to a peer. What carries no events is no part of any story, and far more."""
        self._hop(self._broker, peer.removeprefix(_CLIENT), message, size)

    def received(self, peer: str, messages: Sequence[Message]) -> None:
        """From a client, which keeps no trace itself."""
        if not peer.startswith(_CLIENT):
            return
        client = peer.removeprefix(_CLIENT)
        for message in messages:
            self._note_published(client, message.published())
            self._hop(client, self._broker, message, message.weight())

    def fault(self, component: str, state: str) -> None:
        self._put(schema.Fault(t=self._now(), component=component, state=state))

    def link(self, peer: str, is_up: bool) -> None:
        """A link to another broker came or went."""
        if ":" not in peer:
            self.fault(f"{self._broker}>{peer}", "healed" if is_up else "cut")

    def _note_published(self, client: str, published: EventBytes) -> None:
        try:
            events = decode_events(published) if len(published) else []
        except EventError:
            return  # the node will say what is wrong with it
        for event in events:
            life = (event.publisher, event.incarnation)
            if event.publisher != client or event.sequence <= self._published.get(life, 0):
                continue  # the node refuses what names another publisher; and this one comes again
            self._published[life] = event.sequence
            self._published.move_to_end(life)
            if len(self._published) > PUBLISHERS_MAX:
                self._published.popitem(last=False)
            finite = all(math.isfinite(value) for value in event.attributes.values() if isinstance(value, float))
            if finite and self._is_traced(event.id):  # JSON knows no others, and the node refuses them
                self._put(
                    schema.Published(
                        t=self._now(),
                        event=event.id,
                        publisher=event.publisher,
                        incarnation=event.incarnation,
                        sequence=event.sequence,
                        topic=event.topic,
                        attributes=dict(event.attributes),
                        lifetime=event.lifetime,
                    )
                )

    def _hop(self, source: str, target: str, message: Message, size: int) -> None:
        try:
            events = self._traced(message.event_ids())
        except UNREADABLE:
            return  # a client's mistake, which the node answers
        if events:
            self._hops += 1
            what = type(message).__name__
            row = schema.Hop(
                t=self._now(), message=self._hops, source=source, target=target, what=what, size=size, events=events
            )
            self._put(row)

    def _traced(self, events: list[str]) -> list[str]:
        return events if self._share >= 1 else [event for event in events if is_traced(event, self._share)]

    def _is_traced(self, event: str) -> bool:
        return not event or is_traced(event, self._share)

    def _now(self) -> int:
        self._last = max(self._last, time.time_ns())
        return self._last

    # -------------------------------------------------------------------------------------------------------- file
    def _put(self, row: schema.Row) -> None:
        if self._file is not None:
            self._lines.append(self._encode(row) + b"\n")

    def flush(self) -> None:
        """What was noted in a turn is written after it: whoever kills the broker finds whole turns."""
        if not self._lines or self._file is None:
            return
        lines, self._lines = self._lines, []
        try:
            for line in lines:
                if self._size + len(line) > self._file_bytes_max:
                    self._begin()
                self._size += self._file.write(line)
            self._file.flush()
        except OSError as error:
            self._end(error)

    def _begin(self) -> None:
        """A new file; the one before is kept beside it, the one before that goes."""
        if self._file is not None:
            self._file.close()
        header = self._header
        if self._path.exists() and self._path.stat().st_size:
            self._path.replace(f"{self._path}.1")
            header = msgspec.structs.replace(header, settings={**header.settings, "continues": True})
        self._file = self._path.open("wb")
        self._size = self._file.write(self._encode(header) + b"\n")
        self._file.flush()

    def _end(self, error: OSError) -> None:
        log.warning("%s: the trace %s ends here, the broker goes on: %s", self._broker, self._path, error)
        self._file = None
        self._lines = []

    def close(self) -> None:
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None
