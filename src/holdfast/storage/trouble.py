"""What an operating system's error means for a log's folder, and what to do about it, in a sentence."""

from __future__ import annotations

import errno
import os
import pwd
from typing import Final

FULL: Final = (errno.ENOSPC, errno.EDQUOT)  # smaller files may still fit
_ELSEWHERE: Final = "name another folder as data in the site file"
_ROOM: Final = "keep less ([retention] in the site file); what was acknowledged is safe"


def explained(folder: str, error: Exception) -> str:
    """The sentence, without the folder's name and without a full stop."""
    if not isinstance(error, OSError):
        return f"{type(error).__name__}: {error}"
    place = error.filename or folder
    match error.errno:
        case errno.ENOSPC:
            return f"the disk is full: make room on it (df -h {folder}), or {_ROOM} ({error})"
        case errno.EDQUOT:
            return f"the quota of this user is used up: raise it, or {_ROOM} ({error})"
        case errno.EFBIG:
            return f"a file is larger than this process may write: raise the limit (ulimit -f) ({error})"
        case errno.EACCES | errno.EPERM:
            return f"permission denied at {place}: let {_user()} read and write there, or {_ELSEWHERE}"
        case errno.EROFS:
            return f"the file system is read-only: mount it for writing, or {_ELSEWHERE} ({error})"
        case errno.ENOTDIR:
            return f"{place} is no folder: name another one as data in the site file"
        case errno.EIO:
            return f"the disk failed: look into the system's log (dmesg) before it is used again ({error})"
        case _:
            return f"{type(error).__name__}: {error}"


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # as in containers
        return f"the user {os.geteuid()}"
