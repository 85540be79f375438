"""What a scheme is to everyone else: the site file, drivers, commands and the simulator ask it, and name none.

A scheme says how brokers of a site work together. Its package has three modules that are found by their names: this
value, `SCHEME`, in `scheme`; `CLIENT` in `client`, which programs beside brokers import, and nothing else of it;
`SWARM` in `swarm`, for the simulator (`holdfast.sim.swarm`). docs/schemes.md tells how to add one.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.kit import BrokerKit
from holdfast.broker.settings_table import read_settings
from holdfast.broker.status import Section
from holdfast.codec.catalogue import Catalogue
from holdfast.kernel.application import Hosted
from holdfast.kernel.node import Node
from holdfast.kernel.storage import StoredStreams

if TYPE_CHECKING:
    from random import Random

    from holdfast.broker.links import Seeded
    from holdfast.broker.site import BrokerEntry, Site
    from holdfast.broker.site_text import SiteText

Links = tuple[tuple[str, str], ...]


class Prediction(enum.Enum):
    """What a site's service depends on: so predictions are made."""

    WAYS = "ways"  # from broker to broker, at levels of reliability
    MAJORITY = "majority"  # of its brokers


class Place(msgspec.Struct, frozen=True, gc=False):
    """One broker of a site, and where others find it. `spare`: it takes part when it is asked to."""

    id: str
    client_address: str
    peer_address: str
    spare: bool = False


class Told(msgspec.Struct, frozen=True):
    """All that one broker of a site is told: its own settings, those of the scheme, and who else is there."""

    broker: BrokerSettings
    settings: msgspec.Struct
    places: tuple[Place, ...]
    links: Links = ()
    site: str = ""  # its name


class Making(msgspec.Struct, frozen=True):
    """What a broker is made from: with a new application, if it hosts one. Tests put mutants into the kit."""

    told: Told
    rng: Random
    streams: StoredStreams  # what its disk kept
    application: Hosted | None = None
    kit: BrokerKit = BrokerKit()


class InitOption(msgspec.Struct, frozen=True):
    """An option of `holdfast init` that a scheme has: one of a few values."""

    values: tuple[str, ...]
    about: str


class Template(msgspec.Struct, frozen=True):
    """A kind of site that a scheme has besides the usual one, under a name of its own: `init` writes such a site, and
    `demo` is the module of examples/ that shows it."""

    about: str
    demo: str = ""


class InitWish(msgspec.Struct, frozen=True):
    """What someone wants of `holdfast init`. `named`: the scheme was asked for; `options` are those of the scheme that
    were given, `template` that of its templates that is wanted, if it is one."""

    where: str
    named: bool
    brokers: int | None
    options: Mapping[str, str]
    hosts: bool  # an application
    template: str = ""


class Scheme(ABC):
    """How brokers work together."""

    kind: ClassVar[str]  # as site files name it
    about: ClassVar[str]  # a line for people who choose
    page: ClassVar[str]  # that describes it, of docs/
    settings: ClassVar[msgspec.Struct]  # the defaults of what people may choose: holdfast.kernel.settings
    tables: ClassVar[Mapping[str, type]] = {}  # of the site file, besides those that all have
    called: ClassVar[str] = "network"  # the brokers of a site together, in what people are told
    has_links: ClassVar[bool] = True  # whether [[link]] and [topology] say which brokers are joined
    has_spares: ClassVar[bool] = False  # whether brokers may be there that take part later
    # Whether clients see one broker, wherever they connect, with one log and the same names. Else each of the brokers
    # is the home of some clients.
    is_one_broker: ClassVar[bool] = False
    prediction: ClassVar[Prediction | None] = None
    catalogue: ClassVar[Catalogue]  # what its brokers say, also to clients, and keep
    measures: ClassVar[Mapping[str, str]] = {}  # of its brokers, besides those that all have → what they mean
    measures_by_name: ClassVar[Mapping[str, str]] = {}  # likewise, of which there is one for each of several names
    init_options: ClassVar[Mapping[str, InitOption]] = {}
    templates: ClassVar[Mapping[str, Template]] = {}  # by names that no scheme has
    demo: ClassVar[str] = ""  # the module of examples/ that `./demo --scheme` shows

    # ----------------------------------------------------------------------------------------------------- site file
    def read_settings(self, text: SiteText, document: Mapping[str, Any]) -> msgspec.Struct:
        """The settings that a site file says; refused, with its line, if they can't be. By default, all of them in
        `[scheme]`."""
        return read_settings(text, document.get("scheme", {}), "scheme", self.settings, besides=("kind",))

    @abstractmethod
    def complete(self, text: SiteText, document: Mapping[str, Any], site: Site, seeded: Seeded | None) -> Site:
        """The site with its links, or as it is; refused if these brokers can't work together like this."""

    def greeting(self, site: Site, entry: BrokerEntry) -> str:
        """What people are told of a broker that was just started; empty if there is nothing to tell."""
        return ""

    def beside(self, site: Site) -> str:
        """The module of the program that runs beside each of the site's brokers, empty if there is none: what its
        `program(where, log_level)` gives is started with each broker, and asks its node for what there is to do."""
        return ""

    @abstractmethod
    def init_text(self, wish: InitWish) -> str:
        """A site file to start from, with comments, but for the tables that all schemes have."""

    # --------------------------------------------------------------------------------------------------------- nodes
    @abstractmethod
    def make_node(self, making: Making) -> Node:
        """A broker; WrongLog if the disk is another's."""

    def owns_disk(self, site: Site) -> bool:
        """Whether drivers see to it that a broker finds its own disk; else the node does so itself, or any will do."""
        return len(site.brokers) > 1

    # -------------------------------------------------------------------------------------------------------- people
    def status(self, rows: Sequence[Mapping[str, Any]]) -> list[Section]:
        """What `holdfast status` shows of brokers that work together, besides a row for each. `rows` are all brokers
        that were asked, also those that did not answer."""
        return []

    def is_missed(self, broker: str, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Whether something is wrong if this broker does not answer."""
        return True

    def speaker(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
        """The one that knows what all know, if they are one broker, and one such is there."""
        return None
