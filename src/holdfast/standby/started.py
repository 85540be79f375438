"""Spares of the site file that do not run are started as processes of this machine (D0-A9, D0-A35), and ended when
they are not needed any more; also by another program than the one that started them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from pathlib import Path

from holdfast.broker.site import BrokerEntry, Site
from holdfast.protocols.routing.network_map import NetworkMember
from holdfast.schemes.tree.standin.cycle.errands import Failed, Provided, Released
from holdfast.standby import processes
from holdfast.standby.spare_folder import Lending, Reservation, SpareFolder


class Started:
    """`where` is the site file; `logs` a folder for logs, or empty."""

    def __init__(self, site: Site, where: str, logs: str, log_level: str) -> None:
        self._where = where
        self._logs = logs
        self._log_level = log_level
        self._spares = {entry.id: entry for entry in site.brokers if entry.spare and entry.data}

    async def provide(self, faulty: str, taken: Collection[str]) -> Provided | Failed:
        if self._where in ("", "-"):
            return Failed("no spare can be started: this broker was not given a site file by its name")
        problems = []
        for name, entry in self._spares.items():
            if name in taken:
                continue
            folder = SpareFolder(entry.data)
            try:
                async with folder.locked():
                    found = await self._start(entry, folder, faulty)
            except OSError as error:
                found = f"{name}: {error}"
            if isinstance(found, Provided):
                return found
            problems.append(found)
        return Failed(f"no spare can be started: {'; '.join(problems) or 'all of them are taken'}")

    async def _start(self, entry: BrokerEntry, folder: SpareFolder, faulty: str) -> Provided | str:
        if (lending := folder.lending()) is not None:
            return f"{entry.id} {lent_until(lending)}"
        reserved, running = folder.reservation(), folder.running()
        if running is not None:
            return await self._found(entry, folder, faulty, reserved)
        if problem := await processes.taken_address(entry.address, entry.peer_address):
            return f"{entry.id} was not started from here, and {problem}"
        folder.reserve(faulty)
        log = Path(self._logs) / f"{entry.id}.log" if self._logs else folder.log
        problem = await processes.start(
            folder, Path(self._where), entry.id, entry.advertised, log.absolute(), self._log_level
        )
        if problem:
            folder.forget()
            return problem
        return Provided(_member(entry), "started on this machine")

    async def _found(
        self, entry: BrokerEntry, folder: SpareFolder, faulty: str, reserved: Reservation | None
    ) -> Provided | str:
        """One that was started before: for the same broker, or it was not used."""
        if reserved is not None and reserved.faulty != faulty:
            return f"{entry.id} was just started for {reserved.faulty}"
        if not await processes.answers(entry.advertised, entry.id):
            return f"{entry.id} was started before, and does not answer at {entry.advertised} (log: {folder.log})"
        folder.reserve(faulty)
        return Provided(_member(entry), "started on this machine before")

    async def release(self, name: str) -> Released | Failed | None:
        if name not in self._spares:
            return None
        folder = SpareFolder(self._spares[name].data)
        if not folder.process_file.exists():
            return None
        try:
            async with folder.locked():
                if folder.lending() is not None:
                    return Released()  # by now it is somebody else's
                if (running := folder.running()) is not None:
                    await asyncio.shield(asyncio.ensure_future(processes.end(running)))
                folder.forget()
        except OSError as error:
            return Failed(f"{name} was not ended: {error}")
        return Released()


def lent_until(lending: Lending) -> str:
    until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(lending.until))
    return f"is lent to {lending.borrower} until {until}"


def _member(entry: BrokerEntry) -> NetworkMember:
    return NetworkMember(entry.id, entry.advertised, entry.peer_advertised)
