"""The program beside a broker: takes errands from its node, runs them, several at a time, and says what came of them.

An errand that goes wrong, in whatever way, is answered with why; the program goes on. It ends when its broker does:
what it has started goes on without it, and is found again by the next program of this machine.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Final, assert_never

from holdfast.broker.site import BrokerEntry, Site
from holdfast.errors import HoldfastError
from holdfast.runtime.beside import Ask, Companion
from holdfast.schemes.tree.settings import routing_of
from holdfast.schemes.tree.standin.cycle.errands import (
    EndErrand,
    Errand,
    Failed,
    Given,
    Lend,
    Outcome,
    Propose,
    Provide,
    Provided,
    Release,
    Released,
    TakeBack,
    TakeErrand,
)
from holdfast.schemes.tree.standin.tables import StandInTables
from holdfast.standby.borrowing import Borrowing
from holdfast.standby.directory import Directory, GroupDirectory
from holdfast.standby.lending import Lender
from holdfast.standby.provisioner import Provisioner, Provisioners
from holdfast.standby.started import Started

AT_ONCE_MAX: Final = 8
AGAIN_AFTER_S: Final = 1.0  # when the node could not be asked

log = logging.getLogger("holdfast")


def program(where: str, log_level: str) -> Companion:
    """What runs beside each broker that is served from a site file; `where` that is, or empty."""

    async def run(site: Site, entry: BrokerEntry, ask: Ask) -> None:
        await beside(site, entry, where, log_level).run(ask)

    return run


def beside(site: Site, entry: BrokerEntry, where: str, log_level: str) -> Beside:
    """What the tables of the site file make of it."""
    tables = site.beside if isinstance(site.beside, StandInTables) else StandInTables()
    path = os.path.abspath(where) if where not in ("", "-") else where
    kinds: list[Provisioner] = []
    if tables.processes is not None and tables.processes.start:
        kinds.append(Started(site, path, tables.processes.logs, log_level))
    if tables.borrow is not None:
        kinds.append(Borrowing(site, path, tables.borrow.lenders))
    lender = None if tables.lend is None else Lender(site, tables.lend, log_level)
    directory = None
    if tables.directory is not None:
        directory = GroupDirectory(network_name(site, entry), tables.directory.brokers)
    return Beside(entry.id, Provisioners(kinds), lender, directory)


class Beside:
    """Beside one broker, with what there is to ask and to do for it."""

    def __init__(
        self,
        broker: str,
        provisioner: Provisioner,
        lender: Lender | None = None,
        directory: GroupDirectory | None = None,
    ) -> None:
        self._broker = broker
        self._provisioner = provisioner
        self._lender = lender
        self._group = directory
        self._directory: Directory | None = directory
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, ask: Ask) -> None:
        """For ever."""
        watching = None if self._lender is None else asyncio.ensure_future(self._watch(self._lender))
        try:
            while True:
                if len(self._running) >= AT_ONCE_MAX:
                    await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                given = await ask(TakeErrand())
                if isinstance(given, Given):
                    task = asyncio.ensure_future(self._see_to(given, ask))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
                else:
                    log.error("%s: gave no errand to the program beside it, but %r", self._broker, given)
                    await asyncio.sleep(AGAIN_AFTER_S)
        finally:
            left = [*self._running, *([] if watching is None else [watching])]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            if self._group is not None:
                await self._group.close()

    async def _watch(self, lender: Lender) -> None:
        """What is lent is taken back in time, also after a mistake."""
        while True:
            try:
                await lender.watch()
            except Exception:
                log.exception(
                    "%s: the program beside it failed to look after what is lent, and begins anew", self._broker
                )
                await asyncio.sleep(AGAIN_AFTER_S)

    async def _see_to(self, given: Given, ask: Ask) -> None:
        try:
            outcome = await self._outcome(given.errand)
        except (HoldfastError, OSError) as error:
            outcome = Failed(f"{_named(given.errand)}: {error}")
        except Exception as error:
            log.exception("%s: the program beside it failed: %s", self._broker, given.errand)
            outcome = Failed(f"{_named(given.errand)}: a mistake of the program: {type(error).__name__}: {error}")
        if isinstance(outcome, Failed):
            log.warning("%s: %s: %s", self._broker, _named(given.errand), outcome.problem)
        elif isinstance(outcome, Provided):
            log.info("%s: %s: %s, %s", self._broker, _named(given.errand), outcome.member.name, outcome.note)
        await ask(EndErrand(given.number, outcome))

    async def _outcome(self, errand: Errand) -> Outcome:
        match errand:
            case Provide(faulty=faulty, taken=taken):
                return await self._provisioner.provide(faulty, taken)
            case Release(name=name):
                return await self._provisioner.release(name) or Released()
            case Propose(before=before, after=after):
                if self._directory is None:
                    return Failed("the site file has no [standin.directory]")
                return await self._directory.propose(before, after)
            case Lend():
                return Failed(_NO_LENDER) if self._lender is None else await self._lender.lend(errand)
            case TakeBack():
                return Failed(_NO_LENDER) if self._lender is None else await self._lender.take_back(errand)
            case _:
                assert_never(errand)


_NO_LENDER: Final = "this site lends no brokers: its site file has no [standin.lend]"


def network_name(site: Site, entry: BrokerEntry) -> str:
    """Of a network in the directory: its site's name, and what brokers with other settings would have another of."""
    routing = routing_of(site.told(entry))
    return site.name if routing is None else f"{site.name}/{routing.network_id}"


def _named(errand: Errand) -> str:
    match errand:
        case Provide(faulty=faulty):
            return f"a stand-in for {faulty}"
        case Release(name=name) | TakeBack(name=name):
            return f"giving {name} back"
        case Propose(after=after):
            return f"map {after.number} for the directory"
        case Lend(borrower=borrower):
            return f"lending to {borrower}"
        case _:
            assert_never(errand)
