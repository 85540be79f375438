"""What only the third scheme does: answers that wait for neighbours, cycles, and a client with two links."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

import holdfast
from experiments.processes import LOOK_EVERY_S
from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.kit import BrokerKit
from holdfast.broker.scheme import Making, Place, Told
from holdfast.kernel.inputs import LinkDown, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Append, Connect, Disconnect, SetTimer
from holdfast.kernel.storage import EVENTS, FEEDS, LogBounds, StoredStreams
from holdfast.protocols.core.session import Session
from holdfast.protocols.desks.overlay import EVERYTHING
from holdfast.protocols.sessions.messages import Accepted, Publish, SessionOpened
from holdfast.sim.run import Factories, run_scenario
from tests.schemes.flood.flooding import Flooding
from tests.schemes.flood.messages import AskWitness, FindWitness, Flooded, FloodItem, Stored, Witnessed, WitnessFound
from tests.schemes.flood.scheme import SCHEME, FloodKit
from tests.schemes.flood.settings import DEFAULTS
from tests.schemes.flood.swarm import SWARM
from tests.schemes.sites import InitialProcesses
from tests.sessions.bench import Bench, BrokerBench, batch, sent, shown

P = "client:p"
NAMES = ("a", "b", "c")
RING = (("a", "b"), ("b", "c"), ("c", "a"))


class FloodBench(BrokerBench):
    """Broker `a` of a ring of three."""

    def __init__(self, streams: StoredStreams | None = None) -> None:
        places = tuple(Place(name, f"{name}:1", f"{name}:2") for name in NAMES)
        told = Told(BrokerSettings("a", durable=True), DEFAULTS, places, RING)
        node: Any = SCHEME.make_node(Making(told, Random(1), streams or {}))
        Bench.__init__(self, node)
        self.links, self._last_link = {}, 0
        self.kept: dict[str, list[Any]] = {"state": [], FEEDS: []}
        self.handle(Started(1, "disk", {EVENTS: LogBounds(1, 1)}))

    def handle(self, *inputs: Any) -> list[Any]:
        effects = super().handle(*inputs)
        for effect in effects:
            if isinstance(effect, Append) and effect.stream in self.kept:
                self.kept[effect.stream].append(effect.record)
        return effects

    def meet(self, *names: str) -> list[Any]:
        effects: list[Any] = []
        for name in names:
            self._last_link += 1
            self.links[name] = self._last_link
            effects += self.handle(LinkUp(self._last_link, name, 1, Role.BROKER, False))
        self.drain()
        return shown(effects)

    def hear(self, name: str, *said: Message) -> list[Any]:
        effects = self.handle(Received(self.links[name], name, list(said)))
        self.drain()
        return shown(effects)


def stored(*names: str, through: int) -> dict[str, Stored]:
    return {name: Stored("a", "disk", through) for name in names}


def test_a_publisher_is_answered_when_every_neighbour_has_stored_what_it_published() -> None:
    bench = FloodBench()
    bench.meet("b", "c")
    bench.open("p")
    said = bench.say("p", Publish(1, batch(1, 2)))
    assert sent(said, P) == [Accepted(0)]
    assert [(message.first, message.origin) for message in sent(said, "b") + sent(said, "c")] == [(1, "a"), (1, "a")]
    assert sent(bench.hear("b", Stored("a", "disk", 2)), P) == []
    assert sent(bench.hear("c", Stored("a", "disk", 1)), P) == []
    assert sent(bench.hear("c", Stored("a", "disk", 2)), P) == [Accepted(2)]


def test_an_answer_that_was_given_is_not_taken_back_by_a_crash() -> None:
    before = FloodBench()
    before.meet("b", "c")
    opened = sent(before.open("p"), P)[0]
    before.say("p", Publish(1, batch(1)))
    for name in ("b", "c"):
        before.hear(name, Stored("a", "disk", 1))
    before.say("p", Publish(2, batch(2)))
    before.hear("b", Stored("a", "disk", 2))
    after = FloodBench(before.kept)
    after.meet("b", "c")
    again = sent(after.open("p", epoch=opened.epoch), P)[0]
    assert isinstance(again, SessionOpened)
    assert again.accepted == 1
    assert sent(after.hear("c", Stored("a", "disk", 2)), P) == [Accepted(2)]


def test_what_the_journal_has_and_the_feeds_have_not_is_fed_again_after_a_crash() -> None:
    """The disk's end may be torn between the two."""
    before = FloodBench()
    opened = sent(before.open("p"), P)[0]
    before.say("p", Publish(1, batch(1)))
    before.say("p", Publish(2, batch(2)))
    after = FloodBench({**before.kept, FEEDS: before.kept[FEEDS][:-1]})
    assert sent(after.open("p", epoch=opened.epoch), P)[0].accepted == 0
    assert [message.first for message in sent(after.meet("b"), "b")] == [1, 2]
    after.meet("c")
    for name in ("b", "c"):
        answers = sent(after.hear(name, Stored("a", "disk", 2)), P)
    assert answers == [Accepted(2)]


