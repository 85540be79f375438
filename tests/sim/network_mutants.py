"""Mistakes that a network could have, each with the level at which the checkers see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from holdfast.broker.kit import BrokerKit
from holdfast.kernel.inputs import LinkDown, Started
from holdfast.kernel.outbox import NOW, Outbox
from holdfast.kernel.storage import StoredStreams
from holdfast.model import Filter
from holdfast.model.batch import EventBatch
from holdfast.protocols.desks.home import Home
from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.covered import Outlet
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.gate import Gate
from holdfast.protocols.routing.messages import AcknowledgeEvents, Forward
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.notices import Detoured, NeighbourConnected, NeighbourUnlinked
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.router import LOCAL, Router
from holdfast.protocols.routing.settings import Reliability, RoutingSettings
from holdfast.protocols.routing.store import EventStore
from holdfast.protocols.routing.teller import Teller
from holdfast.schemes.tree.draw_network import NetworkShape
from holdfast.schemes.tree.kit import NetworkKit
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.scenario import Scenario
from tests.sim.claims import claims_watched


class AcknowledgesBeforeStoring(Forwarding):
    """D1-B4: the acknowledgement leaves while the event is only in memory."""

    def on_forward(self, peer: str, message: Forward, out: Outbox) -> None:
        super().on_forward(peer, message, out)
        out.send(peer, AcknowledgeEvents(self._taken.through(peer)), after=NOW)


class IntroducesBeforeStoring(Forwarding):
    """D1-A11: an introduction says that events are stored that are only in memory."""

    def on_neighbour_connected(self, connected: NeighbourConnected, out: Outbox) -> None:
        self._taken.recover(dict(self._taken._now))
        super().on_neighbour_connected(connected, out)


class SendsBeforeStoring(Forwarding):
    """Numbers leave that the disk does not have: after a crash they stand for other events."""

    def finish(self, out: Outbox) -> None:
        store, self._store = self._store, None
        super().finish(out)
        self._store = store
        if store is not None:
            store.finish(self.feeds, out)


class ForgetsWithTheLink(Forwarding):
    """D1-B4: what was not acknowledged is not sent again."""

    def on_neighbour_unlinked(self, unlinked: NeighbourUnlinked, out: Outbox) -> None:
        super().on_neighbour_unlinked(unlinked, out)
        feed = self.feeds.get(unlinked.peer)
        if feed is not None:
            feed.replace([])


class KeepsNothing(EventStore):
    """D1-B4.2: what is buffered does not outlive the broker that buffers it."""

    def __init__(self, peers: Any, streams: StoredStreams, recovered: Any) -> None:
        super().__init__(peers, streams, recovered)
        self._records = [
            msgspec.structs.replace(record, events=msgspec.Raw(b"\x90"), places=[]) for record in self._records
        ]


class NoAnswerIsAnAnswer(Answers):
    """D1-B4.1: what is advertised to a neighbour that is not there is taken for unwanted."""

    def _expect(self, router: Router, peer: str, side: Any, entry: str, filter: Filter) -> None:
        pass


class TrustsAnEmptyTable(Neighbours):
    """D1-B4.1: a broker that has lost its table takes it for the whole truth, and acknowledges."""

    def on_started(self, started: Started, out: Outbox) -> None:
        for source in self.router.neighbours:
            self.router.replace(source, {}, {})
        super().on_started(started, out)


class AnswersBeforeStoring(Neighbours):
    """D1-B4.1: an answer to a telling does not wait until the disk has what was told."""

    def _say_settled(self, out: Outbox) -> None:
        early = _Now(out)
        super()._say_settled(early)  # type: ignore[arg-type]


class _Now:
    """An outbox whose messages wait for nothing."""

    def __init__(self, out: Outbox) -> None:
        self._out = out

    def send(self, to: str, message: Any, *rest: Any, **options: Any) -> None:
        self._out.send(to, message, after=NOW)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


class ForgetsWhatCameAround(Forwarding):
    """D1-B6: what came around is remembered among the newest so many, and not until it comes on the tree."""

    def __init__(self, settings: RoutingSettings, roster: Roster, home: Home, *rest: Any) -> None:
        super().__init__(settings, roster, home, *rest)
        home._core.arrivals.are_stored = False


class ForwardsBack(Router):
    """D0-B1: an event goes back to where it came from."""

    def match(self, source: str, batch: EventBatch) -> dict[str, Sequence[int]]:
        return super().match(LOCAL, batch)


class DoesNotPull(Router):
    """D0-B1.1: an advertisement that comes late leaves the subscriptions where they are."""

    _blind = False

    def advertise(self, source: str, entry: str, filter: Filter) -> None:
        self._blind = True
        super().advertise(source, entry, filter)
        self._blind = False

    def intersecting_beside(self, source: str, filter: Filter) -> list[tuple[str, Filter]]:
        return [] if self._blind else super().intersecting_beside(source, filter)


class _ForgetsToUncover(Outlet):
    def _uncover(self, entries: list[str]) -> None:
        for entry in entries:
            del self.wanted[entry]


class ForgetsToUncover(Router):
    """D2-B4: what the broader subscription hid is never told."""

    def __init__(self, neighbours: Any, advertisements: bool = True, covering: bool = True, *others: Any) -> None:
        super().__init__(neighbours, advertisements, covering, *others)
        self.subscription_outlets = {neighbour: _ForgetsToUncover(covering) for neighbour in self.neighbours}


class NeverRefreshes(Teller):
    """D1-B3: who was restarted is told nothing, at once or later."""

    def _tell_all(self, peer: str, hearer: Any, out: Outbox, always: bool = False) -> int:
        if hearer.life and self._awaited.is_ready and out.now > 3_000_000_000:
            hearer.sync()
            self._router.take(peer)
            return 0
        return super()._tell_all(peer, hearer, out, always)


class DropsWhatWasSaid(Neighbours):
    """D1-B5: what those beyond a failed broker say is not listened to."""

    def on_detoured(self, detoured: Detoured, out: Outbox) -> None:
        pass


class NoWayAround(Forwarding):
    """D1-B5: events do not go around a failed broker."""

    def _go_around(self, peer: str, events: Any, out: Outbox) -> None:
        pass


class Impatient(Gate):
    """A publisher of something new does not wait until those who want it are known."""

    def _must_wait(self, client: str) -> bool:
        return False


class HoldsForEver(Gate):
    """Whoever has to wait waits for ever."""

    def _release(self, client: str, out: Outbox) -> None:
        pass


class HoldsOverALostLink(Gate):
    """What waits outlives its link, and is handed to the client's next life."""

    def on_link_down(self, down: LinkDown, out: Outbox) -> None:
        pass

    def _release(self, client: str, out: Outbox) -> None:
        if client in self._held and client in self._home._core.sessions:
            self._held[client].epoch = self._home._core.sessions[client].epoch
        super()._release(client, out)


