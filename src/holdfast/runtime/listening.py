"""Why an address can't be listened on, and what to do about it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import ListenFailed


@contextmanager
def listening(owner: str, address: str) -> Iterator[None]:
    """Around an attempt to listen: ListenFailed names who wanted to, and where."""
    try:
        yield
    except OSError as error:
        raise ListenFailed(owner, address, _explained(error)) from error


def _explained(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"the name is not known here ({error.strerror})"
    match error.errno:
        case errno.EADDRINUSE:
            return "another process listens there; stop it, or take another address"
        case errno.EADDRNOTAVAIL:
            return "this machine has no such address; listen on one that it has, or on 0.0.0.0 for all of them"
        case errno.EACCES:
            return "this user may not use the port; take one above 1023"
        case _:
            return str(error)
