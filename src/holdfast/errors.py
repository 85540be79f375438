"""Every exception that Holdfast raises on purpose.

    HoldfastError
    ├── FilterError         text that is no filter, or a filter beyond a limit     (a ValueError)
    ├── EventError          attributes that no event can carry                     (a ValueError)
    ├── NotAdvertised       an event other than its publisher said it would publish  (a ValueError)
    ├── SiteError           a site file that describes no site                     (a ValueError)
    ├── UnknownScheme       a kind of site that nobody has registered              (a ValueError)
    ├── TopologyError       a graph that can't be made as asked                    (a ValueError)
    ├── PredictionError     numbers that no network can have, or a question without an answer  (a ValueError)
    ├── ScenarioError       a simulation that can't be run as written              (a ValueError)
    ├── IndexIdError
    │   ├── DuplicateId     an id that the index holds already                     (a ValueError)
    │   └── UnknownId       an id that the index does not hold                     (a KeyError)
    ├── BusError
    │   ├── BusClosed           the bus is not open, or not any more
    │   ├── NotConnected        no broker answers, and it was not to be waited for
    │   ├── OutcomeUnknown      an event that may or may not have been accepted
    │   ├── Superseded          another client has taken the name, or an operator the named subscription away
    │   ├── SchemeChanged       a broker of another scheme than before answers
    │   ├── LimitReached        more than the broker allows
    │   ├── NoLog               the broker keeps no log of events
    │   ├── PositionGone        a position that the log does not hold any more, or of another log
    │   ├── PositionAhead       a position that the log has not reached
    │   ├── NoApplication       the broker hosts no application
    │   ├── ApplicationFailed   the application raised something, or gave what is no answer
    │   ├── StageLost           staged events that are not known any more
    │   ├── EpochCommitted      events staged for an epoch that is committed, or under an id of another
    │   └── SubscriptionEnded   a subscription that the broker ended
    ├── LogError
    │   ├── LogCorrupt          a log with damage in what was acknowledged
    │   ├── LogPoisoned         a log that takes no more in this process, since a write or a sync failed
    │   ├── LogUnusable         a log that the operating system does not let open
    │   ├── LogLocked           a log that another process has open
    │   ├── LogClosed           a log that was closed
    │   ├── NotALog             a folder that holds something, but no log
    │   ├── WrongLog            a log of another broker, or of another kind, than the one that is to use it
    │   │   ├── NotAMember          of a replica that its group has removed
    │   │   ├── LimitsChanged       of a replica whose group had other limits
    │   │   └── ApplicationChanged  of a broker that hosted another application
    │   ├── StateLost           a repaired log that lacks a part of what its broker knew
    │   ├── LogFormatUnknown    a log in a format of another version
    │   ├── RecordsGone         records that retention has removed
    │   ├── RecordsLost         records that a repair could not save
    │   └── RecordRefused       a record or a stream beyond a limit                (a ValueError)
    ├── ReplicaFailed       a replica that stopped by itself
    ├── ListenFailed        an address that can't be listened on
    ├── UrlError            text that names no broker                              (a ValueError)
    ├── ProtocolError       a peer said what the protocol does not allow
    │   └── HandshakeRefused    a peer that is not wanted, and why
    ├── TraceError          and what is under it: holdfast.trace.errors            (a ValueError)
    ├── SparkError          and what is under it: holdfast.spark.errors
    └── ZapError            holdfast.apps.zapviewers.errors

A caller's mistake gets a precise exception with its fields; nothing here is raised for a bug of our own.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform

_Error = TypeVar("_Error", bound=BaseException)

CARET_CONTEXT_CHARACTERS = 60


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class Fields:
    """Of an error: each is declared once, and is an argument, an attribute, in `args`, and maybe in what it `says`."""

    args: tuple[Any, ...]
    __match_args__: tuple[str, ...]
    _says = "{problem}"

    def __init_subclass__(cls, says: str = "") -> None:
        cls._says = says or cls._says
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        # An exception is copied and pickled by its `args`, which would lack what was given by name or left out.
        self.args = tuple(getattr(self, name) for name in self.__match_args__)

    def __str__(self) -> str:
        return self._says.format_map(vars(self))


class HoldfastError(Exception):
    """The root: catch this to catch everything that Holdfast raises on purpose."""


class FilterError(Fields, HoldfastError, ValueError):
    """A text that is no filter. Says what is wrong, where, and what was expected instead."""

    problem: str
    text: str
    offset: int
    expected: str = ""

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.offset) + 1

    @property
    def column(self) -> int:
        return self.offset - self.text.rfind("\n", 0, self.offset)

    def __str__(self) -> str:
        lines = [f"{self.problem} (line {self.line}, column {self.column})"]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.text:
            shown, caret = self._excerpt()
            lines += [f"  {shown}", f"  {' ' * caret}^"]
        return "\n".join(lines)

    def _excerpt(self) -> tuple[str, int]:
        """The neighbourhood of the mistake and the caret's place in it; a 1 MB text is not repeated."""
        start = self.offset - (self.column - 1)
        end = self.text.find("\n", self.offset)
        end = len(self.text) if end < 0 else end
        left = max(start, self.offset - CARET_CONTEXT_CHARACTERS)
        right = min(end, self.offset + CARET_CONTEXT_CHARACTERS)
        shown = "".join(c if c.isprintable() else "�" for c in self.text[left:right])
        before, after = "…" * (left > start), "…" * (right < end)
        return before + shown + after, len(before) + self.offset - left


