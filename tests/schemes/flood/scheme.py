"""The scheme as others see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

from holdfast.broker.assembly import make_journalled
from holdfast.broker.catalogue import catalogue_of
from holdfast.broker.links import Seeded, read_links
from holdfast.broker.scheme import InitWish, Making, Scheme
from holdfast.broker.settings_table import default_lines
from holdfast.broker.site import Site, check_joined
from holdfast.broker.site_text import SiteText
from holdfast.broker.status import Remark, Section, Tone
from holdfast.kernel.node import Node
from holdfast.kernel.storage import FEEDS, StoredStreams
from holdfast.protocols.core.arrivals import Arrivals
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.desks.home import Home
from tests.schemes.flood import KIND
from tests.schemes.flood.flooding import Flooding
from tests.schemes.flood.messages import FLOOD_MESSAGES, FLOOD_RECORDS, LARGE_FLOOD_MESSAGES
from tests.schemes.flood.settings import DEFAULTS, FloodSettings, flood_of
from tests.schemes.flood.witnesses import Witnesses

BROKERS: Final = 3


class FloodKit(msgspec.Struct, frozen=True):
    flooding: type[Flooding] = Flooding


class FloodScheme(Scheme):
    kind: ClassVar[str] = KIND
    about: ClassVar[str] = "every event goes to every broker"
    page: ClassVar[str] = "schemes.md"
    settings: ClassVar[FloodSettings] = DEFAULTS
    catalogue = catalogue_of(KIND, FLOOD_MESSAGES, FLOOD_RECORDS, LARGE_FLOOD_MESSAGES)
    measures: ClassVar[Mapping[str, str]] = {
        "flood_pending_events": "events that neighbours have not stored, once for each",
        "flood_duplicates_total": "events that came a second time, over another link",
    }

    # ----------------------------------------------------------------------------------------------------- site file
    def complete(self, text: SiteText, document: Mapping[str, Any], site: Site, seeded: Seeded | None) -> Site:
        for place, entry in enumerate(site.brokers):
            if not entry.data:
                text.refuse(f"broker {entry.id!r} has no data: others count on what it stores", "", "broker", place)
        check_joined(text, site, "broker", "broker")
        return replace(site, links=read_links(text, document, [entry.id for entry in site.brokers], seeded))

    def init_text(self, wish: InitWish) -> str:
        count = BROKERS if wish.brokers is None else wish.brokers
        settings = [f"{said:<20} # {about}" for said, about in default_lines(DEFAULTS)]
        lines = ['name = "my-site"', "", "[scheme]", f'kind = "{KIND}"', *settings, ""]
        for number in range(1, count + 1):
            addresses = f'address = "127.0.0.1:{7410 + number}"', f'peer_address = "127.0.0.1:{7510 + number}"'
            lines += ["[[broker]]", f'id = "b{number}"', *addresses, f'data = "var/b{number}"', ""]
        for number in range(1, count + 1 if count > 2 else count):  # a ring
            lines += ["[[link]]", f'between = ["b{number}", "b{number % count + 1}"]', ""]
        return "\n".join(lines) + "\n"

    # --------------------------------------------------------------------------------------------------------- nodes
    def make_node(self, making: Making) -> Node:
        settings, kit = flood_of(making.told), making.kit
        own = kit.scheme if isinstance(kit.scheme, FloodKit) else FloodKit()

        def weave(home: Home, recovered: Sequence[Entered], streams: StoredStreams) -> Flooding:
            return own.flooding(settings, home, Witnesses(settings), recovered, streams)

        return make_journalled(
            KIND, making.told.broker, making.streams, making.application, kit, (FEEDS,), Arrivals(), weave
        )

    # -------------------------------------------------------------------------------------------------------- people
    def status(self, rows: Sequence[Mapping[str, Any]]) -> list[Section]:
        members = [row for row in rows if row.get("scheme") == KIND]
        lines = [["broker", "neighbours", "up", "pending"]]
        for row in members:
            pending = f"{row['measures']['flood_pending_events']:,}"
            lines.append([row["broker"], row["neighbours"], row["neighbours_up"] or "none", pending])
        lost = len(rows) - len(members)
        return [Section(lines, [Remark(f"{lost} brokers do not answer", Tone.ALARM)] if lost else [])]


SCHEME: Final = FloodScheme()