class ShufflesAPublisher(Forwarding):
    """D0-C25: the events of one message leave in the wrong order."""

    def _route(self, source: str, batch: EventBatch, out: Outbox) -> None:
        super()._route(source, EventBatch.of(batch.slices[::-1]), out)


class NetworkMutant(msgspec.Struct, frozen=True):
    """What is wrong, and at which level it can be seen."""

    mistake: str
    kit: NetworkKit
    level: Reliability
    swarm: ClassVar[str] = "networks"

    @property
    def factories(self) -> Factories:
        return Factories(kit=BrokerKit(scheme=self.kit))

    def seen(self, seed: int) -> str:
        return run_scenario(self._drawn(seed), claims_watched(self.factories)).problem

    def sound(self, seed: int) -> str:
        return run_scenario(self._drawn(seed), claims_watched()).problem

    def _drawn(self, seed: int) -> Scenario:
        return NetworkShape(reliability=self.level).draw(seed)


def _mutant(mistake: str, level: str, **parts: type) -> NetworkMutant:
    return NetworkMutant(mistake, NetworkKit(**parts), Reliability(level))


MUTANTS = [
    _mutant("acknowledges-before-storing", "buffered", forwarding=AcknowledgesBeforeStoring),
    _mutant("introduces-before-storing", "buffered", forwarding=IntroducesBeforeStoring),
    _mutant("answers-before-storing", "buffered", neighbours=AnswersBeforeStoring),
    _mutant("forgets-with-the-link", "buffered", forwarding=ForgetsWithTheLink),
    _mutant("keeps-nothing", "buffered", store=KeepsNothing),
    _mutant("trusts-an-empty-table", "buffered", neighbours=TrustsAnEmptyTable, answers=NoAnswerIsAnAnswer),
    _mutant("takes-silence-for-an-answer", "buffered", answers=NoAnswerIsAnAnswer),
    _mutant("forwards-back", "none", router=ForwardsBack),
    _mutant("does-not-pull", "none", router=DoesNotPull),
    _mutant("forgets-to-uncover", "none", router=ForgetsToUncover),
    _mutant("impatient", "none", gate=Impatient),
    _mutant("holds-for-ever", "none", gate=HoldsForEver),
    _mutant("shuffles-a-publisher", "none", forwarding=ShufflesAPublisher),
    _mutant("never-refreshes", "periodic", teller=NeverRefreshes),
    _mutant("no-way-around", "bypass", forwarding=NoWayAround),
    _mutant("forgets-what-came-around", "bypass+buffered", forwarding=ForgetsWhatCameAround),
]

# Only small networks made for them show these: tests/sim/test_network_levels.py, tests/sim/test_regressions.py.
DIRECTED = [
    _mutant("holds-over-a-lost-link", "buffered", gate=HoldsOverALostLink),
    _mutant("sends-before-storing", "buffered", forwarding=SendsBeforeStoring),
    _mutant("drops-what-was-said", "bypass", neighbours=DropsWhatWasSaid),
]

BY_NAME = {mutant.mistake: mutant for mutant in (*MUTANTS, *DIRECTED)}
