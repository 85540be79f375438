"""The site file: a broker network, described once.

    name = "quotes"
    [scheme]
    kind = "tree"                     # which one: holdfast.broker.registry; and its settings
    [[broker]]
    id = "b1"
    address = "127.0.0.1:7411"
    advertise = "b1.example.org:7411" # what clients are told; absent: the address. One of several that listens on
                                      # 0.0.0.0 has to say it
    peer_address = "127.0.0.1:7511"   # for other brokers; absent: it takes no other brokers
    peer_advertise = "10.0.0.1:7511"  # what other brokers are told; absent: the peer_address
    data = "var/b1"                   # absent: the broker keeps nothing over a restart
    spare = false                     # true: it takes part when it is asked to, in schemes that have spares
    [limits]                          # all optional
    backlog_events = 10000
    [retention]                       # of events in the log
    bytes = 1073741824
    [application]                     # that the broker hosts; all replicas of a group host the same
    factory = "package.module:name"   # called with the settings, it gives one
    [application.settings]
    [security]
    plaintext = "I accept"            # without TLS, addresses other than loopback are refused unless this is said
    remote_operators = "I accept"     # and so are operators of other machines: they can change a group

`[[link]]` and `[topology]` say which brokers are joined, where a scheme has links: holdfast.broker.links. What else a
site says of its scheme, the scheme reads. How brokers and links fail, and who publishes for whom, is for predictions:
holdfast.broker.quality.

`site_from_toml` takes the text and gives a `Site`, or SiteError, which names the line and what is allowed there. It
opens no file and resolves no name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from holdfast.broker import links, quality
from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.quality_reader import read_quality
from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import Place, Scheme, Told
from holdfast.broker.site_text import DEFAULT_ADDRESS, SiteText, is_wildcard
from holdfast.errors import SiteError
from holdfast.kernel.time import SECOND
from holdfast.protocols.core.limits import REQUEST_BYTES_MAX, CoreLimits, HostingLimits
from holdfast.protocols.desks.log_desk import RetentionSettings
from holdfast.topology.graph import BrokerGraph

_BROKER = {
    "id": str, "address": str, "advertise": str, "peer_address": str, "peer_advertise": str, "data": str, "spare": bool,
}  # fmt: skip
ADDRESSES = ("address", "advertise", "peer_address", "peer_advertise")
FACTORY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*")
PLAINTEXT_ACCEPTED = "I accept"


class BrokerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One `[[broker]]`. It listens at `address` and `peer_address`; others are told `advertised`, `peer_advertised`."""

    id: str
    address: str = DEFAULT_ADDRESS
    peer_address: str = ""
    data: str = ""
    spare: bool = False
    advertise: str = ""
    peer_advertise: str = ""

    @property
    def advertised(self) -> str:
        """Where clients and operators go."""
        return self.advertise or _reachable(self.address)

    @property
    def peer_advertised(self) -> str:
        """Where other brokers go."""
        return self.peer_advertise or _reachable(self.peer_address)

    @property
    def durable(self) -> bool:
        return bool(self.data)

    @property
    def place(self) -> Place:
        return Place(self.id, self.advertised, self.peer_advertised, self.spare)


def _reachable(address: str) -> str:
    """The address; of one that stands for all of this machine, the one that can be reached from here."""
    if not is_wildcard(address):
        return address
    host, _, port = address.rpartition(":")
    return f"{'[::1]' if host.startswith('[') else '127.0.0.1'}:{port}"


class ApplicationEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`[application]`: what the broker hosts."""

    factory: str
    settings: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Tells it from others: with other settings it would make something else of the same commands."""
        said = msgspec.json.encode(self.settings, order="deterministic").decode() if self.settings else ""
        return f"{self.factory} {said}".rstrip()


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A described network."""

    name: str
    scheme: Scheme
    settings: msgspec.Struct  # of the scheme
    brokers: tuple[BrokerEntry, ...]
    limits: CoreLimits = CoreLimits()
    plaintext: bool = False  # public addresses without TLS are accepted
    remote_operators: bool = False  # whoever reaches a broker may be an operator
    retention: RetentionSettings = RetentionSettings()
    application: ApplicationEntry | None = None
    hosting: HostingLimits = HostingLimits()
    links: links.Links = ()  # between the brokers, where the scheme has some
    beside: msgspec.Struct | None = None  # what the program beside its brokers is told, where the scheme has one
    quality: quality.Quality = quality.Quality()  # how its parts fail, and who publishes for whom

    @property
    def members(self) -> tuple[BrokerEntry, ...]:
        """The brokers that it begins with: those that are no spares."""
        return tuple(entry for entry in self.brokers if not entry.spare)

    @property
    def graph(self) -> BrokerGraph:
        """The members, in the order of the file, and their links."""
        return BrokerGraph([entry.id for entry in self.members], self.links)

    def told(self, entry: BrokerEntry) -> Told:
        """What one of the brokers is told."""
        settings = BrokerSettings(
            entry.id,
            entry.durable,
            limits=self.limits,
            retention=self.retention,
            application="" if self.application is None else self.application.name,
            hosting=self.hosting,
        )
        places = tuple(each.place for each in self.brokers)
        return Told(settings, self.settings, places, self.links, self.name)


def site_from_toml(text: str, where: str, seeded: links.Seeded | None = None) -> Site:
    """The site that a file's text describes; `where` is the file's name, for errors.

    `seeded` makes the random numbers of a seed: `random.Random`. A site with a `[topology]` is not read without.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+)", str(error))
        problem = re.sub(r" \(at .*\)$", "", str(error))
        raise SiteError(f"this is no TOML: {problem}", where, int(found[1]) if found else 0) from error
    reader = _Reader(text, where)
    scheme = reader.scheme(document.get("scheme", {}))
    reader.check_tables(document, scheme)
    name = document.get("name", "site")
    reader.check_name("name", name)
    settings = scheme.read_settings(reader, document)
    brokers = reader.brokers(document, scheme)
    limits, hosting = reader.limits(document.get("limits", {}))
    site = Site(
        name=name,
        scheme=scheme,
        settings=settings,
        brokers=brokers,
        limits=limits,
        hosting=hosting,
        application=reader.application(document.get("application")),
        plaintext=reader.accepts("plaintext", document.get("security", {})),
        remote_operators=reader.accepts("remote_operators", document.get("security", {})),
        retention=reader.retention(document.get("retention", {})),
    )
    site = scheme.complete(reader, document, site, seeded)
    if site.application is not None and len(site.brokers) > 1 and not scheme.is_one_broker:
        problem = (
            "an application is hosted by one broker, or by a group: each broker of a network would host its own,"
            " and none would see all events"
        )
        reader.refuse(problem, "", "application")
    homes = [entry.id for entry in site.members]
    told = read_quality(reader, document, [entry.id for entry in site.brokers], site.links, homes)
    return replace(site, quality=told)


