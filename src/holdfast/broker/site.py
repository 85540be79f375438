"""The site file: a broker network, described once.

    name = "quotes"
    [scheme]
    kind = "tree"                     # one broker, or many that are joined by links; or "paxos": 1, 3, 4, 5, 7 or 9
                                      # replicas that behave as one
    reliability = "none"              # of a network of several brokers: "none", "periodic", "buffered", "bypass" or
                                      # "bypass+buffered" (D1-A10)
    protocol = "batch"                # of a group: "multi" is one request a slot, "batch" all that wait, "fast" too,
                                      # where clients propose to all replicas themselves
    pipeline = 10                     # of a group: slots that are decided at once; and other settings, docs/groups.md
    [[broker]]
    id = "b1"
    address = "127.0.0.1:7411"
    advertise = "b1.example.org:7411" # what clients are told; absent: the address. A group or a network that listens on
                                      # 0.0.0.0 has to say it
    peer_address = "127.0.0.1:7511"   # for other brokers; absent: it takes no other brokers
    peer_advertise = "10.0.0.1:7511"  # what other brokers are told; absent: the peer_address
    data = "var/b1"                   # absent: the broker keeps nothing over a restart
    spare = false                     # of a group: true is no member yet; `holdfast group add` makes it one
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

`[[link]]`, `[topology]` and `[routing]` describe a network of several brokers: holdfast.broker.network. How brokers and
links fail, and who publishes for whom, is for predictions: holdfast.broker.quality.

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

from holdfast.broker import network, quality
from holdfast.broker.quality_reader import read_quality
from holdfast.broker.settings_table import MORE, check_order, read_settings
from holdfast.broker.site_text import DEFAULT_ADDRESS, SiteText, is_wildcard
from holdfast.errors import SiteError
from holdfast.kernel.settings import choices
from holdfast.kernel.time import SECOND
from holdfast.protocols.core.limits import REQUEST_BYTES_MAX, CoreLimits, HostingLimits
from holdfast.protocols.desks.log_desk import RetentionSettings
from holdfast.protocols.paxos.settings import Member, PaxosSettings
from holdfast.protocols.routing.settings import Reliability, RoutingSettings
from holdfast.topology.overlay import Overlay

TREE, PAXOS = "tree", "paxos"
SCHEMES = (TREE, PAXOS)
# Four survive no more failures than three; but fast rounds go on with one of them down.
GROUP_SIZES = (1, 3, 4, 5, 7, 9)
_BROKER = {
    "id": str, "address": str, "advertise": str, "peer_address": str, "peer_advertise": str, "data": str, "spare": bool,
}  # fmt: skip
ADDRESSES = ("address", "advertise", "peer_address", "peer_advertise")
GROUP = PaxosSettings("", ())
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


def _reachable(address: str) -> str:
    """The address; of one that stands for all of this machine, the one that can be reached from here."""
    if not is_wildcard(address):
        return address
    host, _, port = address.rpartition(":")
    return f"{'[::1]' if host.startswith('[') else '127.0.0.1'}:{port}"


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """`[scheme]`: how brokers work together."""

    kind: str = TREE
    reliability: Reliability = Reliability.NONE  # of a network
    group: PaxosSettings = GROUP  # what all replicas of one are told


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
    scheme: Scheme = Scheme()
    brokers: tuple[BrokerEntry, ...]
    limits: CoreLimits = CoreLimits()
    plaintext: bool = False  # public addresses without TLS are accepted
    remote_operators: bool = False  # whoever reaches a broker may be an operator
    retention: RetentionSettings = RetentionSettings()
    application: ApplicationEntry | None = None
    hosting: HostingLimits = HostingLimits()
    links: network.Links = ()  # between the brokers of a network
    routing_table: RoutingSettings = network.DEFAULTS  # what `[routing]` says, for all brokers alike
    quality: quality.Quality = quality.Quality()  # how its parts fail, and who publishes for whom

    @property
    def is_group(self) -> bool:
        return self.scheme.kind == PAXOS

    @property
    def is_network(self) -> bool:
        """Whether there are several brokers, and events are routed between them."""
        return self.scheme.kind == TREE and len(self.brokers) > 1

    @property
    def overlay(self) -> Overlay:
        """The brokers of a network, in the order of the file, and their links."""
        return Overlay([entry.id for entry in self.brokers], self.links)

    def group(self, entry: BrokerEntry) -> PaxosSettings:
        """What one replica of a group is told."""
        return replace(self.scheme.group, name=entry.id, members=self.members, spares=self.spares)

    def routing(self, entry: BrokerEntry) -> RoutingSettings:
        """What one broker of a network is told."""
        return replace(
            self.routing_table,
            name=entry.id,
            overlay=self.overlay,
            addresses={other.id: other.peer_advertised for other in self.brokers if other.id != entry.id},
            reliability=self.scheme.reliability,
        )

    @property
    def members(self) -> tuple[Member, ...]:
        """The replicas that a group begins with, in the order of the file, which is that of their places."""
        return tuple(_member(entry) for entry in self.brokers if not entry.spare)

    @property
    def spares(self) -> tuple[Member, ...]:
        """Those that may be added to it later."""
        return tuple(_member(entry) for entry in self.brokers if entry.spare)


def _member(entry: BrokerEntry) -> Member:
    return Member(entry.id, entry.peer_advertised, entry.advertised)


def site_from_toml(text: str, where: str, seeded: network.Seeded | None = None) -> Site:
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
    tables = dict.fromkeys(("limits", "security", "retention", "application"), dict)
    reader.allow(
        document, "", {"name": str, "scheme": dict, "broker": list, **tables, **network.TABLES, **quality.TABLES}
    )
    name = document.get("name", "site")
    reader.check_name("name", name)
    scheme = reader.scheme(document.get("scheme", {}))
    if scheme.kind == PAXOS:
        reader.refuse_network(document)
    brokers = reader.brokers(document, scheme)
    limits, hosting = reader.limits(document.get("limits", {}))
    site = Site(
        name=name,
        scheme=scheme,
        brokers=brokers,
        limits=limits,
        hosting=hosting,
        application=reader.application(document.get("application")),
        plaintext=reader.accepts("plaintext", document.get("security", {})),
        remote_operators=reader.accepts("remote_operators", document.get("security", {})),
        retention=reader.retention(document.get("retention", {})),
    )
    if not site.is_group:
        site = reader.network(site, document, seeded)
    told = read_quality(reader, document, [entry.id for entry in site.brokers], site.links)
    return replace(site, quality=told)


class _Reader(SiteText):
    """Table by table."""

    def scheme(self, table: dict[str, Any]) -> Scheme:
        kind = table.get("kind", TREE)
        self.allow({"kind": kind}, "scheme", {"kind": str})
        if kind not in SCHEMES:
            self.refuse(f"there is no scheme {kind!r}; there is {', '.join(SCHEMES)}", "kind", "scheme")
        if kind == PAXOS:
            group = read_settings(self, table, "scheme", GROUP, besides=("kind",))
            check_order(self, table, "scheme", group, "patience_ms", "heartbeat_ms", MORE)
            return Scheme(kind=kind, group=group)
        beside = choices(RoutingSettings).keys() - network.OF_SCHEME
        routing = read_settings(self, table, "scheme", network.DEFAULTS, beside, ("kind",))
        return Scheme(kind=kind, reliability=routing.reliability)

    def refuse_network(self, document: dict[str, Any]) -> None:
        for table in network.TABLES:
            if table in document:
                problem = f"'{table}' is not known in a site of the scheme 'paxos': its replicas are all joined with"
                self.refuse(f"{problem} each other, and events are not routed; it is of the scheme 'tree'", table)

    def brokers(self, document: dict[str, Any], scheme: Scheme) -> tuple[BrokerEntry, ...]:
        made = network.broker_tables(self, document.get("topology", {}))
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
        if scheme.kind == PAXOS or len(entries) > 1:
            self._check_advertised(entries, title)
        if scheme.kind == PAXOS:
            self._check_group(entries)
        else:
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

    def _check_group(self, entries: list[BrokerEntry]) -> None:
        members = [entry for entry in entries if not entry.spare]
        if len(members) not in GROUP_SIZES:
            sizes = ", ".join(map(str, GROUP_SIZES))
            self.refuse(f"the group has {len(members)} replicas, and has to have one of {sizes}", "", "broker")
        for place, entry in enumerate(entries):
            if not entry.data:
                self.refuse(f"replica {entry.id!r} has no data: its votes must outlive it", "", "broker", place)
            if not entry.peer_address and len(entries) > 1:
                problem = f"replica {entry.id!r} has no peer_address: the others of its group connect there"
                self.refuse(problem, "", "broker", place)
        self._check_folders(entries, "replicas")

    def _check_folders(self, entries: Sequence[BrokerEntry], who: str) -> None:
        folders: dict[str, None] = {}
        for place, entry in enumerate(entries):
            if entry.data in folders:
                self.refuse(f"two {who} keep their data in {entry.data!r}", "data", "broker", place)
            if entry.data:
                folders[entry.data] = None

    def network(self, site: Site, document: dict[str, Any], seeded: network.Seeded | None) -> Site:
        """The same site with its links; a single broker has none, and nothing to route."""
        level, ids = site.scheme.reliability, [entry.id for entry in site.brokers]
        links = network.read_links(self, document, ids, level, seeded)
        if site.is_network:
            described = [(entry.id, entry.peer_address, entry.data) for entry in site.brokers]
            network.check_brokers(self, described, level, "broker" if "broker" in document else "topology")
            self._check_folders(site.brokers, "brokers")
            if site.application is not None:
                problem = (
                    "an application is hosted by one broker, or by a group: each broker of a network would host its"
                    " own, and none would see all events"
                )
                self.refuse(problem, "", "application")
        else:
            alone = "the site has one broker, and there is nothing to route"
            if level is not Reliability.NONE:
                self.refuse(f"'reliability' is {level.value!r}, of a network; {alone}", "reliability", "scheme")
            if "routing" in document:
                self.refuse(f"[routing] is of a network; {alone}", "", "routing")
        return replace(site, links=links, routing_table=network.read_routing(self, document.get("routing", {})))

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
