"""What a log's folder holds, for people: read only, without the lock, also while a broker writes to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from holdfast.errors import NotALog
from holdfast.storage.files import Files
from holdfast.storage.format import IMPLEMENTATION, VERSION
from holdfast.storage.index import StreamIndex
from holdfast.storage.recovery import PLAN, Examination, examine, sequences
from holdfast.storage.scan import Damage

LOOKS: Final = 10


@dataclass(frozen=True, slots=True)
class StreamReport:
    name: str
    first: int
    next: int
    records: int  # on the disk: those that were truncated may still be there
    bytes: int
    oldest: int | None  # times of the first and the last entry of the index
    newest: int | None


@dataclass(frozen=True, slots=True)
class SegmentReport:
    file: str
    bytes: int
    used: int


@dataclass(frozen=True, slots=True)
class LogReport:
    folder: str
    log_id: str
    version: int
    checksum: str  # which implementation computes it
    verdict: str  # clean, torn or corrupt: what an opening would find
    torn: tuple[int, int] | None
    damages: list[Damage]
    repairs: list[str]
    segments: list[SegmentReport]
    streams: list[StreamReport]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def inspect(files: Files, folder: str, every: bool) -> LogReport:
    """Looks at the folder. `every`: reads all segments through, not only the newest."""
    found = _look(files, folder, every)
    header = next((s.header for s in reversed(found.segments) if s.header is not None), None)
    newest = found.segments[-1].scan
    torn = newest.torn if newest is not None else None
    return LogReport(
        folder=folder,
        log_id=header.log_id.hex() if header is not None else "",
        version=VERSION,
        checksum=IMPLEMENTATION,
        verdict="corrupt" if found.damages else "torn" if torn else "clean",
        torn=torn,
        damages=found.damages,
        repairs=[repair.decode() for repair in found.repairs],
        segments=_segments(found),
        streams=_streams(found),
    )


def _look(files: Files, folder: str, every: bool) -> Examination:
    """What is written while it is read may look damaged: damage counts if it is there at a second look."""
    found: Examination | None = None
    seen: list[Damage] = []
    for _ in range(LOOKS):
        names = files.names(folder)
        if not sequences(names):
            raise NotALog(folder, "there is no log in this folder")
        try:
            found = examine(files, folder, every, step=64 * 1024)
        except FileNotFoundError:
            continue  # The broker has just removed a segment.
        if PLAN in names:
            found.damages.append(Damage(PLAN, 0, 0, "a repair was interrupted; begin it again"))
        lasting = [damage for damage in found.damages if damage in seen]
        if lasting or not found.damages:
            found.damages = lasting
            return found
        seen, found.damages = found.damages, lasting
    if found is None:
        raise NotALog(folder, "the log changes faster than it can be looked at")
    return found


def _segments(found: Examination) -> list[SegmentReport]:
    reports = []
    for place, segment in enumerate(found.segments):
        after = found.segments[place + 1].header if place + 1 < len(found.segments) else None
        used = after.previous_end if after is not None else segment.scan.end if segment.scan is not None else 0
        reports.append(SegmentReport(segment.path, segment.size, used))
    return reports


def _streams(found: Examination) -> list[StreamReport]:
    indexes: list[dict[int, StreamIndex]] = [
        s.header.previous_index for s in found.segments[1:] if s.header is not None
    ]
    newest = found.segments[-1].scan
    if newest is not None:
        indexes.append(newest.index)
    reports = []
    for id, state in sorted(found.streams.items()):
        mine = [index[id] for index in indexes if id in index]
        times = [time for index in mine for time in index.times]
        reports.append(
            StreamReport(
                state.name,
                state.first,
                state.next,
                sum(index.records for index in mine),
                sum(index.bytes for index in mine),
                min(times, default=None),
                max(times, default=None),
            )
        )
    return reports
