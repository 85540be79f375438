"""Every exception that Holdfast raises on purpose.

    HoldfastError
    ├── FilterError         text that is no filter, or a filter beyond a limit     (a ValueError)
    ├── EventError          attributes that no event can carry                     (a ValueError)
    ├── NotAdvertised       an event other than its publisher said it would publish  (a ValueError)
    ├── SiteError           a site file that describes no site                     (a ValueError)
    ├── TopologyError       a graph that can't be made as asked                    (a ValueError)
    ├── PredictionError     numbers that no network can have, or a question without an answer  (a ValueError)
    ├── ScenarioError       a simulation that can't be run as written              (a ValueError)
    ├── ZapError            a log of set-top boxes that can't be made as asked     (a ValueError)
    ├── IndexIdError
    │   ├── DuplicateId     an id that the index holds already                     (a ValueError)
    │   └── UnknownId       an id that the index does not hold                     (a KeyError)
    ├── TraceError          lines that are no trace, or a question that it can't answer  (a ValueError)
    │   ├── SampledTrace    a trace that leaves rows out, given to a checker
    │   ├── CutOffTrace     a trace that ends in the middle of a line
    │   ├── UnknownEvent    an event that the trace does not tell of
    │   └── UnknownChecker  a name that no checker has
    ├── BusError
    │   ├── BusClosed           the bus is not open, or not any more
    │   ├── NotConnected        no broker answers, and it was not to be waited for
    │   ├── OutcomeUnknown      an event that may or may not have been accepted
    │   ├── Superseded          another client has taken the name, or an operator the named subscription away
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
    ├── SparkError
    │   ├── NoJava              there is no Java that Spark could run on
    │   ├── OptionError         an option of the connector that is missing or can't be used   (a ValueError)
    │   ├── PackError           an archive for executors that can't be made
    │   └── PipelineError       a pipeline that can't be run as asked                         (a ValueError)
    ├── ReplicaFailed       a replica that stopped by itself
    ├── ListenFailed        an address that can't be listened on
    ├── UrlError            text that names no broker                              (a ValueError)
    └── ProtocolError       a peer said what the protocol does not allow
        └── HandshakeRefused    a peer that is not wanted, and why

A caller's mistake gets a precise exception with its fields; nothing here is raised for a bug of our own.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

_Error = TypeVar("_Error", bound=BaseException)

CARET_CONTEXT_CHARACTERS = 60


class HoldfastError(Exception):
    """The root: catch this to catch everything that Holdfast raises on purpose."""


class FilterError(HoldfastError, ValueError):
    """A text that is no filter. Says what is wrong, where, and what was expected instead."""

    def __init__(self, problem: str, text: str, offset: int, expected: str = "") -> None:
        super().__init__(problem, text, offset, expected)
        self.problem = problem
        self.text = text
        self.offset = offset
        self.expected = expected
        self.line = text.count("\n", 0, offset) + 1
        self.column = offset - (text.rfind("\n", 0, offset) + 1) + 1

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
        before = ("…" if left > start else "") + _printable(self.text[left : self.offset])
        after = _printable(self.text[self.offset : right]) + ("…" if right < end else "")
        return before + after, len(before)


class EventError(HoldfastError, ValueError):
    """Attributes that no event can carry. `attribute` names the offender, `row` its place in a batch.

    `limit` is the name of the limit that was passed, if it was one, and `allowed` its value.
    """

    def __init__(
        self, problem: str, attribute: str = "", row: int | None = None, limit: str = "", allowed: int = 0
    ) -> None:
        super().__init__(problem, attribute, row, limit, allowed)
        self.problem = problem
        self.attribute = attribute
        self.row = row
        self.limit = limit
        self.allowed = allowed

    def __str__(self) -> str:
        return self.problem if self.row is None else f"{self.problem} (event {self.row} of the batch)"


class NotAdvertised(HoldfastError, ValueError):  # noqa: N818
    """The publisher has advertised what it publishes, and the event is something else."""


class SiteError(HoldfastError, ValueError):
    """A site file that describes no site. Says what is wrong and on which line (0 if it is about no line)."""

    def __init__(self, problem: str, where: str, line: int = 0) -> None:
        super().__init__(problem, where, line)
        self.problem = problem
        self.where = where
        self.line = line

    def __str__(self) -> str:
        return f"{self.where}:{self.line}: {self.problem}" if self.line else f"{self.where}: {self.problem}"


class TopologyError(HoldfastError, ValueError):
    """A graph that can't be made as asked. `parameter` names what is to be changed, where it is a single one."""

    def __init__(self, problem: str, parameter: str = "") -> None:
        super().__init__(problem, parameter)
        self.problem = problem
        self.parameter = parameter

    def __str__(self) -> str:
        return self.problem


