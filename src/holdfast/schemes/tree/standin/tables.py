"""Tables below `[standin]` that tell where stand-ins come from, and where a network's map is kept: read and checked.

What they say is for the program that runs beside each broker; its node knows neither processes nor other sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.broker.site_text import SiteText, is_address, is_name, is_wildcard
from holdfast.schemes.tree.settings import SLA

if TYPE_CHECKING:
    from holdfast.broker.site import Site

DIRECTORY, PROCESSES, BORROW, LEND = "directory", "processes", "borrow", "lend"
TABLES: Final = (DIRECTORY, PROCESSES, BORROW, LEND)
ADDRESSES_MAX: Final = 16  # of a directory's group, or of those who may lend
BORROWERS_MAX: Final = 64
FOR_S_MAX: Final = 30 * 86_400
GRACE_S_MAX: Final = 3_600


class DirectoryTable(msgspec.Struct, frozen=True):
    """A group that keeps the map: where its members are found by clients."""

    brokers: tuple[str, ...]


class ProcessesTable(msgspec.Struct, frozen=True):
    """Spares of the site file are started on this machine when they are needed. Their logs lie in the folder `logs`,
    else beside their data."""

    start: bool = True
    logs: str = ""


class BorrowTable(msgspec.Struct, frozen=True):
    """Where brokers of sites are found that may lend one; asked in this order."""

    lenders: tuple[str, ...]


class LendTable(msgspec.Struct, frozen=True):
    """Which spares may be lent, to sites with these names, for how long, and how many at once. Before one is taken
    back, its borrower is told, and has `grace_s` to do without."""

    to: tuple[str, ...]
    brokers: tuple[str, ...]
    for_s: int = 3_600
    most: int = 1
    grace_s: int = 60


class StandInTables(msgspec.Struct, frozen=True):
    """All of them; None is one that the site does not have."""

    directory: DirectoryTable | None = None
    processes: ProcessesTable | None = None
    borrow: BorrowTable | None = None
    lend: LendTable | None = None


def read_tables(text: SiteText, document: Mapping[str, Any], site: Site) -> StandInTables:
    """What the site file says below `[standin]`; refused with its line if that can't be."""
    found: Mapping[str, Any] = document.get("standin", {})
    for name in TABLES:
        if name in found and SLA not in found:
            problem = (
                f"[standin.{name}] is for stand-ins that come by themselves: add [standin.{SLA}], which may be empty"
            )
            text.refuse(problem, "", f"standin.{name}")
    reader = _Tables(text, site)
    return StandInTables(
        reader.directory(found[DIRECTORY]) if DIRECTORY in found else None,
        reader.processes(found[PROCESSES]) if PROCESSES in found else None,
        reader.borrow(found[BORROW], document) if BORROW in found else None,
        reader.lend(found[LEND]) if LEND in found else None,
    )


class _Tables:
    """One by one."""

    def __init__(self, text: SiteText, site: Site) -> None:
        self._text = text
        self._site = site

    def directory(self, table: Mapping[str, Any]) -> DirectoryTable:
        title = f"standin.{DIRECTORY}"
        self._text.allow(table, title, {"brokers": list})
        return DirectoryTable(self._addresses(table, "brokers", title))

    def processes(self, table: Mapping[str, Any]) -> ProcessesTable:
        title = f"standin.{PROCESSES}"
        self._text.allow(table, title, {"start": bool, "logs": str})
        said = ProcessesTable(**table)
        without = next((entry.id for entry in self._site.brokers if entry.spare and not entry.data), None)
        if said.start and without is not None:
            self._text.refuse(f"spare {without!r} has no data, beside which is kept which process it is", "", title)
        return said

    def borrow(self, table: Mapping[str, Any], document: Mapping[str, Any]) -> BorrowTable:
        title = f"standin.{BORROW}"
        self._text.allow(table, title, {"from": list})
        if "topology" in document:
            problem = "a broker that is lent is added to those of [[broker]], and this site has a [topology]"
            self._text.refuse(problem, "", title)
        return BorrowTable(self._addresses(table, "from", title))

    def lend(self, table: Mapping[str, Any]) -> LendTable:
        title = f"standin.{LEND}"
        self._text.allow(table, title, {"to": list, "brokers": list, "for_s": int, "most": int, "grace_s": int})
        to = self._texts(table, "to", title, BORROWERS_MAX)
        for name in to:
            if not is_name(name):
                self._text.refuse(f"'to' names {name!r}, and a site has no such name", "to", title)
        if self._site.name in to:
            self._text.refuse(f"'to' names {self._site.name!r}, this site itself, which has its spares", "to", title)
        spares = {entry.id: entry for entry in self._site.brokers if entry.spare}
        brokers = self._texts(table, "brokers", title, max(1, len(self._site.brokers)))
        for name in brokers:
            if name not in spares:
                there = f"spares are {', '.join(spares)}" if spares else "the site has none"
                self._text.refuse(f"'brokers' names {name!r}, which is no spare; {there}", "brokers", title)
            if not spares[name].data:
                self._text.refuse(f"spare {name!r} has no data, beside which is kept whom it is lent to", "", title)
        for key, most in (("for_s", FOR_S_MAX), ("most", len(brokers)), ("grace_s", GRACE_S_MAX)):
            if key in table and not 1 <= table[key] <= most:
                self._text.refuse(f"{key!r} is {table[key]}, and has to be 1 to {most}", key, title)
        numbers = {key: table[key] for key in ("for_s", "most", "grace_s") if key in table}
        return LendTable(to, brokers, **numbers)

    def _addresses(self, table: Mapping[str, Any], key: str, title: str) -> tuple[str, ...]:
        addresses = self._texts(table, key, title, ADDRESSES_MAX)
        for address in addresses:
            if not is_address(address) or is_wildcard(address):
                problem = f"{address!r} in {key!r} is no address: write host:port, where clients connect"
                self._text.refuse(problem, key, title)
        return addresses

    def _texts(self, table: Mapping[str, Any], key: str, title: str, most: int) -> tuple[str, ...]:
        """A list of one to so many different texts."""
        if key not in table:
            self._text.refuse(f"[{title}] has to say {key!r}: a list of texts", "", title)
        listed = table[key]
        if not listed or not all(isinstance(each, str) for each in listed):
            self._text.refuse(f"{key!r} has to be a list of texts, with one at least", key, title)
        twice = next((each for each in listed if listed.count(each) > 1), None)
        if twice is not None:
            self._text.refuse(f"{key!r} names {twice!r} twice", key, title)
        if len(listed) > most:
            self._text.refuse(f"{key!r} names {len(listed)}, and has to name {most} or fewer", key, title)
        return tuple(listed)
