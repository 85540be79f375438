"""What a log writes beside its segments when it is closed: how far it goes.

A closing mark stands at the log's end, and is lost with it. This file tells that a log which was closed properly has
lost its end since, mark and all. It is never removed: a log that has gone on is longer than it says, and that is fine.
"""

from __future__ import annotations

import os
import re
from typing import Final

from holdfast.storage.files import Files, write_whole
from holdfast.storage.format import extend

CLOSED: Final = "closed"
_TEXT: Final = re.compile(rb"holdfast log closed behind group (\d{20}), checksum ([0-9a-f]{8})\n")


def _text(group: int, log_id: bytes) -> bytes:
    # The same length always, so that it is written in place; with a checksum, since a crash may leave a half of it.
    number = b"%020d" % group
    return b"holdfast log closed behind group %s, checksum %08x\n" % (number, extend(0, log_id + number))


def write_closing(files: Files, folder: str, group: int, log_id: bytes) -> None:
    """The log ends behind this group, on the disk."""
    file = files.open(os.path.join(folder, CLOSED), write=True, create=True)
    try:
        write_whole(files, file, _text(group, log_id), 0)
        files.sync(file)
    finally:
        files.close(file)
    files.sync_folder(folder)


def read_closing(files: Files, folder: str, log_id: bytes) -> int:
    """The group behind which the log was last closed; 0 if that is not known."""
    try:
        file = files.open(os.path.join(folder, CLOSED))
    except FileNotFoundError:
        return 0
    try:
        text = files.read(file, len(_text(0, log_id)), 0)
    finally:
        files.close(file)
    found = _TEXT.fullmatch(text)
    group = int(found[1]) if found else 0
    return group if text == _text(group, log_id) else 0
