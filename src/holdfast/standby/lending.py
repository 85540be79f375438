"""A site's spares that are lent to other sites (D0-A9, the paper's Fig. 1: two domains that share no broker).

Who has lent what to whom, and until when, is on the disk, beside the data of the spare, before a lent broker is
started; so that it is ended in time whatever happens to the one that lent it. Only what lies on this machine is lent.
A broker whose time is over comes back in two steps: its borrower is told, and may do without it in good order; after
the grace time it is ended all the same. The borrower sees a broker that failed, then, and gets another.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from holdfast.broker.site import BrokerEntry, Site
from holdfast.client.operator import BrokerDesk
from holdfast.errors import SiteError
from holdfast.protocols.operating.operator import Unreachable
from holdfast.protocols.routing.flaws import NAME_BYTES_MAX
from holdfast.protocols.routing.network_map import NetworkMember
from holdfast.schemes.tree.standin.cycle.errands import Failed, Lend, Lent, Released, TakeBack
from holdfast.schemes.tree.standin.tables import LendTable
from holdfast.standby import processes
from holdfast.standby.lent_site import Wish, check, lent_text, unpack
from holdfast.standby.spare_folder import Lending, SpareFolder
from holdfast.standby.started import lent_until

LOOK_EVERY_S: Final = 0.5
TELL_EVERY_S: Final = 5.0
TELL_WITHIN_S: Final = 2.0
TOLD_MAX: Final = 16  # brokers of a borrower that are told, until one has understood
CALL_BACK: Final = "relieve"  # what an operator asks of a network, so that another one takes a broker's place over

log = logging.getLogger("holdfast")

# Tells the borrower that it is to do without a broker; again and again, since those who have heard it may fail, too.
Tell = Callable[[Lending], Awaitable[None]]


class Lender:
    """Of one site, beside any of its brokers on the machine where the spares are."""

    def __init__(self, site: Site, table: LendTable, log_level: str, tell: Tell | None = None) -> None:
        self._site = site
        self._table = table
        self._log_level = log_level
        self._tell = tell or tell_borrower
        spares = {entry.id: entry for entry in site.brokers}
        self._spares = {name: spares[name] for name in table.brokers}

    def _folders(self) -> list[tuple[BrokerEntry, SpareFolder]]:
        return [(entry, SpareFolder(entry.data)) for entry in self._spares.values()]

    @property
    def _all(self) -> SpareFolder:
        """Whoever counts how many are lent has this folder's other lock."""
        return self._folders()[0][1]

    # ------------------------------------------------------------------------------------------------------- lending
    async def lend(self, asked: Lend) -> Lent | Failed:
        """Lets a spare become one of the borrower's network. Asked again with the same ticket, it gives the same."""
        if asked.borrower not in self._table.to:
            known = ", ".join(self._table.to)
            return Failed(f"{self._site.name} lends nothing to {asked.borrower!r}; its [standin.lend] has to = {known}")
        try:
            wish = unpack(asked.wish)
        except ValueError as error:
            return Failed(f"{self._site.name} does not understand what {asked.borrower} wishes: {error}")
        if wish.site.get("name") != asked.borrower:
            return Failed(f"the site that {asked.borrower!r} describes is called {wish.site.get('name')!r}")
        try:
            async with self._all.locked("lend.lock"):
                return await self._lend(asked, wish)
        except OSError as error:
            return Failed(f"{self._site.name} can't lend: {error}")

    async def _lend(self, asked: Lend, wish: Wish) -> Lent | Failed:
        lent = [lending for _, folder in self._folders() if (lending := _lent(folder)) is not None]
        for lending in lent:
            if (lending.borrower, lending.ticket) == (asked.borrower, asked.ticket):
                return _answer(lending)
        if len(lent) >= self._table.most:
            listed = "; ".join(f"{lending.name} {lent_until(lending)}" for lending in lent)
            return Failed(f"{self._site.name} lends {self._table.most} at most: {listed}")
        problems = []
        for entry, folder in self._folders():
            if (entry.id in asked.taken) or (name := f"{self._site.name}.{entry.id}") in wish.taken:
                problems.append(f"{entry.id} is not free")
                continue
            try:
                async with folder.locked(within_s=processes.END_WITHIN_S):
                    found = await self._lend_this(entry, folder, name, asked, wish)
            except OSError as error:
                found = f"{entry.id}: {error}"
            except SiteError as error:
                return Failed(f"{self._site.name} can't run a broker of {asked.borrower}: {error.problem}")
            if isinstance(found, Lent):
                return found
            problems.append(found)
        return Failed(f"{self._site.name} has nobody to spare: {'; '.join(problems)}")

    async def _lend_this(
        self, entry: BrokerEntry, folder: SpareFolder, name: str, asked: Lend, wish: Wish
    ) -> Lent | str:
        if _lent(folder) is not None:
            return f"{entry.id} is lent"
        if (reservation := folder.reservation()) is not None:
            return f"{entry.id} was just started for {reservation.faulty}"
        if len(name.encode()) > NAME_BYTES_MAX:
            return f"{name!r} is longer than the name of a broker may be"
        site_file = folder.lent / "site.toml"
        text = lent_text(wish.site, name, entry, self._site, folder.lent)
        other = check(text, str(site_file), self._site.scheme.kind)
        if (running := folder.running()) is not None:
            await processes.end(running)  # a spare of ours, that stands in for nobody
        if problem := await processes.taken_address(entry.address, entry.peer_address):
            return f"{entry.id} was not started from here, and {problem}"
        borrowers = tuple(each.advertised for each in other.brokers if each.id != name)[:TOLD_MAX]
        lending = Lending(
            asked.borrower,
            asked.ticket,
            name,
            entry.advertised,
            entry.peer_advertised,
            time.time() + self._table.for_s,
            borrowers,
        )
        folder.forget()
        folder.lent.mkdir(parents=True, mode=0o700)
        site_file.write_text(text, encoding="utf-8")
        folder.lend(lending)
        problem = await processes.start(folder, site_file, name, entry.advertised, folder.log, self._log_level)
        if problem:
            folder.forget()
            return problem
        log.warning("%s: %s for %s", name, lent_until(lending), wish.faulty)
        return _answer(lending)

    async def take_back(self, asked: TakeBack) -> Released | Failed:
        """A borrower has no use for a broker any more. What it had stored there is deleted."""
        for _, folder in self._folders():
            try:
                async with folder.locked():
                    lending = folder.lending()
                    if lending is not None and (lending.borrower, lending.name) == (asked.borrower, asked.name):
                        await self._end(folder, lending, "it was given back")
                        return Released()
            except OSError as error:
                return Failed(f"{asked.name} was not taken back: {error}")
        return Failed(f"{self._site.name} has lent no {asked.name!r} to {asked.borrower!r}")

    async def _end(self, folder: SpareFolder, lending: Lending, why: str) -> None:
        if (running := folder.running()) is not None:
            await processes.end(running)
        folder.forget()
        log.warning("%s: back from %s: %s", lending.name, lending.borrower, why)

    # ------------------------------------------------------------------------------------------------ when time is over
    async def watch(self) -> None:
        """For ever: takes back what was lent for longer than agreed, also what was lent before this program began."""
        while True:
            for _, folder in self._folders():
                try:
                    await self._look(folder)
                except OSError as error:
                    log.error("%s: can't be looked at: %s", folder.path, error)
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look(self, folder: SpareFolder) -> None:
        if not _is_due(folder):
            return
        async with folder.locked():  # of several programs, one sees to it; and none that is being started
            lending, now = folder.lending(), time.time()
            if lending is None or not _is_due(folder):
                return
            left = lending.until + self._table.grace_s - now
            if left <= 0 or folder.running() is None:
                await self._end(folder, lending, "its time was over" if now >= lending.until else "it failed")
                return
            if now < lending.told_at + TELL_EVERY_S:
                return
            if lending.told_at and await is_done(lending):
                await self._end(folder, lending, "its time was over, and its borrower does without it")
                return
            if not lending.told_at:
                log.warning("%s: %s, and has %.0f s to do without", lending.name, lent_until(lending), left)
            folder.lend(replace(lending, told_at=now))
        await self._tell(lending)


