"""A broker with a journal of its own, from the parts that all such brokers have and the overlay of its scheme."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.kit import BrokerKit
from holdfast.errors import WrongLog
from holdfast.kernel.application import Hosted
from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.core.arrivals import Arrivals
from holdfast.protocols.core.hosting import Hosting
from holdfast.protocols.core.interests import Interests
from holdfast.protocols.core.outputs import Entered
from holdfast.protocols.desks.application_desk import ApplicationDesk
from holdfast.protocols.desks.census import CoreCensus
from holdfast.protocols.desks.home import Home
from holdfast.protocols.desks.names_desk import NamesDesk
from holdfast.protocols.desks.overlay import Alone, Overlay
from holdfast.protocols.desks.sequencer import STREAM, SnapshotTaker
from holdfast.protocols.operating.desk import OperatorDesk

# Of the broker that it carries events for; what the journal says was published there; what the disk kept.
MakeOverlay = Callable[[Home, Sequence[Entered], StoredStreams], Overlay]


class PlainFacts(msgspec.Struct, frozen=True):
    """That do not change while a broker runs."""

    told: dict[str, str]

    def facts(self) -> dict[str, str]:
        return self.told


def check_streams(streams: StoredStreams, own: Sequence[str]) -> None:
    """Refuses the disk of a broker of another scheme: `own` are the streams that this one writes."""
    foreign = [name for name, records in streams.items() if records and name not in own]
    if foreign:
        kept = ", ".join(map(repr, sorted(foreign)))
        raise WrongLog(f"the data are those of a broker of another scheme: they hold {kept}; it needs its own folder")


def make_journalled(
    kind: str,
    settings: BrokerSettings,
    streams: StoredStreams,
    application: Hosted | None,
    kit: BrokerKit,
    own_streams: Sequence[str] = (),
    arrivals: Arrivals | None = None,
    make_overlay: MakeOverlay | None = None,
) -> Assembly:
    """A broker of the scheme `kind`, from what its disk kept: on its own, or with an overlay that carries events to and
    from others; `arrivals` tells then which of those came before. An application that is given is a new one."""
    check_streams(streams, (STREAM, *own_streams))
    hosted = Hosting(application, settings.application, settings.hosting)
    interests = None if make_overlay is None else Interests()
    core = kit.core(settings.limits, settings.durable, hosted, interests, arrivals)
    sequencer = kit.sequencer(core, settings.durable, settings.snapshot_every)
    sequencer.recover(streams)
    overlay: Overlay = Alone()
    if make_overlay is not None:
        overlay = make_overlay(Home(core, sequencer), sequencer.recovered_entered, streams)
    sessions = kit.sessions(settings.name, core, sequencer, settings.desk, overlay)
    events = kit.events(sequencer.recovered)
    log = kit.log(core, sequencer, sessions, events, settings.retention, settings.delivery)
    names = NamesDesk(settings.name, core, sequencer, sessions)
    # The sequencer comes first: it journals a turn before the log is written, and before anyone is told.
    parts = [sequencer, log, *overlay.parts, sessions, ApplicationDesk(core, sequencer, sessions), names]
    plain = PlainFacts({"scheme": kind, "durable": "yes" if settings.durable else "no"})
    desk = OperatorDesk(settings.name, parts, CoreCensus(core, overlay), names, [plain, overlay, names], overlay)
    return Assembly([*parts, desk, SnapshotTaker(sequencer)])
