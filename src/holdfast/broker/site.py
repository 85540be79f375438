"""The site file: a broker network, described once.

    name = "quotes"
    [scheme]
    kind = "tree"                     # one broker; or "paxos": 1, 3, 4, 5, 7 or 9 replicas that behave as one
    protocol = "batch"                # of a group: "multi" is one request a slot, "batch" all that wait, "fast" too,
                                      # where clients propose to all replicas themselves
    pipeline = 10                     # of a group: slots that are decided at once
    [[broker]]
    id = "b1"
    address = "127.0.0.1:7411"
    peer_address = "127.0.0.1:7511"   # for other brokers; absent: it takes no other brokers
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

`site_from_toml` takes the text and gives a `Site`, or SiteError, which names the line and what is allowed there. It
opens no file and resolves no name.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any, NoReturn

import msgspec

from holdfast.errors import SiteError
from holdfast.kernel.time import SECOND
from holdfast.protocols.cursors.host import RetentionSettings
from holdfast.protocols.paxos.settings import Member, Protocol
from holdfast.protocols.sessions.limits import REQUEST_BYTES_MAX, CoreLimits, HostingLimits

TREE, PAXOS = "tree", "paxos"
SCHEMES = (TREE, PAXOS)
# Four survive no more failures than three; but fast rounds go on with one of them down.
GROUP_SIZES = (1, 3, 4, 5, 7, 9)
_BROKER = {"id": str, "address": str, "peer_address": str, "data": str, "spare": bool}
PIPELINE_MAX = 1_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})")
FACTORY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*")
DEFAULT_ADDRESS = "127.0.0.1:7411"
PLAINTEXT_ACCEPTED = "I accept"


class BrokerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One `[[broker]]`."""

    id: str
    address: str = DEFAULT_ADDRESS
    peer_address: str = ""
    data: str = ""
    spare: bool = False

    @property
    def durable(self) -> bool:
        return bool(self.data)


class Scheme(msgspec.Struct, frozen=True, kw_only=True):
    """`[scheme]`: how brokers work together."""

    kind: str = TREE
    protocol: Protocol = Protocol.BATCH
    pipeline: int = 10


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

    @property
    def is_group(self) -> bool:
        return self.scheme.kind == PAXOS

    @property
    def members(self) -> tuple[Member, ...]:
        """The replicas that a group begins with, in the order of the file, which is that of their places."""
        return tuple(_member(entry) for entry in self.brokers if not entry.spare)

    @property
    def spares(self) -> tuple[Member, ...]:
        """Those that may be added to it later."""
        return tuple(_member(entry) for entry in self.brokers if entry.spare)


def _member(entry: BrokerEntry) -> Member:
    return Member(entry.id, entry.peer_address, entry.address)


