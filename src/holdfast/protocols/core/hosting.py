"""The application that the core hosts: what it is shown, what it makes of that, and what it answers (D4-A9, D4-B11).

Every accepted event of its topics is shown to it, in the order of the log; what it derives is published in the same
command, right behind, and is not shown to it. Requests are executed in their place among the commands. So all replicas
have the same application state at the same position, as long as the application is deterministic (D4-C5).

Nothing that it does stops a replica: what it raises is an answer, or is counted, and a derived event that breaks the
rules of events or a limit is dropped and counted.
"""

from __future__ import annotations

from hashlib import sha256
from types import MappingProxyType
from typing import Final

import msgspec

from holdfast.errors import ApplicationChanged, EventError
from holdfast.kernel.application import Derived, Hosted
from holdfast.kernel.node import require
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, EventBytes, check_event, encode_event
from holdfast.protocols.core.limits import HostingLimits
from holdfast.protocols.sessions.messages import NO_APPLICATION, ApplicationAnswered, Refusal

# The publisher of what the application derives. No client can have the name: the handshake refuses its first character.
PUBLISHER: Final = "@application"
PROBLEM_CHARACTERS: Final = 1_000  # of what was raised
DIGEST_CHARACTERS: Final = 32
_UNENCODABLE: Final = (EventError, AttributeError, TypeError, ValueError, OverflowError, RecursionError)


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What came of a request."""

    data: bytes = b""
    reason: Refusal | None = None
    problem: str = ""

    def message(self, number: int) -> ApplicationAnswered:
        return ApplicationAnswered(number, self.data, self.reason, self.problem)


class HostingState(msgspec.Struct, frozen=True, array_like=True):
    name: str
    derived: int
    dropped: int
    requests: int
    failed: int
    state: bytes


class Hosting:
    """`name` says which application it is: data that were written with another are refused."""

    def __init__(self, application: Hosted | None = None, name: str = "", limits: HostingLimits | None = None) -> None:
        require((application is None) == (not name), "an application has a name", name=name)
        self.application = application
        self.name = name
        self.limits = limits or HostingLimits()
        self.topics = frozenset() if application is None else frozenset(application.topics)
        self._shown_before = self.topics
        self.derived = 0  # events, that were published
        self.dropped = 0  # events that it made and that could not be
        self.requests = 0  # executed
        self.failed = 0  # requests and observations that raised something

    @property
    def window(self) -> int:
        """How many requests a client may have unconfirmed."""
        return 0 if self.application is None else self.limits.requests_in_flight

    def replay_as(self, name: str) -> None:
        """What is applied now was applied before, with an application of that name; "" for none."""
        if name not in ("", self.name):
            raise ApplicationChanged(name, self.name)
        self.topics = self._shown_before if name else frozenset()

    def go_on(self) -> None:
        """What is applied from now on is new."""
        self.topics = self._shown_before

    # ----------------------------------------------------------------------------------------------------- requests
    def execute(self, request: bytes) -> Answer:
        if self.application is None:
            return Answer(reason=Refusal.NO_APPLICATION, problem=NO_APPLICATION)
        self.requests += 1
        try:
            answer: object = self.application.execute(request)
        except Exception as error:  # whatever it is, it is the same at all replicas, and the client's to know
            return self._failed(_text_of(error))
        if not isinstance(answer, bytes):
            return self._failed(f"the application answered with {type(answer).__name__}, not bytes")
        if len(answer) > self.limits.answer_bytes:
            allowed = self.limits.answer_bytes
            return self._failed(f"the answer's bytes are {len(answer)}, beyond answer_bytes, {allowed}")
        return Answer(answer)

    def _failed(self, problem: str) -> Answer:
        self.failed += 1
        return Answer(reason=Refusal.APPLICATION_FAILED, problem=problem)

    # ------------------------------------------------------------------------------------------------------- events
    def sees(self, batch: EventBatch) -> bool:
        """Whether some of these events are shown to it."""
        return bool(self.topics) and not self.topics.isdisjoint(batch.topics())

    def observe(self, first: int, wall: int, memory: int, events: list[Event]) -> list[EventBytes]:
        """Shows it events that were accepted, the first under this number. Gives what it derives.

        The incarnation of derived events is the core's memory: a broker that forgot everything numbers them anew, and
        they are not to be taken for those of before.
        """
        made: list[EventBytes] = []
        if self.application is None:
            return made
        room = self.limits.derived_bytes
        for number, event in enumerate(events, first):
            if event.topic not in self.topics:
                continue
            attributes = MappingProxyType(event.attributes)
            try:
                derived = list(self.application.observe(number, wall, event.topic, attributes, event.payload))
            except Exception:  # as above, but there is nobody to tell; measures do
                self.failed += 1
                continue
            for new in derived:
                data = self._make(new, wall, memory, room) if len(made) < self.limits.derived_events else None
                if data is None:
                    self.dropped += 1
                else:
                    made.append(data)
                    room -= len(data)
        return made

    def _make(self, new: Derived, wall: int, memory: int, room: int) -> EventBytes | None:
        """The event, if it could be made."""
        try:
            event = Event(PUBLISHER, memory, self.derived + 1, new.topic, dict(new.attributes), new.payload, wall)
            data = encode_event(event)
            if len(data) > room:
                return None
            check_event(event, len(data))
        except _UNENCODABLE:
            return None
        self.derived += 1
        return data

    # -------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> HostingState | None:
        if self.application is None:
            return None
        state = self.application.get_state()
        return HostingState(self.name, self.derived, self.dropped, self.requests, self.failed, state)

    def set_state(self, state: HostingState | None) -> None:
        """None: no application had been there; this one, if there is one, begins with what comes next."""
        if state is None:
            return
        if self.application is None or state.name != self.name:
            raise ApplicationChanged(state.name, self.name)
        self.derived, self.dropped = state.derived, state.dropped
        self.requests, self.failed = state.requests, state.failed
        self.application.set_state(state.state)

    def facts(self) -> dict[str, str]:
        """Which application it is, and a digest of its state: replicas that have executed as much have equal ones."""
        if self.application is None:
            return {}
        digest = sha256(self.application.get_state()).hexdigest()[:DIGEST_CHARACTERS]
        return {"application": self.name, "application_digest": digest}

    def measure(self) -> dict[str, int]:
        if self.application is None:
            return {}
        return {
            "application_requests_total": self.requests,
            "application_failures_total": self.failed,
            "application_events_total": self.derived,
            "application_events_dropped_total": self.dropped,
        }


def _text_of(error: Exception) -> str:
    """The error in words that can be written down, whatever it does."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # a text that can't be made is no reason to stop a replica
        text = type(error).__name__
    return text[:PROBLEM_CHARACTERS].encode(errors="replace").decode()