class EventError(Fields, HoldfastError, ValueError):
    """Attributes that no event can carry. `attribute` names the offender, `row` its place in a batch.

    `limit` is the name of the limit that was passed, if it was one, and `allowed` its value.
    """

    problem: str
    attribute: str = ""
    row: int | None = None
    limit: str = ""
    allowed: int = 0

    def __str__(self) -> str:
        return self.problem if self.row is None else f"{self.problem} (event {self.row} of the batch)"


class NotAdvertised(HoldfastError, ValueError):
    """The publisher has advertised what it publishes, and the event is something else."""


class SiteError(Fields, HoldfastError, ValueError):
    """A site file that describes no site. Says what is wrong and on which line (0 if it is about no line)."""

    problem: str
    where: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.problem}" if self.line else f"{self.where}: {self.problem}"


class UnknownScheme(Fields, HoldfastError, ValueError, says="there is no scheme {kind!r}; there is {known}"):
    """A kind of site that nobody has registered. `known` are those that somebody has."""

    kind: str
    known: str


class TopologyError(Fields, HoldfastError, ValueError):
    """A graph that can't be made as asked. `parameter` names what is to be changed, where it is a single one."""

    problem: str
    parameter: str = ""


class PredictionError(HoldfastError, ValueError):
    """Numbers that no network can have, or a question that has no answer."""


class ScenarioError(Fields, HoldfastError, ValueError, says="{where}: {problem}; {remedy}"):
    """A simulation that can't be run as written. Says what is wrong, where, and what to do about it."""

    problem: str
    where: str
    remedy: str


class IndexIdError(Fields, HoldfastError):
    """An id that does not fit what the index holds."""

    problem: str
    id: Hashable


class DuplicateId(IndexIdError, ValueError):
    """The index holds a filter under this id already; remove it first."""


class UnknownId(IndexIdError, KeyError):
    """The index holds no filter under this id."""


class LogError(HoldfastError):
    """Something about a log on a disk."""


class LogCorrupt(Fields, LogError):
    """A log with damage in what was acknowledged: nothing is read past it, and nothing is added until it is repaired.

    `start` and `end` are the damaged bytes of the file. `streams` holds, as far as they are known, the numbers that
    may be lost, by stream: (first, one past the last or None).
    """

    problem: str
    file: str
    start: int = 0
    end: int = 0
    streams: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        where = f"{self.file}, bytes {self.start} to {self.end}" if self.end else self.file
        lines = [f"{where}: {self.problem}"]
        for name, (first, end) in self.streams.items():
            lines.append(f"  stream {name!r}: numbers from {first}" + (f" to {end - 1}" if end is not None else " on"))
        lines.append(
            "  'holdfast log verify FOLDER' lists all damage. Restore the folder from a copy or a peer, or let "
            "'holdfast log repair FOLDER' give up what is damaged."
        )
        return "\n".join(lines)


class LogPoisoned(Fields, LogError, says="{folder}: {cause}. The log takes no more until its process is started again"):
    """A write or a sync failed. What the disk holds is unknown, so that nothing more is taken until a restart."""

    folder: str
    cause: str


class LogUnusable(Fields, LogError, says="{folder}: {problem}"):
    """The operating system does not let the log be opened: permissions, a full disk. Says what to do about it."""

    folder: str
    problem: str


class LogLocked(Fields, LogError, says="{folder}: another process has the log open"):
    """Another process has the log open."""

    folder: str


class LogClosed(Fields, LogError, says="{folder}: the log is closed"):
    """The log was closed."""

    folder: str


class NotALog(Fields, LogError, says="{folder}: {problem}"):
    """A folder that holds something, but no log; a new one is made only in an empty folder."""

    folder: str
    problem: str


class WrongLog(Fields, LogError):
    """A log of another broker, or of another kind, than the one that is to use it. `problem` says which it is."""

    problem: str
    folder: str = ""  # where, once that is known

    def found_in(self, folder: str) -> None:
        self.folder = folder

    def __str__(self) -> str:
        return f"{self.folder}: {self.problem}" if self.folder else self.problem


class NotAMember(WrongLog):
    """A replica whose group has gone on without it, by its log: it may be added with an empty folder and a new id."""

    def __init__(self, name: str, members: Sequence[str]) -> None:
        others = f"{name} is no member of the group, which is {', '.join(members)}"
        super().__init__(f"{others}: add it with an empty folder and a new id")
        self.name, self.members = self.args = (name, tuple(members))


class LimitsChanged(WrongLog):
    """A replica's group was formed with other `[limits]`, which decide what comes of a request."""

    def __init__(self, difference: str) -> None:
        super().__init__(f"the group was formed with other limits ({difference}): give it those again")
        (self.difference,) = self.args = (difference,)