class _Reader(SiteText):
    """Table by table."""

    def scheme(self, table: Any) -> Scheme:
        self.allow({"scheme": table}, "", {"scheme": dict})
        kind = table.get("kind", SCHEMES.kinds[0])
        self.allow({"kind": kind}, "scheme", {"kind": str})
        if kind not in SCHEMES:
            self.refuse(f"there is no scheme {kind!r}; there is {', '.join(SCHEMES.kinds)}", "kind", "scheme")
        return SCHEMES[kind]

    def check_tables(self, document: dict[str, Any], scheme: Scheme) -> None:
        common = {"name": str, "scheme": dict, "broker": list}
        common |= dict.fromkeys(("limits", "security", "retention", "application"), dict)
        known = {**common, **_tables_of(scheme), **quality.TABLES}
        for table in (table for table in document if table not in known):
            having = [kind for kind in SCHEMES.kinds if table in _tables_of(SCHEMES[kind])]
            if having:
                problem = f"{table!r} is not known in a site of the scheme {scheme.kind!r}; it is of"
                self.refuse(f"{problem} {' and '.join(map(repr, having))}", table)
        self.allow(document, "", known)

    def brokers(self, document: dict[str, Any], scheme: Scheme) -> tuple[BrokerEntry, ...]:
        made = links.broker_tables(self, document.get("topology", {}))
        if made and "broker" in document:
            self.refuse("brokers are listed by [[broker]], or made by [topology]; the site has both", "", "broker")
        tables, title = (made, "topology") if made else (document.get("broker", []), "broker")
        if not tables:
            self.refuse("a site has a broker: add [[broker]] with an id", "broker")
        entries: list[BrokerEntry] = []
        known: dict[str, None] = {}  # ids, and addresses that others are told; an address has a colon
        for place, table in enumerate(tables):
            if not isinstance(table, dict):
                self.refuse("'broker' is an array of tables: write [[broker]]", "broker")
            entry = self._broker(table, title, 0 if made else place)
            self._check_new(entry, known, title, 0 if made else place)
            entries.append(entry)
        if scheme.is_one_broker or len(entries) > 1:
            self._check_advertised(entries, title)
        if not scheme.has_spares:
            spare = next((place for place, entry in enumerate(entries) if entry.spare), None)
            if spare is not None:
                self.refuse(f"the scheme {scheme.kind!r} has no spares", "spare", "broker", spare)
        return tuple(entries)

    def _broker(self, table: dict[str, Any], title: str, place: int) -> BrokerEntry:
        self.allow(table, title, {**_BROKER, **quality.OF_PARTS}, place)
        if "id" not in table:
            self.refuse("a broker has an id", "", title, place)
        self.check_name("id", table["id"], title, place)
        entry = BrokerEntry(**{key: value for key, value in table.items() if key not in quality.OF_PARTS})
        for key in ADDRESSES:
            if getattr(entry, key) or key == "address":
                self.check_address(key, getattr(entry, key), title, place)
        if entry.peer_address == entry.address:
            self.refuse("brokers and clients have different addresses", "peer_address", title, place)
        for key in ("advertise", "peer_advertise"):
            if getattr(entry, key) and is_wildcard(getattr(entry, key)):
                problem = f"{key!r} is {getattr(entry, key)!r}, where nobody can be sent: name the machine"
                self.refuse(problem, key, title, place)
        if entry.peer_advertise and not entry.peer_address:
            self.refuse("'peer_advertise' is of a broker with a peer_address", "peer_advertise", title, place)
        return entry

    def _check_new(self, entry: BrokerEntry, known: dict[str, None], title: str, place: int) -> None:
        """Brokers on different machines may listen alike, on all addresses; what they are reached at differs."""
        client_key = "advertise" if entry.advertise else "address"
        peer_key = "peer_advertise" if entry.peer_advertise else "peer_address"
        told = {"id": entry.id, client_key: entry.advertised, peer_key: entry.peer_advertised}
        for key, value in told.items():
            if value in known:
                said = "are called" if key == "id" else "have the address"
                self.refuse(f"two brokers {said} {value!r}", key, title, place)
            if value:
                known[value] = None

    def _check_advertised(self, entries: Sequence[BrokerEntry], title: str) -> None:
        """A broker among others is told of to clients and brokers; so it has to be said where it is."""
        for place, entry in enumerate(entries):
            for key, told in (("address", "advertise"), ("peer_address", "peer_advertise")):
                address = getattr(entry, key)
                if address and is_wildcard(address) and not getattr(entry, told):
                    who = "clients" if key == "address" else "other brokers"
                    port = address.rpartition(":")[2]
                    problem = (
                        f"broker {entry.id!r} listens on {address}, and {who} would be sent there; say where it is:"
                        f' {told} = "host:{port}", with the name or address of its machine'
                    )
                    self.refuse(problem, key, title, 0 if title == "topology" else place)

    def limits(self, table: dict[str, Any]) -> tuple[CoreLimits, HostingLimits]:
        core, hosting = CoreLimits.__struct_fields__, HostingLimits.__struct_fields__
        self.allow(table, "limits", dict.fromkeys((*core, *hosting), int))
        for key, value in table.items():
            if value < 1:
                self.refuse(f"{key!r} is {value}, and has to be 1 or more", key, "limits")
            if key in ("request_bytes", "answer_bytes") and value > REQUEST_BYTES_MAX:
                self.refuse(f"{key!r} is {value}, and has to be {REQUEST_BYTES_MAX} or less", key, "limits")
        given = [{key: value for key, value in table.items() if key in known} for known in (core, hosting)]
        return CoreLimits(**given[0]), HostingLimits(**given[1])

    def application(self, table: dict[str, Any] | None) -> ApplicationEntry | None:
        """Whether it can be imported is found out where imports are allowed."""
        if table is None:
            return None
        self.allow(table, "application", {"factory": str, "settings": dict})
        if "factory" not in table:
            self.refuse("an application has a factory", "", "application")
        if not FACTORY.fullmatch(table["factory"]):
            problem = f"{table['factory']!r} is no factory: write package.module:name"
            self.refuse(problem, "factory", "application")
        return ApplicationEntry(**table)

    def retention(self, table: dict[str, Any]) -> RetentionSettings:
        """0 is for ever, in each of them."""
        self.allow(table, "retention", dict.fromkeys(("bytes", "age_s", "bytes_hard", "stage_s"), int))
        for key, value in table.items():
            if value < (1 if key == "stage_s" else 0):
                self.refuse(f"{key!r} is {value}, and has to be 0 or more", key, "retention")
        defaults = RetentionSettings()
        kept, hard = table.get("bytes", defaults.bytes), table.get("bytes_hard", defaults.bytes_hard)
        if hard and (hard < kept or not kept):
            self.refuse(f"'bytes_hard' is {hard}, less than 'bytes', {kept or 'for ever'}", "bytes_hard", "retention")
        return RetentionSettings(
            bytes=kept,
            age=table.get("age_s", 0) * SECOND,
            bytes_hard=hard,
            stage_age=table.get("stage_s", defaults.stage_age // SECOND) * SECOND,
        )

    def accepts(self, what: str, table: dict[str, Any]) -> bool:
        """Whether the file says, in so many words, that something risky is wanted."""
        self.allow(table, "security", dict.fromkeys(("plaintext", "remote_operators"), str))
        said = table.get(what)
        if said not in (None, PLAINTEXT_ACCEPTED):
            self.refuse(f'{what!r} is {said!r}; leave it out, or write "{PLAINTEXT_ACCEPTED}"', what, "security")
        return said is not None


def _tables_of(scheme: Scheme) -> dict[str, type]:
    return {**(links.TABLES if scheme.has_links else {}), **scheme.tables}


def check_joined(text: SiteText, site: Site, who: str, title: str) -> None:
    """Refuses several brokers that others can't reach, or that would share a folder. `who` says what they are called,
    `title` is the table that they come from."""
    folders: dict[str, None] = {}
    for number, entry in enumerate(site.brokers):
        place = 0 if title == "topology" else number
        if not entry.peer_address and len(site.brokers) > 1:
            problem = f"{who} {entry.id!r} has no peer_address: the others of its {site.scheme.called} connect there"
            text.refuse(problem, "", title, place)
        if entry.data in folders:
            text.refuse(f"two {who}s keep their data in {entry.data!r}", "data", "broker", place)
        if entry.data:
            folders[entry.data] = None
