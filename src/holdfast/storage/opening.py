"""Opens a log's folder for writing: takes the lock, looks, cuts a torn tail, makes sure that what is there stays."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from holdfast.errors import LogCorrupt, LogLocked, NotALog
from holdfast.storage.closing import CLOSED
from holdfast.storage.files import Files, write_whole, write_zeros
from holdfast.storage.format import END, SEAL, encode_block, salt_of
from holdfast.storage.group import Stream
from holdfast.storage.header import Header
from holdfast.storage.preparation import Preparation
from holdfast.storage.recovery import (
    IDENTITY,
    PLAN,
    PREPARED,
    Cut,
    Examination,
    Opening,
    examine,
    identity_text,
    read_identity,
    segment_name,
    sequences,
)
from holdfast.storage.segment import Segment
from holdfast.storage.settings import LogSettings


@dataclass(slots=True)
class Opened:
    """What a log starts from."""

    opening: Opening
    log_id: bytes
    identity: int  # the locked file
    file: int  # the newest segment, for writing
    segments: list[Segment]
    streams: dict[str, Stream]
    chain: int
    group: int
    time: int
    marked: bool


def open_folder(files: Files, folder: str, settings: LogSettings) -> Opened:
    """Raises `LogLocked`, `NotALog`, `LogFormatUnknown` or `LogCorrupt`; the folder is then as it was."""
    files.make_folder(folder)
    names = files.names(folder)
    strangers = [name for name in names if name not in {IDENTITY, PREPARED, CLOSED}]
    if not sequences(names) and strangers:
        raise NotALog(folder, f"the folder holds {strangers[0]!r}, but no log; a new log needs an empty folder")
    identity = files.open(os.path.join(folder, IDENTITY), write=True, create=True)
    try:
        if not files.lock(identity):
            raise LogLocked(folder)
        return _open_locked(files, folder, settings, identity)
    except BaseException:
        files.close(identity)
        raise


def _open_locked(files: Files, folder: str, settings: LogSettings, identity: int) -> Opened:
    known = read_identity(files, identity)
    names = files.names(folder)
    created = not sequences(names)
    with_log = os.path.join(folder, IDENTITY)
    if PLAN in names:
        raise LogCorrupt("a repair was interrupted; begin it again", os.path.join(folder, PLAN))
    if created:
        if known is not None:
            raise LogCorrupt("the log has lost all of its segments", with_log)
        _create(files, folder, settings)
    found = examine(files, folder, settings.verify == "all", settings.index_bytes)
    for damage in found.damages:
        raise LogCorrupt(damage.problem, damage.file, damage.start, damage.end, damage.streams)
    log_id = found.newest.header.log_id
    if known is not None and known != log_id:
        raise LogCorrupt("the segments are those of another log", with_log)
    with suppress(FileNotFoundError):
        files.remove(os.path.join(folder, PREPARED))
    # A process that was killed may have left names and bytes that no sync has seen.
    files.sync_folder(folder)
    if known is None:
        # Only now that the segment's name is safe: a folder with an id and without segments has lost them.
        write_whole(files, identity, identity_text(log_id), 0)
    files.sync(identity)
    return _settle(files, found, identity, created)


def _create(files: Files, folder: str, settings: LogSettings) -> None:
    log_id = secrets.token_bytes(16)
    header = Header(log_id, 1, 0, 0, 0, 1, salt_of(log_id), 0)
    header.size = settings.next_segment_bytes(0, 2 * len(header.encode()))
    _, file = make_segment(files, folder, Preparation(files, folder, ahead=False), header, header.size)
    files.close(file)


def make_segment(files: Files, folder: str, preparation: Preparation, header: Header, least: int) -> tuple[str, int]:
    """A new segment, on the disk with its name and its header: its path, and the file open for writing. Its size is the
    header's, or less where the disk has not so much room; the header is changed to say so."""
    prepared, header.size = preparation.take(header.size, least)
    path = os.path.join(folder, segment_name(header.segment))
    file = files.open(prepared, write=True)
    try:
        write_whole(files, file, header.encode(), 0)
        files.sync(file)
        files.rename(prepared, path)
        files.sync_folder(folder)
    except BaseException:
        files.close(file)
        raise
    return path, file


def _settle(files: Files, found: Examination, identity: int, created: bool) -> Opened:
    """Makes the disk agree with what was found, and hands over."""
    newest = found.newest
    header = newest.header
    salt = salt_of(header.log_id)
    file = files.open(newest.file, write=True)
    try:
        cut = None
        if newest.torn is not None:
            # Before anything else is written: remains of the torn group must never be taken for part of a later one.
            start, end = newest.torn
            write_zeros(files, file, start, end)
            cut = Cut(newest.file, start, end)
        if newest.end > newest.group_start:
            # The last group may be in the page cache alone, even after a sync that failed: a page that is written anew
            # is dirty anew, and the next sync is about it.
            data = files.read(file, newest.end - newest.group_start, newest.group_start)
            write_whole(files, file, data, newest.group_start)
        files.sync(file)
        if found.seal_unsafe:
            _seal(files, found.segments[-2].path, header, salt)
    except BaseException:
        files.close(file)
        raise
    segments = [Segment(files, s.path, s.header, {}, 0) for s in found.segments if s.header is not None]
    for segment, following in pairwise(segments):
        segment.index = following.header.previous_index
        segment.end = following.header.previous_end
    segments[-1].index = newest.index
    segments[-1].end = newest.end
    streams = {s.name: Stream(s.id, s.name, s.next, s.first) for s in found.streams.values()}
    repairs = tuple(repair.decode() for repair in found.repairs)
    opening = Opening(header.log_id.hex(), created, len(segments), cut, repairs)
    return Opened(
        opening,
        header.log_id,
        identity,
        file,
        segments,
        streams,
        newest.chain,
        newest.group,
        newest.time,
        newest.marked,
    )


def _seal(files: Files, path: str, after: Header, salt: int) -> None:
    """Finishes what a crash interrupted: the next segment is there, and this one is not sealed yet."""
    seal, _ = encode_block(
        after.previous_chain, salt, after.previous_end, after.segment - 1, after.previous_group + 1, after.time, 0, 0,
        END | SEAL, [],
    )  # fmt: skip
    file = files.open(path, write=True)
    try:
        write_whole(files, file, seal, after.previous_end)
        files.sync(file)
    finally:
        files.close(file)