class ApplicationChanged(WrongLog):
    """A broker hosted another application when it wrote its data. What is executed again must come out as it did."""

    def __init__(self, was: str, given: str) -> None:
        super().__init__(f"the data were written with the application {was!r}; the site file has {given or 'none'!r}")
        self.was, self.given = self.args = (was, given)


class StateLost(Fields, LogError):
    """A repaired log that lacks a part of what its broker knew. The events may be had by `holdfast log export`."""

    folder: str
    stream: str
    first: int
    next: int

    def __str__(self) -> str:
        return (
            f"{self.folder}: what the broker knew is lost in part (stream {self.stream!r}, {self.first} to"
            f" {self.next - 1}), and it can't go on from here. Take the events along with `holdfast log export"
            f" {self.folder}`, and start it with an empty folder"
        )


class LogFormatUnknown(
    Fields, LogError, says="{file}: the format's version is {version}, and this program knows {known}"
):
    """The log is in a format of another version than this program knows."""

    file: str
    version: int
    known: int


class RecordsGone(
    Fields, LogError, says="stream {stream!r} begins at {first}; what was before, and so {start}, is gone"
):
    """Records below `first` are not kept any more."""

    stream: str
    start: int
    first: int


class RecordsLost(Fields, LogError):
    """A repair could not save the numbers from `first` to below `next`. Reading may go on at `next`."""

    stream: str
    first: int
    next: int

    def __str__(self) -> str:
        return f"stream {self.stream!r} lost the numbers {self.first} to {self.next - 1} to damage"


class RecordRefused(LogError, ValueError):
    """A record or a stream that the format has no room for."""


class UrlError(Fields, HoldfastError, ValueError):
    """A URL that names no broker."""

    problem: str
    url: str


class BusError(HoldfastError):
    """Something that a bus was asked for did not happen."""


class BusClosed(BusError):
    """The bus is not open, or not any more."""


class NotConnected(Fields, BusError):
    """No broker answers, and the caller did not want to wait for one.

    `reason` is what came of the last attempt; `refusal` the broker's own reason in a word, if it answered and refused
    (one of `holdfast.wire.handshake.Reason`, or of a session's refusals), or "scheme" if this program does not know the
    scheme that it named.
    """

    problem: str
    reason: str = ""
    refusal: str = ""

    def __str__(self) -> str:
        return f"{self.problem}: {self.reason}" if self.reason else self.problem


class OutcomeUnknown(BusError):
    """Nobody knows whether the event was accepted. Publishing it again may double it."""


class Superseded(BusError):
    """Another client has this client's name now, or the named subscription; or that was forgotten for everyone."""


class SchemeChanged(
    Fields, BusError, says="{address} is of the scheme {scheme!r}; this bus was connected to one of {expected!r}"
):
    """A broker answers that is of another scheme than the one that the bus was connected to: the bus is closed. What
    was not acknowledged may have been accepted before."""

    address: str
    scheme: str
    expected: str


class LimitReached(Fields, BusError):
    """More than the broker allows. `limit` is the limit's name, `allowed` its value."""

    problem: str
    limit: str = ""
    allowed: int = 0


class NoLog(BusError):
    """The broker keeps no log of events: without `data` there are no positions and no named subscriptions."""


class PositionGone(Fields, BusError):
    """Events from this position on are not kept any more; the log begins at `tail`. Nothing was skipped in silence."""

    problem: str
    tail: int


class PositionAhead(BusError):
    """The log has not reached this position."""


class NoApplication(BusError):
    """The broker hosts no application: there is nobody to ask."""


class ApplicationFailed(BusError):
    """The application raised something instead of answering; the request was executed all the same, and once."""


class StageLost(BusError):
    """Staged events that the broker does not know any more: they were not committed in time. Stage them again."""


class EpochCommitted(BusError):
    """The epoch is committed already, or the stage belongs to another one; nothing was staged."""


class SubscriptionEnded(Fields, BusError):
    """The broker ended the subscription, and says why."""

    problem: str
    filter: str


class ReplicaFailed(HoldfastError):
    """A replica that this process runs stopped by itself, and says why."""


class ListenFailed(Fields, HoldfastError, says="{owner} can't listen on {address}: {problem}"):
    """An address that can't be listened on. `owner` is who wants to, `problem` says why it can't be and what to do."""

    owner: str
    address: str
    problem: str


class ProtocolError(HoldfastError):
    """A peer broke the protocol. Its link is closed; nothing else is harmed."""


class HandshakeRefused(Fields, ProtocolError):
    """One side of a connection did not want the other. `reason` is one of `holdfast.wire.handshake.Reason`."""

    reason: str
    problem: str


def renewed(error: _Error) -> _Error:
    """A new exception that says the same, for an error that is kept and raised more than once: an exception collects
    the traceback of every place that raises it. What was raised before is its cause."""
    try:
        again = copy.copy(error)
    except Exception:  # of another library, which made it so that it can't be copied
        return error
    again.__cause__ = error if error.__traceback__ is not None else error.__cause__
    return again