class PredictionError(HoldfastError, ValueError):
    """Numbers that no network can have, or a question that has no answer."""


class ScenarioError(HoldfastError, ValueError):
    """A simulation that can't be run as written. Says what is wrong, where, and what to do about it."""

    def __init__(self, problem: str, where: str, remedy: str) -> None:
        super().__init__(problem, where, remedy)
        self.problem = problem
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}; {self.remedy}"


class ZapError(HoldfastError, ValueError):
    """A synthetic log of set-top boxes that can't be made as asked, or a question about viewers without an answer."""


class IndexIdError(HoldfastError):
    """An id that does not fit what the index holds."""

    def __init__(self, problem: str, id: Hashable) -> None:
        super().__init__(problem, id)
        self.problem = problem
        self.id = id

    def __str__(self) -> str:
        return self.problem


class DuplicateId(IndexIdError, ValueError):  # noqa: N818 - a noun that says what was met
    """The index holds a filter under this id already; remove it first."""


class UnknownId(IndexIdError, KeyError):  # noqa: N818
    """The index holds no filter under this id."""


class TraceError(HoldfastError, ValueError):
    """A trace that can't be read or used. `line` is the number of the line at fault, from 1, where there is one."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem, line)
        self.problem = problem
        self.line = line

    def __str__(self) -> str:
        return self.problem if self.line is None else f"line {self.line}: {self.problem}"


class SampledTrace(TraceError):  # noqa: N818
    """The trace leaves rows out, so that a checker would take what was left out for what did not happen."""


class CutOffTrace(TraceError):  # noqa: N818
    """The trace ends in the middle of a line: whoever wrote it was stopped, or is still writing."""


class UnknownEvent(TraceError):  # noqa: N818
    """The trace does not tell of this event. `close` are ids in it that look alike."""

    def __init__(self, event: str, close: Sequence[str] = ()) -> None:
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        super().__init__(f"the trace has no event {event!r}{hint}")
        self.event = event
        self.close = tuple(close)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.event, self.close)


class UnknownChecker(TraceError):  # noqa: N818
    """No checker has this name, or it was named without the argument that it needs, or with one that it does not."""

    def __init__(self, checker: str, problem: str) -> None:
        super().__init__(problem)
        self.checker = checker

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.checker, self.problem)


class LogError(HoldfastError):
    """Something about a log on a disk."""


class LogCorrupt(LogError):  # noqa: N818
    """A log with damage in what was acknowledged: nothing is read past it, and nothing is added until it is repaired.

    `start` and `end` are the damaged bytes of the file. `streams` holds, as far as they are known, the numbers that
    may be lost, by stream: (first, one past the last or None).
    """

    def __init__(
        self,
        problem: str,
        file: str,
        start: int = 0,
        end: int = 0,
        streams: Mapping[str, tuple[int, int | None]] | None = None,
    ) -> None:
        super().__init__(problem, file, start, end, streams)
        self.problem = problem
        self.file = file
        self.start = start
        self.end = end
        self.streams = dict(streams or {})

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


class LogPoisoned(LogError):  # noqa: N818
    """A write or a sync failed. What the disk holds is unknown, so that nothing more is taken until a restart."""

    def __init__(self, folder: str, cause: str) -> None:
        super().__init__(folder, cause)
        self.folder = folder
        self.cause = cause

    def __str__(self) -> str:
        return f"{self.folder}: {self.cause}. The log takes no more until its process is started again"


class LogUnusable(LogError):  # noqa: N818
    """The operating system does not let the log be opened: permissions, a full disk. Says what to do about it."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(folder, problem)
        self.folder = folder
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.folder}: {self.problem}"


class LogLocked(LogError):  # noqa: N818
    """Another process has the log open."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return f"{self.folder}: another process has the log open"


class LogClosed(LogError):  # noqa: N818
    """The log was closed."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder

    def __str__(self) -> str:
        return f"{self.folder}: the log is closed"


