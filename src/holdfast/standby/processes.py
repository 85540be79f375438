"""Brokers as processes of this machine: started so that they outlive who starts them, and ended by anyone who finds
them in their spare's folder."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.operator import Unreachable
from holdfast.standby import launch
from holdfast.standby.launch import identity_of
from holdfast.standby.spare_folder import Running, SpareFolder
from holdfast.wire.addresses import split_address

START_WITHIN_S: Final = 20.0
ASK_WITHIN_S: Final = 2.0
FREE_WITHIN_S: Final = 1.0
END_WITHIN_S: Final = 10.0  # a broker that is told to stop writes what it has to; then it is killed
_LOOK_EVERY_S: Final = 0.05
_LOG_LINES: Final = 3  # that are shown of a broker that did not start
_LOG_BYTES: Final = 4_096


async def answers(address: str, name: str) -> bool:
    """Whether the broker of this name is found there."""
    async with BrokerDesk(address, ASK_WITHIN_S) as desk:
        found = await desk.inspect(0)
        return not isinstance(found, Unreachable) and found.broker == name


async def taken_address(*addresses: str) -> str:
    """Why a broker can't listen at one of these; empty if it can. Of a process that was killed, some threads may keep
    an address for a moment longer."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + FREE_WITHIN_S
    while (problem := _taken_now(addresses)) and clock() < deadline:
        await asyncio.sleep(_LOOK_EVERY_S)
    return problem


def _taken_now(addresses: Sequence[str]) -> str:
    for address in addresses:
        host, port = split_address(address)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as trying:
            trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the broker does
            try:
                trying.bind((host, port))
            except OSError as error:
                return f"it can't listen on {address}: {error.strerror}"
    return ""


async def start(folder: SpareFolder, site: Path, name: str, address: str, log: Path, log_level: str) -> str:
    """Starts `holdfast broker SITE --id NAME` and waits until it answers at its address; why it does not, or empty. A
    broker that does not is ended."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        folder.process_file.unlink()
    command = [sys.executable, "-m", "holdfast.cli", "broker", str(site), "--id", name, "--log-level", log_level]
    launching = [sys.executable, launch.__file__, str(folder.process_file), str(log), *command]
    launched = await asyncio.create_subprocess_exec(*launching, stdin=asyncio.subprocess.DEVNULL)
    await launched.wait()
    problem = await _until_it_answers(folder, name, address)
    if not problem:
        return ""
    running = folder.running()
    if running is not None:
        await end(running)
    said = _last_lines(log)
    return f"{name} {problem}" + (f"; it said: {said}" if said else "") + f" (log: {log})"


async def _until_it_answers(folder: SpareFolder, name: str, address: str) -> str:
    clock = asyncio.get_running_loop().time
    deadline = clock() + START_WITHIN_S
    while clock() < deadline:
        if folder.process_file.exists():
            if folder.running() is None:
                return "did not start"
            if await answers(address, name):
                return ""
        await asyncio.sleep(_LOOK_EVERY_S)
    return f"did not answer at {address} within {START_WITHIN_S:g} s, and was ended"


def _last_lines(log: Path) -> str:
    try:
        text = log.read_bytes()[-_LOG_BYTES:].decode("utf-8", "replace")
    except OSError:
        return ""
    return " / ".join(line.strip() for line in text.splitlines()[-_LOG_LINES:])


async def end(running: Running, within_s: float = END_WITHIN_S) -> None:
    """Ends a process, and returns when it is gone: by SIGTERM, or by SIGKILL if that takes too long."""
    clock = asyncio.get_running_loop().time
    for number, patience in ((signal.SIGTERM, within_s), (signal.SIGKILL, END_WITHIN_S)):
        _send(running, number)
        deadline = clock() + patience
        while running.is_alive and clock() < deadline:
            await asyncio.sleep(_LOOK_EVERY_S)
        if not running.is_alive:
            return


def _send(running: Running, number: signal.Signals) -> None:
    """To that process, and to none that has its number by now."""
    with suppress(ProcessLookupError):
        if not hasattr(os, "pidfd_open"):
            if running.is_alive:
                os.kill(running.pid, number)
            return
        process = os.pidfd_open(running.pid)
        try:
            if identity_of(running.pid) == running.identity:
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)
