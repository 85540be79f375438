"""What is kept beside the data of a spare: which process runs it, for whom, and until when. It outlives programs, and
all programs of this machine find it there, one at a time.

A broker's own folder holds its log and nothing else, so that this is a folder of its own: `DATA.beside`.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from holdfast.standby.launch import identity_of, sync_folder, write_durably

LOCK_WITHIN_S: Final = 60.0
_LOOK_EVERY_S: Final = 0.05
RESERVED_S: Final = 60.0  # a spare that was started for a broker is not given for another one for so long


Kept = TypeVar("Kept")


class Running(msgspec.Struct, frozen=True):
    """As `launch` writes it."""

    pid: int
    identity: str

    @property
    def is_alive(self) -> bool:
        return bool(self.identity) and identity_of(self.pid) == self.identity


class Reservation(msgspec.Struct, frozen=True):
    """For which broker a spare was started; times are in seconds since 1970."""

    faulty: str
    until: float


class Lending(msgspec.Struct, frozen=True):
    """To whom a spare is lent: under which name, for which request, until when, and where the borrower's brokers are
    found. `member` is what the borrower was told."""

    borrower: str
    ticket: str
    name: str
    address: str
    peer_address: str
    until: float
    borrowers: tuple[str, ...] = ()
    told_at: float = 0.0  # when they were last told that its time is over


class SpareFolder:
    """Of one spare."""

    def __init__(self, data: str) -> None:
        self.path = Path(f"{data}.beside")
        self.lent = self.path / "lent"  # all that a broker writes that is lent
        self.log = self.path / "log.txt"
        self.process_file = self.path / "process.json"
        self._reservation_file = self.path / "reserved.json"
        self._lending_file = self.path / "lending.json"

    @asynccontextmanager
    async def locked(self, name: str = "lock", within_s: float = LOCK_WITHIN_S) -> AsyncIterator[None]:
        """For whoever changes something; TimeoutError if another one does so for too long."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            deadline = time.monotonic() + within_s
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"another program has had {self.path} for {within_s:g} s") from None
                await asyncio.sleep(_LOOK_EVERY_S)
            yield
        finally:
            os.close(file)

    # ----------------------------------------------------------------------------------------------------- what is so
    def running(self) -> Running | None:
        """The process that was started, if it is there still."""
        found = self._read(self.process_file, Running)
        return found if found is not None and found.is_alive else None

    def reservation(self) -> Reservation | None:
        found = self._read(self._reservation_file, Reservation)
        return found if found is not None and found.until > time.time() else None

    def lending(self) -> Lending | None:
        return self._read(self._lending_file, Lending)

    def _read(self, path: Path, kind: type[Kept]) -> Kept | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise OSError(f"{path} can't be read ({error}): end what runs of this spare, and delete it") from error

    # -------------------------------------------------------------------------------------------------- what changes
    def reserve(self, faulty: str) -> None:
        self._write(self._reservation_file, Reservation(faulty, time.time() + RESERVED_S))

    def lend(self, lending: Lending) -> None:
        """It is known before anything of it is there."""
        self._write(self._lending_file, lending)

    def forget(self) -> None:
        """It is free; what a broker left that was lent is deleted first."""
        if self.lent.exists():
            shutil.rmtree(self.lent)
        for path in (self._reservation_file, self._lending_file, self.process_file):
            with suppress(FileNotFoundError):
                path.unlink()
        sync_folder(str(self.path))

    @staticmethod
    def _write(path: Path, value: msgspec.Struct) -> None:
        write_durably(str(path), msgspec.json.encode(value))
