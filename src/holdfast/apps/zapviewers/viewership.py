"""Viewership, the replicated application of ZapViewers (D4-A10, D4-B9, D4-G4).

It is shown the events on topic `zap`, whose payloads are lines of set-top boxes, and answers with events of its own,
at most every `every_ms` of the time that comes with the events (D4-B11):

- `zap-top`, if the ten most watched channels or their viewers have changed: the payload is a JSON list of
  `[channel, viewers]`; the attributes are `position` (the last event that is counted), `lines` (counted so far),
  `viewers` (in total), `channels` (that somebody watches) and `first` (the most watched one).
- `zap-viewers` for each channel whose viewers have changed: attributes `channel`, `viewers` and `position`. At most
  `channels_max` of them at a time, since a broker takes no more of an application; the next time it goes on with the
  names behind, so that every channel has its turn.

So a subscriber to the top list and one to a single channel need nothing but filters: `topic = 'zap-top'`, and
`topic = 'zap-viewers' AND channel = '…'`. Nothing is said while no event comes: there is no clock here.

Clients ask in JSON, and get JSON:

    {"ask": "num_viewers", "channel": "Kanal Nord"}  →  {"channel": "Kanal Nord", "viewers": 812}
    {"ask": "top_list", "n": 10}                     →  {"top": [["Kanal Nord", 812], …], "position": …, "lines": …,
                                                         "viewers": …, "channels": …}
    {"ask": "counts"}                                →  {"events": …, "lines": …, "malformed": …, "anomalies": …,
                                                         "boxes": …, "watching": …, "sample": […], "position": …,
                                                         "digest": "…", "audience": "…"}

`digest` is of the whole state, `audience` of boxes and channels alone: who counts the same events at other times, as
from a log, tells other things at other times, and comes to the same audience.

Anything else gets `{"error": "…"}`. All of it is a function of the events and requests in their order, so that equal
replicas stay equal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, TypeAlias

import msgspec

from holdfast.apps.zapviewers.audience import Audience, ChannelViewers
from holdfast.kernel.application import Derived
from holdfast.kernel.time import MILLISECOND
from holdfast.model.values import Value

ZAP = "zap"
TOP = "zap-top"
VIEWERS = "zap-viewers"
TOP_CHANNELS = 10
EVERY_MS = 1000
CHANNELS_TOLD_MAX = 90  # with the top list, fewer than a broker takes by default
ASKED_CHANNELS_MAX = 1000
REQUEST_BYTES_MAX = 512


class _NumViewers(msgspec.Struct, frozen=True, tag_field="ask", tag="num_viewers", forbid_unknown_fields=True):
    channel: str


class _TopList(msgspec.Struct, frozen=True, tag_field="ask", tag="top_list", forbid_unknown_fields=True):
    n: Annotated[int, msgspec.Meta(ge=0, le=ASKED_CHANNELS_MAX)] = TOP_CHANNELS


class _Counts(msgspec.Struct, frozen=True, tag_field="ask", tag="counts", forbid_unknown_fields=True):
    pass


_Request: TypeAlias = _NumViewers | _TopList | _Counts
_decode_request = msgspec.json.Decoder(_Request).decode
_encode = msgspec.json.Encoder().encode


class _State(msgspec.Struct, frozen=True, array_like=True):
    events: int
    position: int
    told_at: int
    told_last: str
    told_counts: dict[str, int]
    told_top: list[tuple[str, int]]
    audience: bytes


class Viewership:
    """Counts viewers. `every_ms` and `channels_max` must be the same at all replicas."""

    topics = frozenset({ZAP})

    def __init__(self, every_ms: int = EVERY_MS, channels_max: int = CHANNELS_TOLD_MAX) -> None:
        self.audience = Audience()
        self._every = every_ms * MILLISECOND
        self._channels_max = channels_max
        self._events = 0
        self._position = 0  # of the last event
        self._told_at = 0
        self._told_last = ""  # the channel that was told of last
        self._told_counts: list[int] = []  # by the audience's names
        self._told_top: list[ChannelViewers] = []
        # Of the present state and audience, if they were asked for since the last event; no part of the state.
        self._digests: tuple[str, str] | None = None

    # ------------------------------------------------------------------------------------------------------ questions
    def num_viewers(self, channel: str) -> int:
        """How many watch a channel."""
        return self.audience.num_viewers(channel)

    def compute_top_list(self, n: int) -> list[ChannelViewers]:
        """The n channels that most watch; equals by name."""
        return self.audience.compute_top_list(n)

    def execute(self, request: bytes) -> bytes:
        """Answers one question; a bad one with an error."""
        if len(request) > REQUEST_BYTES_MAX:
            return _error(f"a request has at most {REQUEST_BYTES_MAX} bytes")
        try:
            asked: _Request = _decode_request(request)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            return _error(str(problem))
        match asked:
            case _NumViewers(channel=channel):
                return _encode({"channel": channel, "viewers": self.num_viewers(channel)})
            case _TopList(n=n):
                return _encode({"top": self.compute_top_list(n), **self._totals()})
            case _Counts():
                return _encode(self._counts())

    def _totals(self) -> dict[str, int]:
        counts = self.audience.counts()
        return {
            "position": self._position,
            "lines": self.audience.lines,
            "viewers": sum(counts),
            "channels": sum(map(bool, counts)),
        }

    def _counts(self) -> dict[str, Any]:
        audience = self.audience
        if self._digests is None:
            state, boxes = self.get_state(), audience.get_state()
            self._digests = sha256(state).hexdigest(), sha256(boxes).hexdigest()
        digest, audience_digest = self._digests
        return {
            "events": self._events,
            "lines": audience.lines,
            "malformed": audience.malformed,
            "anomalies": audience.anomalies,
            "boxes": audience.boxes,
            "watching": audience.watching,
            "sample": [
                {"position": position, "line": line.decode("utf-8", "backslashreplace"), "reason": reason}
                for position, line, reason in audience.sample
            ],
            "position": self._position,
            "digest": digest,
            "audience": audience_digest,
        }

    # --------------------------------------------------------------------------------------------------------- events
    def observe(
        self, number: int, wall: int, topic: str, attributes: Mapping[str, Value], payload: bytes
    ) -> Sequence[Derived]:
        """Takes the lines of an event, and gives what is to be published by now. `wall` is in nanoseconds."""
        if topic != ZAP:
            return ()
        self._events += 1
        self._position = number
        self._digests = None
        self.audience.take(payload, number)
        # A clock that was set back must not silence us until it has caught up.
        self._told_at = min(self._told_at, wall)
        if wall - self._told_at < self._every:
            return ()
        self._told_at = wall
        return self._tell(number)

    def _tell(self, position: int) -> list[Derived]:
        counts, told = self.audience.counts(), self._told_counts
        told += [0] * (len(counts) - len(told))
        changed = {
            name: place
            for place, (name, now, before) in enumerate(zip(self.audience.names, counts, told, strict=True))
            if now != before
        }
        derived = []
        top = self.compute_top_list(TOP_CHANNELS)
        if top != self._told_top:
            self._told_top = top
            attributes: dict[str, Value] = {**self._totals(), "first": top[0].channel if top else ""}
            derived.append(Derived(TOP, attributes, _encode(top)))
        for name in self._next(changed):
            viewers = told[changed[name]] = counts[changed[name]]
            derived.append(Derived(VIEWERS, {"channel": name, "viewers": viewers, "position": position}, b""))
            self._told_last = name
        return derived

    def _next(self, changed: Iterable[str]) -> list[str]:
        """By name, beginning behind the one that was told of last: a replica that took over a state has heard of the
        channels in another order."""
        names = sorted(changed)
        if len(names) > self._channels_max:
            behind = bisect_right(names, self._told_last)
            names = (names[behind:] + names[:behind])[: self._channels_max]
        return names

    # ---------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> bytes:
        """The whole state; equal bytes mean equal futures."""
        told = {
            name: viewers
            for name, viewers in sorted(zip(self.audience.names, self._told_counts, strict=False))
            if viewers
        }
        top = [(channel, viewers) for channel, viewers in self._told_top]
        audience = self.audience.get_state()
        return msgspec.msgpack.encode(
            _State(self._events, self._position, self._told_at, self._told_last, told, top, audience)
        )

    def set_state(self, state: bytes) -> None:
        """Replaces the whole state."""
        new = msgspec.msgpack.decode(state, type=_State)
        self.audience.set_state(new.audience)
        self._events, self._position = new.events, new.position
        self._told_at, self._told_last = new.told_at, new.told_last
        self._told_counts = [new.told_counts.get(name, 0) for name in self.audience.names]
        self._told_top = [ChannelViewers(*entry) for entry in new.told_top]
        self._digests = None


def _error(problem: str) -> bytes:
    return _encode({"error": problem})