class NotALog(LogError):  # noqa: N818
    """A folder that holds something, but no log; a new one is made only in an empty folder."""

    def __init__(self, folder: str, problem: str) -> None:
        super().__init__(folder, problem)
        self.folder = folder
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.folder}: {self.problem}"


class WrongLog(LogError):  # noqa: N818
    """A log of another broker, or of another kind, than the one that is to use it. `problem` says which it is."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.folder = ""  # where, once that is known

    def __str__(self) -> str:
        return f"{self.folder}: {self.problem}" if self.folder else self.problem


class NotAMember(WrongLog):
    """A replica whose group has gone on without it, by its own log. It may come back with an empty folder and a new id,
    when the group adds it."""

    def __init__(self, name: str, members: Sequence[str]) -> None:
        now = ", ".join(members)
        super().__init__(f"{name} is no member of the group, which is {now}: add it with an empty folder and a new id")
        self.name = name
        self.members = tuple(members)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.members), vars(self)


class LimitsChanged(WrongLog):
    """A replica's group was formed with other `[limits]`, which decide what comes of a request: they stay as they
    were."""

    def __init__(self, difference: str) -> None:
        super().__init__(f"the group was formed with other limits ({difference}): give it those again")
        self.difference = difference

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.difference,), vars(self)


class ApplicationChanged(WrongLog):
    """A broker hosted another application when it wrote its data. What is executed again must come out as it did."""

    def __init__(self, was: str, given: str) -> None:
        super().__init__(f"the data were written with the application {was!r}; the site file has {given or 'none'!r}")
        self.was = was
        self.given = given

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.was, self.given), vars(self)


class StateLost(LogError):  # noqa: N818
    """A repaired log in which a part of what its broker knew is missing: the broker can't go on from it. Its events
    can be taken along: `holdfast log export`."""

    def __init__(self, folder: str, stream: str, first: int, next: int) -> None:
        super().__init__(folder, stream, first, next)
        self.folder = folder
        self.stream = stream
        self.first = first
        self.next = next

    def __str__(self) -> str:
        return (
            f"{self.folder}: what the broker knew is lost in part (stream {self.stream!r}, {self.first} to"
            f" {self.next - 1}), and it can't go on from here. Take the events along with `holdfast log export"
            f" {self.folder}`, and start it with an empty folder"
        )


class LogFormatUnknown(LogError):  # noqa: N818
    """The log is in a format of another version than this program knows."""

    def __init__(self, file: str, version: int, known: int) -> None:
        super().__init__(file, version, known)
        self.file = file
        self.version = version
        self.known = known

    def __str__(self) -> str:
        return f"{self.file}: the format's version is {self.version}, and this program knows {self.known}"


class RecordsGone(LogError):  # noqa: N818
    """Records below `first` are not kept any more."""

    def __init__(self, stream: str, start: int, first: int) -> None:
        super().__init__(stream, start, first)
        self.stream = stream
        self.start = start
        self.first = first

    def __str__(self) -> str:
        return f"stream {self.stream!r} begins at {self.first}; what was before, and so {self.start}, is gone"


class RecordsLost(LogError):  # noqa: N818
    """A repair could not save the numbers from `first` to below `next`. Reading may go on at `next`."""

    def __init__(self, stream: str, first: int, next: int) -> None:
        super().__init__(stream, first, next)
        self.stream = stream
        self.first = first
        self.next = next

    def __str__(self) -> str:
        return f"stream {self.stream!r} lost the numbers {self.first} to {self.next - 1} to damage"


class RecordRefused(LogError, ValueError):  # noqa: N818
    """A record or a stream that the format has no room for."""


class UrlError(HoldfastError, ValueError):
    """A URL that names no broker."""

    def __init__(self, problem: str, url: str) -> None:
        super().__init__(problem, url)
        self.problem = problem
        self.url = url

    def __str__(self) -> str:
        return self.problem


class BusError(HoldfastError):
    """Something that a bus was asked for did not happen."""


class BusClosed(BusError):  # noqa: N818
    """The bus is not open, or not any more."""


class NotConnected(BusError):  # noqa: N818
    """No broker answers, and the caller did not want to wait for one.

    `reason` is what came of the last attempt; `refusal` the broker's own reason in a word, if it answered and refused
    (one of `holdfast.wire.handshake.Reason`, or of a session's refusals).
    """

    def __init__(self, problem: str, reason: str = "", refusal: str = "") -> None:
        super().__init__(problem, reason, refusal)
        self.problem = problem
        self.reason = reason
        self.refusal = refusal

    def __str__(self) -> str:
        return f"{self.problem}: {self.reason}" if self.reason else self.problem


class OutcomeUnknown(BusError):  # noqa: N818
    """Nobody knows whether the event was accepted. Publishing it again may double it."""


class Superseded(BusError):  # noqa: N818
    """Another client has this client's name now, or the named subscription; or that was forgotten for everyone."""


class LimitReached(BusError):  # noqa: N818
    """More than the broker allows. `limit` is the limit's name, `allowed` its value."""

    def __init__(self, problem: str, limit: str = "", allowed: int = 0) -> None:
        super().__init__(problem, limit, allowed)
        self.problem = problem
        self.limit = limit
        self.allowed = allowed

    def __str__(self) -> str:
        return self.problem


class NoLog(BusError):  # noqa: N818
    """The broker keeps no log of events: without `data` there are no positions and no named subscriptions."""


class PositionGone(BusError):  # noqa: N818
    """Events from this position on are not kept any more; the log begins at `tail`. Nothing was skipped in silence."""

    def __init__(self, problem: str, tail: int) -> None:
        super().__init__(problem, tail)
        self.problem = problem
        self.tail = tail

    def __str__(self) -> str:
        return self.problem


class PositionAhead(BusError):  # noqa: N818
    """The log has not reached this position."""


class NoApplication(BusError):  # noqa: N818
    """The broker hosts no application: there is nobody to ask."""


class ApplicationFailed(BusError):  # noqa: N818
    """The application raised something instead of answering; the request was executed all the same, and once."""


class StageLost(BusError):  # noqa: N818
    """Staged events that the broker does not know any more: they were not committed in time. Stage them again."""


class EpochCommitted(BusError):  # noqa: N818
    """The epoch is committed already, or the stage belongs to another one; nothing was staged."""


class SubscriptionEnded(BusError):  # noqa: N818
    """The broker ended the subscription, and says why."""

    def __init__(self, problem: str, filter: str) -> None:
        super().__init__(problem, filter)
        self.problem = problem
        self.filter = filter

    def __str__(self) -> str:
        return self.problem


class SparkError(HoldfastError):
    """Something about Spark."""


class NoJava(SparkError):  # noqa: N818
    """There is no Java that Spark could run on."""


class OptionError(SparkError, ValueError):
    """An option of the connector, or of a function that sets them, is missing or can't be used."""

    def __init__(self, problem: str, option: str = "") -> None:
        super().__init__(problem, option)
        self.problem = problem
        self.option = option

    def __str__(self) -> str:
        return self.problem


class PackError(SparkError):
    """An archive for executors can't be made from what is installed here."""


class PipelineError(SparkError, ValueError):
    """A pipeline can't be run as asked: its tables are missing, or of something else."""


class ReplicaFailed(HoldfastError):  # noqa: N818
    """A replica that this process runs stopped by itself, and says why."""


class ListenFailed(HoldfastError):  # noqa: N818
    """An address that can't be listened on. `owner` is who wants to, `problem` says why it can't be and what to do."""

    def __init__(self, owner: str, address: str, problem: str) -> None:
        super().__init__(owner, address, problem)
        self.owner = owner
        self.address = address
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.owner} can't listen on {self.address}: {self.problem}"


class ProtocolError(HoldfastError):
    """A peer broke the protocol. Its link is closed; nothing else is harmed."""


class HandshakeRefused(ProtocolError):  # noqa: N818
    """One side of a connection did not want the other. `reason` is one of `holdfast.wire.handshake.Reason`."""

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(reason, problem)
        self.reason = reason
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in text)


def renewed(error: _Error) -> _Error:
    """A new exception that says the same, for an error that is kept and raised more than once.

    An exception collects the traceback of every place that raises it; and those who catch it may change it. What was
    raised before is its cause.
    """
    try:
        again = copy.copy(error)
    except Exception:  # of another library, which made it so that it can't be copied
        return error
    again.__cause__ = error if error.__traceback__ is not None else error.__cause__
    return again