def test_what_was_published_and_not_stored_by_a_neighbour_comes_to_it_over_its_next_link() -> None:
    bench = FloodBench()
    bench.meet("b")
    bench.open("p")
    bench.say("p", Publish(1, batch(1)), Publish(2, batch(2)))
    assert [message.first for message in sent(bench.meet("c"), "c")] == [1, 2]
    bench.hear("c", Stored("a", "disk", 1))
    bench.handle(LinkDown(bench.links["c"], "c", "gone"))
    assert [message.first for message in sent(bench.meet("c"), "c")] == [2]


def test_an_event_that_comes_by_two_ways_goes_on_once_and_is_stored_once() -> None:
    bench = FloodBench()
    bench.meet("b", "c")
    event = Flooded("b", "disk of b", 1, batch(1))
    first = bench.hear("b", event)
    assert sent(first, "b") == [Stored("b", "disk of b", 1)]
    assert [message.origin for message in sent(first, "c")] == ["b"]
    second = bench.hear("c", event)
    assert sent(second, "c") == [Stored("b", "disk of b", 1)]
    assert sent(second, "b") == []
    assert bench.node.measure()["flood_duplicates_total"] == 1


@pytest.mark.parametrize(
    "said",
    [
        Flooded("b", "disk of b", 0, batch(1)),
        Flooded("b", "disk of b", 3, batch(3)),
        Flooded("b", "disk of b", 2, batch()),
        Stored("a", "disk", 1),
        Stored("x", "disk of x", 5),
    ],
)
def test_a_neighbour_that_says_what_can_not_be_loses_its_link(said: Message) -> None:
    bench = FloodBench()
    bench.meet("b", "c")
    bench.hear("b", Flooded("b", "disk of b", 1, batch(1)))
    ended = bench.hear("b", said)
    assert [effect.link for effect in ended if isinstance(effect, Disconnect)] == [bench.links["b"]]


def test_who_is_no_neighbour_is_sent_away_and_neighbours_are_dialled_again() -> None:
    bench = FloodBench()
    ended = bench.meet("x")
    assert [effect.link for effect in ended if isinstance(effect, Disconnect)] == [bench.links["x"]]
    bench.meet("b")
    effects = bench.handle(LinkDown(bench.links["b"], "b", "gone"))
    (timer,) = [effect for effect in effects if isinstance(effect, SetTimer) and effect.key[:2] == ("flooding", "dial")]
    assert timer.after == DEFAULTS.dial_every
    assert [effect.address for effect in bench.advance(timer.after) if isinstance(effect, Connect)] == ["b:2"]


def test_a_client_is_told_of_a_witness_and_by_it_what_has_come_there() -> None:
    bench = FloodBench()
    bench.meet("b", "c")
    bench.open("p")
    assert sent(bench.say("p", FindWitness()), P) == [WitnessFound("b:1")]
    bench.hear("b", Flooded("b", "disk of b", 1, batch(7, publisher="q")))
    bench.open("q")
    assert sent(bench.say("q", AskWitness()), "client:q") == [Witnessed(1, 7)]


class AnswersAtOnce(Flooding):
    def answerable_through(self, session: Session) -> int:
        return EVERYTHING


class AnswersForOneNeighbour(Flooding):
    def _is_unanswered(self, item: FloodItem) -> bool:
        return all(through < item.last for through in self._stored.values())


class ForgetsWhatItAnswered(Flooding):
    """What neighbours have stored is not on the disk: after a crash their word is waited for again."""

    def _recover(self, streams: StoredStreams) -> None:
        super()._recover(streams)
        self._stored = dict.fromkeys(self._stored, 0)
        self._unanswered.clear()
        for _, items in self._kept:
            self._unanswered.extend(item for item in items if item.origin == self._settings.name)


@pytest.mark.parametrize("mistake", [AnswersAtOnce, AnswersForOneNeighbour, ForgetsWhatItAnswered])
def test_a_mistake_in_its_answers_is_seen_by_the_swarm(mistake: type[Flooding]) -> None:
    mutant = Factories(kit=BrokerKit(scheme=FloodKit(mistake)))
    shape = SWARM.shapes["flood"]
    assert any(run_scenario(shape.draw(seed), mutant).problem for seed in range(1, 121))


def test_a_bus_has_two_links_and_publishes_only_while_all_neighbours_store(tmp_path: Any) -> None:
    async def publish(site: InitialProcesses) -> tuple[int, bool]:
        async with site.connect("b1", "two-links") as bus:
            for n in range(5):
                await bus.publish({"n": n}, topic="t")
            async with asyncio.timeout(20):
                while witnessed(bus) < 5:
                    await asyncio.sleep(LOOK_EVERY_S)
            site.stop("b2")
            waiting = asyncio.ensure_future(bus.publish({"n": 5}, topic="t"))
            done, _ = await asyncio.wait([waiting], timeout=1.0)
            await site.start_beside("b2")
            async with asyncio.timeout(20):
                await waiting
            return witnessed(bus), bool(done)

    with InitialProcesses(tmp_path, "flood") as site:
        site.start()
        seen, was_answered = asyncio.run(publish(site))
    assert seen >= 5
    assert not was_answered


def witnessed(bus: holdfast.Bus) -> int:
    runner = bus._connection._runner
    return 0 if runner is None else runner.measure()["witnessed"]