async def tell_borrower(lending: Lending) -> None:
    """Asks a broker of the borrower's, as an operator, to do without the one that is lent."""
    for address in (lending.address, *lending.borrowers):  # whichever keeps the map; that may be the lent one
        async with BrokerDesk(address, TELL_WITHIN_S) as desk:
            begun = await desk.change(CALL_BACK, {"id": lending.name})
        if not isinstance(begun, Unreachable) and not begun.problem:
            return


async def is_done(lending: Lending) -> bool:
    """Whether a lent broker is no member any more, as it says itself, and nothing of its borrower's waits there."""
    async with BrokerDesk(lending.address, TELL_WITHIN_S) as desk:
        found = await desk.inspect(0)
    if isinstance(found, Unreachable) or found.broker != lending.name or "members" not in found.facts:
        return False
    return lending.name not in found.facts["members"].split(", ") and not found.measures.get("feeds_events", 0)


def _lent(folder: SpareFolder) -> Lending | None:
    """Whom a spare is lent to. One that was, and has failed, is not: its borrower has seen that, and gets another."""
    lending = folder.lending()
    return None if lending is None or folder.running() is None else lending


def _is_due(folder: SpareFolder) -> bool:
    lending = folder.lending()
    return lending is not None and (time.time() >= lending.until or folder.running() is None)


def _answer(lending: Lending) -> Lent:
    member = NetworkMember(lending.name, lending.address, lending.peer_address)
    return Lent(member, round(lending.until))