def site_from_toml(text: str, where: str) -> Site:
    """The site that a file's text describes; `where` is the file's name, for errors."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+)", str(error))
        problem = re.sub(r" \(at .*\)$", "", str(error))
        raise SiteError(f"this is no TOML: {problem}", where, int(found[1]) if found else 0) from error
    reader = _Reader(text, where)
    tables = dict.fromkeys(("limits", "security", "retention", "application"), dict)
    reader.allow(document, "", {"name": str, "scheme": dict, "broker": list, **tables})
    name = document.get("name", "site")
    reader.check_name("name", name)
    scheme = reader.scheme(document.get("scheme", {}))
    brokers = reader.brokers(document.get("broker", []), scheme.kind)
    limits, hosting = reader.limits(document.get("limits", {}))
    return Site(
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


def is_address(text: str) -> bool:
    """Whether it is host:port."""
    found = ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found[2]) < 65_536


def is_name(text: str) -> bool:
    """Whether a broker may be called so."""
    return NAME.fullmatch(text) is not None


class _Reader:
    """Finds what is wrong and where it stands."""

    def __init__(self, text: str, where: str) -> None:
        self._lines = text.splitlines()
        self._where = where

    def refuse(self, problem: str, key: str, occurrence: int = 0) -> NoReturn:
        """`key` is looked up in the text, so that the error can name the line."""
        pattern = re.compile(rf"\s*(\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*(=|\])")
        lines = [number for number, line in enumerate(self._lines, 1) if pattern.match(line)]
        line = lines[min(occurrence, len(lines) - 1)] if lines else 0
        raise SiteError(problem, self._where, line)

    def allow(self, table: dict[str, Any], title: str, allowed: dict[str, type], occurrence: int = 0) -> None:
        for key, value in table.items():
            if key not in allowed:
                place = f" in [{title}]" if title else ""
                self.refuse(f"{key!r} is not known{place}; known are {', '.join(allowed)}", key, occurrence)
            wanted = allowed[key]
            if type(value) is not wanted:
                kind = {
                    str: "a text",
                    int: "a whole number",
                    bool: "true or false",
                    dict: "a table",
                    list: "an array of tables",
                }[wanted]
                self.refuse(f"{key!r} is {value!r}, and has to be {kind}", key, occurrence)

    def check_name(self, key: str, value: str, occurrence: int = 0) -> None:
        if not is_name(value):
            problem = f"{value!r} is no name: letters, digits, '_', '.' and '-', up to 64, a letter or digit first"
            self.refuse(problem, key, occurrence)

    def scheme(self, table: dict[str, Any]) -> Scheme:
        kind = table.get("kind", TREE)
        if isinstance(kind, str) and kind not in SCHEMES:
            self.refuse(f"there is no scheme {kind!r}; there is {', '.join(SCHEMES)}", "kind")
        group = {"protocol": str, "pipeline": int} if kind == PAXOS else {}
        self.allow(table, "scheme", {"kind": str, **group})
        protocol, pipeline = table.get("protocol", Protocol.BATCH.value), table.get("pipeline", 10)
        known = [each.value for each in Protocol]
        if protocol not in known:
            self.refuse(f"there is no protocol {protocol!r}; there is {', '.join(known)}", "protocol")
        if not 1 <= pipeline <= PIPELINE_MAX:
            self.refuse(f"'pipeline' is {pipeline}, and has to be 1 to {PIPELINE_MAX}", "pipeline")
        return Scheme(kind=kind, protocol=Protocol(protocol), pipeline=pipeline)

    def brokers(self, tables: list[Any], scheme: str) -> tuple[BrokerEntry, ...]:
        if not tables:
            self.refuse("a site has a broker: add [[broker]] with an id", "broker")
        entries: list[BrokerEntry] = []
        for place, table in enumerate(tables):
            if not isinstance(table, dict):
                self.refuse("'broker' is an array of tables: write [[broker]]", "broker")
            self.allow(table, "broker", _BROKER, place)
            if "id" not in table:
                self.refuse("a broker has an id", "broker", place)
            self.check_name("id", table["id"], place)
            entry = BrokerEntry(**table)
            self._check_address("address", entry.address, place)
            if entry.peer_address:
                self._check_address("peer_address", entry.peer_address, place)
                if entry.peer_address == entry.address:
                    self.refuse("brokers and clients have different addresses", "peer_address", place)
            for other in entries:
                if other.id == entry.id:
                    self.refuse(f"two brokers are called {entry.id!r}", "id", place)
                for key in ("address", "peer_address"):
                    address = getattr(entry, key)
                    if address and address in (other.address, other.peer_address):
                        self.refuse(f"two brokers have the address {address!r}", key, place)
            entries.append(entry)
        spare = next((place for place, entry in enumerate(entries) if entry.spare), None)
        if scheme == PAXOS:
            self._check_group(entries)
        elif spare is not None:
            self.refuse(f"the scheme {scheme!r} has no spares", "spare")
        elif len(entries) > 1:
            problem = f"the site has {len(entries)} brokers; the scheme 'tree' takes one until routing is built"
            self.refuse(problem, "broker", 1)
        return tuple(entries)

    def _check_group(self, entries: list[BrokerEntry]) -> None:
        members = [entry for entry in entries if not entry.spare]
        if len(members) not in GROUP_SIZES:
            sizes = ", ".join(map(str, GROUP_SIZES))
            self.refuse(f"the group has {len(members)} replicas, and has to have one of {sizes}", "broker")
        for place, entry in enumerate(entries):
            if not entry.data:
                self.refuse(f"replica {entry.id!r} has no data: its votes must outlive it", "broker", place)
            if not entry.peer_address and len(entries) > 1:
                problem = f"replica {entry.id!r} has no peer_address: the others of its group connect there"
                self.refuse(problem, "broker", place)
            if any(other.data == entry.data for other in entries[:place]):
                self.refuse(f"two replicas keep their data in {entry.data!r}", "data", place)

    def _check_address(self, key: str, address: str, occurrence: int) -> None:
        if not is_address(address):
            self.refuse(f"{address!r} is no address: write host:port, for instance {DEFAULT_ADDRESS}", key, occurrence)

    def limits(self, table: dict[str, Any]) -> tuple[CoreLimits, HostingLimits]:
        core, hosting = CoreLimits.__struct_fields__, HostingLimits.__struct_fields__
        self.allow(table, "limits", dict.fromkeys((*core, *hosting), int))
        for key, value in table.items():
            if value < 1:
                self.refuse(f"{key!r} is {value}, and has to be 1 or more", key)
            if key in ("request_bytes", "answer_bytes") and value > REQUEST_BYTES_MAX:
                self.refuse(f"{key!r} is {value}, and has to be {REQUEST_BYTES_MAX} or less", key)
        given = [{key: value for key, value in table.items() if key in known} for known in (core, hosting)]
        return CoreLimits(**given[0]), HostingLimits(**given[1])

    def application(self, table: dict[str, Any] | None) -> ApplicationEntry | None:
        """Whether it can be imported is found out where imports are allowed."""
        if table is None:
            return None
        self.allow(table, "application", {"factory": str, "settings": dict})
        if "factory" not in table:
            self.refuse("an application has a factory", "application")
        if not FACTORY.fullmatch(table["factory"]):
            problem = f"{table['factory']!r} is no factory: write package.module:name"
            self.refuse(problem, "factory")
        return ApplicationEntry(**table)

    def retention(self, table: dict[str, Any]) -> RetentionSettings:
        """0 is for ever, in each of them."""
        self.allow(table, "retention", dict.fromkeys(("bytes", "age_s", "bytes_hard", "stage_s"), int))
        for key, value in table.items():
            if value < (1 if key == "stage_s" else 0):
                self.refuse(f"{key!r} is {value}, and has to be 0 or more", key)
        defaults = RetentionSettings()
        kept, hard = table.get("bytes", defaults.bytes), table.get("bytes_hard", defaults.bytes_hard)
        if hard and (hard < kept or not kept):
            self.refuse(f"'bytes_hard' is {hard}, less than 'bytes', {kept or 'for ever'}", "bytes_hard")
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
            self.refuse(f'{what!r} is {said!r}; leave it out, or write "{PLAINTEXT_ACCEPTED}"', what)
        return said is not None
