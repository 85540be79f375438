"""Brokers that are replicas of a group, under the simulator: catching up, and what a replica must hold to lead."""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Any

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.client_assembly import make_client
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Assembly
from holdfast.kernel.storage import EVENTS
from holdfast.kernel.time import MILLISECOND
from holdfast.model.event import Event, encode_batch, encode_event
from holdfast.protocols.core import commands
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.limits import CoreLimits
from holdfast.protocols.core.outputs import Kept
from holdfast.protocols.cursors import requests as log_requests
from holdfast.protocols.cursors.messages import EARLIEST, AskEvents
from holdfast.protocols.desks import refill
from holdfast.protocols.desks.refill import Refill
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.messages import Overflow
from holdfast.schemes.catalogue import MESSAGES, RECORDS
from holdfast.schemes.paxos.learner import Learner
from holdfast.schemes.paxos.parts import make_replica
from holdfast.schemes.paxos.settings import Member, PaxosSettings
from holdfast.sim.disk import Disk
from holdfast.sim.latency import Constant, build
from holdfast.sim.machine import Machine, Program
from holdfast.sim.simulation import Simulation

NAMES = ("r1", "r2", "r3")


class Answers(Program):
    def __init__(self) -> None:
        self.got: dict[int, Any] = {}
        self.delivered: list[int] = []
        self.attempts: list[int] = []

    def on_started(self, host: Machine) -> None: ...

    def on_deliver(self, host: Machine, subscription: int, events: Collection[Any]) -> None:
        self.delivered += [event.attributes["n"] for event in events]
        self.attempts += [event.attempt for event in events]
        if subscription < 0:  # a named one; it is left to wait
            return
        host.request(0, requests.Consume(subscription, len(events)))

    def on_complete(self, host: Machine, request: int, result: Any) -> None:
        self.got[request] = result


class World:
    """A group of three, and one client."""

    def __init__(self, limits: CoreLimits | None = None, **settings: Any) -> None:
        self._limits = limits or CoreLimits()
        self.simulation = Simulation(MESSAGES, 1, build(Constant(delay_us=200), Random(1)), checking=True)
        members = tuple(Member(name, name, name) for name in NAMES)
        self.nodes: dict[str, Assembly] = {}
        for name in NAMES:
            group = PaxosSettings(name, members, **settings)
            self.simulation.add_machine(
                name, Role.BROKER, self._factory(group), Disk(RECORDS, Random(name), (100, 500))
            )
        self.answers = Answers()
        client = ClientSettings("c", NAMES, batch_events=1)
        self.client = self.simulation.add_machine(
            "c", Role.CLIENT, lambda rng, streams: make_client(client, rng, streams), program=self.answers
        )
        self._requests = 0
        for host in self.simulation.machines.values():
            host.start()
        self.run(2_000)

    def _factory(self, group: PaxosSettings) -> Any:
        def make(rng: Random, streams: Any) -> Assembly:
            node = self.nodes[group.name] = make_replica(
                BrokerSettings(group.name, True, self._limits), group, rng, streams
            )
            return node

        return make

    def run(self, ms: int) -> None:
        self.simulation.run(self.simulation.now + ms * MILLISECOND, lambda: False)

    def ask(self, command: Any) -> int:
        self._requests += 1
        self.client.request(self._requests, command)
        return self._requests

    def publish(self, count: int) -> None:
        for n in range(count):
            self.ask(requests.PublishEvents([requests.NewEvent({"n": n}, "", bytes(100), 0)], True))
        self.run(1_000)

    def head(self) -> Any:
        request = self.ask(log_requests.AskBounds())
        self.run(1_000)
        return self.answers.got[request].head

    def host(self, name: str) -> Machine:
        return self.simulation.machines[name]

    def learner(self, name: str) -> Learner:
        return next(part for part in self.nodes[name].parts if isinstance(part, Learner))

    def measures(self, name: str) -> dict[str, int]:
        return self.nodes[name].measure()

    def held(self, name: str) -> int:
        """The last event on the replica's disk."""
        disk = self.host(name).disk
        assert disk is not None
        bounds = disk.bounds()[EVENTS]
        assert bounds.first == 1
        return bounds.next - 1

    @property
    def leader(self) -> str:
        leading = [n for n in NAMES if self.host(n).running and self.measures(n)["replica_is_leading"]]
        return max(leading, key=lambda name: self.measures(name)["replica_ballot"])

    def followers(self) -> list[str]:
        return [name for name in NAMES if name != self.leader]


def lagging(**settings: Any) -> tuple[World, str]:
    """A group whose log was cut while one of its replicas was away: that one needs a snapshot."""
    world = World(trim_every=5, trim_keep=1, repeat_after=20 * MILLISECOND, **settings)
    world.publish(20)
    away = world.followers()[0]
    assert world.held(away) == 20
    world.host(away).stop(power_cut=False)
    for _ in range(5):
        world.publish(40)
    return world, away


def test_a_replica_that_took_a_snapshot_fetches_the_events_that_are_not_in_it() -> None:
    world, away = lagging()
    world.host(away).start()
    world.run(2_000)
    assert world.measures(away)["replica_events_missing"] == 0
    assert {name: world.held(name) for name in NAMES} == dict.fromkeys(NAMES, 220)
    world.publish(3)
    assert {name: world.held(name) for name in NAMES} == dict.fromkeys(NAMES, 223)
    assert world.head() == 223


def test_a_replica_that_has_written_nothing_since_it_was_restarted_gives_events_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, away = lagging()
    leader = world.leader
    third = next(name for name in NAMES if name not in (away, leader))
    real = Refill.on_ask_events

    def on_ask_events(self: Refill, peer: str, ask: AskEvents, out: Outbox) -> None:
        if self in world.nodes[third].parts:
            real(self, peer, ask, out)

    monkeypatch.setattr(Refill, "on_ask_events", on_ask_events)
    leading = next(part for part in world.nodes[leader].parts if isinstance(part, Refill))
    monkeypatch.setattr(leading._log, "durable_head", 0)  # the leader has nothing to give
    world.host(third).stop(power_cut=False)
    world.host(third).start()
    world.run(100)
    world.host(away).start()
    world.run(2_000)
    assert world.leader == leader
    assert world.host(third).out.token == 0, "it has written nothing"
    assert world.held(away) == 220


def test_a_replica_that_lacks_events_does_not_lead_until_it_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refill, "FETCHED_FIRST_BYTES", 0)  # what it lacks is taken for much
    with monkeypatch.context() as patch:
        patch.setattr(Refill, "on_ask_events", lambda self, peer, ask, out: None)  # no one gives what it lacks
        world, away = lagging()
        leader = world.leader
        world.host(away).start()
        world.run(1_000)
        assert world.measures(away)["replica_events_missing"] > 0
        world.host(leader).stop(power_cut=False)
        world.run(3_000)
        assert not world.measures(away)["replica_is_leading"]
        assert world.leader not in (away, leader)
        world.publish(5)  # it votes all the same
        assert world.head() == 225
        third = world.leader
        world.host(third).stop(power_cut=False)
        world.host(away).stop(power_cut=True)
    world.host(third).start()
    world.host(away).start()  # it knows what it lacks
    world.run(3_000)
    assert world.held(away) == 225
    assert world.head() == 225


def test_a_state_whose_events_nobody_gives_is_not_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stays as it was, and can lead: what it voted for is enough to get to what was decided."""
    given: list[bool] = []
    real = Refill.on_ask_events

    def on_ask_events(self: Refill, peer: str, ask: AskEvents, out: Outbox) -> None:
        if given:
            real(self, peer, ask, out)

    monkeypatch.setattr(Refill, "on_ask_events", on_ask_events)
    world, away = lagging()
    world.host(away).start()
    executed = world.learner(away)._decided.executed
    world.run(5_000)
    assert world.learner(away)._decided.executed == executed
    assert world.measures(away)["replica_events_missing"] == 200
    assert world.learner(away)._holdings.is_whole()
    given.append(True)
    world.run(1_000)
    assert world.held(away) == 220
    assert world.learner(away)._decided.executed == world.learner(world.leader)._decided.executed


@pytest.mark.parametrize("under_load", [False, True])
def test_two_of_three_find_a_leader_though_one_took_a_state_and_the_other_lacks_its_snapshot_of_it(
    monkeypatch: pytest.MonkeyPatch, under_load: bool
) -> None:
    """One took over a state that came of a decision to forget votes, and lacks its events; the other was killed when it
    had voted for that decision and not executed it. It has the votes, and what it needs is support."""
    monkeypatch.setattr(refill, "FETCHED_FIRST_BYTES", 0)  # what is lacking is taken for much
    given: list[bool] = []
    real = Refill.on_ask_events

    def on_ask_events(self: Refill, peer: str, ask: AskEvents, out: Outbox) -> None:
        if given:
            real(self, peer, ask, out)

    monkeypatch.setattr(Refill, "on_ask_events", on_ask_events)
    world, away = lagging(batch_commands=3, pipeline=4)
    first = world.leader
    second = next(name for name in NAMES if name not in (first, away))
    one, two = world.learner(first), world.learner(second)
    assert one._snapshots.latest is not None
    world.publish(0 if under_load else 60)
    before, trim_at, vote = one._snapshots.latest.slot, 0, two._decided.vote

    def hears_late(ballot: int, slots: list[int], who: str) -> None:
        vote(ballot, [slot for slot in slots if who != first or not 0 < trim_at <= slot], who)

    monkeypatch.setattr(two._decided, "vote", hears_late)
    for step in range(40_000):
        if under_load and step % 10 == 0 and trim_at not in two._acceptor.votes:
            world.ask(requests.PublishEvents([requests.NewEvent({"n": step}, "", bytes(100), 0)], True))
        elif not under_load and step == 0:
            for n in range(60):
                world.ask(requests.PublishEvents([requests.NewEvent({"n": n}, "", bytes(100), 0)], True))
        world.simulation.run(world.simulation.now + 20_000, lambda: False)
        if not trim_at and one._snapshots.at > before:
            trim_at = max(one._acceptor.votes)
        before = max(before, 0 if trim_at else one._snapshots.latest.slot)
        if trim_at and one._snapshots.latest.slot >= trim_at:
            break
    assert two._snapshots.latest is not None
    assert two._snapshots.latest.slot < trim_at <= one._snapshots.latest.slot
    world.host(second).stop(power_cut=False)
    world.run(200)
    world.host(away).start()
    world.run(2_000)
    assert not world.learner(away)._holdings.is_whole()
    assert world.learner(away)._decided.executed >= trim_at
    world.host(first).stop(power_cut=False)
    given.append(True)
    world.host(second).start()
    world.run(20_000)
    assert world.leader in (away, second), "two of three are up"


def test_votes_are_forgotten_only_when_a_majority_holds_what_came_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(trim_every=5, trim_keep=1)
    world.publish(20)
    leader = world.learner(world.leader)
    assert leader._decided.executed - min(leader._acceptor.votes, default=0) < 30
    for name in world.followers():
        monkeypatch.setattr(world.learner(name)._holdings, "is_whole", lambda: False)
    world.run(500)  # until they have said so
    first = min(leader._acceptor.votes, default=leader._decided.executed + 1)
    world.publish(60)
    assert min(leader._acceptor.votes) <= first


def test_the_end_of_the_log_is_asked_of_the_group_and_not_of_one_replica() -> None:
    """A leader that is cut off, and deposed meanwhile, does not answer with the end that it knows."""
    world = World()
    world.publish(5)
    old = world.leader
    assert world.head() == 5
    for other in world.followers():
        world.simulation.network.cut(old, other)
        world.simulation.network.cut(other, old)
    request = world.ask(log_requests.AskBounds())
    world.run(200)
    assert old in [name for name in NAMES if world.measures(name)["replica_is_leading"]]
    assert request not in world.answers.got
    world.run(5_000)
    assert world.leader != old
    assert world.answers.got[request].head == 5  # from the next leader


def test_a_blocking_subscription_loses_nothing_though_events_are_applied_later_than_they_are_taken_in() -> None:
    """More is taken in than there is room for, unless what is under way is counted."""
    world = World(limits=CoreLimits(backlog_events=5))
    request = world.ask(requests.MakeSubscription("", Overflow.BLOCK, 3))
    world.run(200)
    assert isinstance(world.answers.got[request], requests.SubscriptionMade)
    for n in range(60):
        world.ask(requests.PublishEvents([requests.NewEvent({"n": n}, "", b"", 0)], True))
    world.run(20_000)
    assert world.answers.delivered == list(range(60))


def test_a_replica_that_does_not_lead_delivers_nothing_to_who_has_a_name() -> None:
    """All execute that a client has a cursor; those that it does not talk to would fill queues that nobody reads, and
    take for delivered, when they lead, what nobody got."""
    world = World()
    request = world.ask(log_requests.MakeCursor("risk", "", EARLIEST, False, 100))
    world.run(500)
    assert isinstance(world.answers.got[request], log_requests.CursorMade)
    world.publish(5)
    sent = {name: world.measures(name)["named_sent_total"] for name in NAMES}
    assert sent == {name: 5 if name == world.leader else 0 for name in NAMES}


def test_what_a_name_came_to_need_since_the_log_was_looked_at_is_kept() -> None:
    """In a group the decision to give events up is carried out later than it is proposed."""
    core = BrokerCore(log=True)
    core.apply(1, 1, commands.OpenSession("client:c", 1, 0))
    epoch = core.sessions["client:c"].epoch
    events = [encode_event(Event("c", 1, n, "", {"n": n}, b"", 0, 0)) for n in (1, 2, 3)]
    core.apply(2, 1, commands.Publish("client:c", epoch, 1, 0, encode_batch(events)))
    core.apply(3, 1, commands.OpenCursor("client:c", epoch, 1, "risk", "", EARLIEST, False, 10, 0, 0, -1))
    assert core.apply(4, 1, commands.KeepLog("", 1, 3)) == [Kept(1)]
    core.apply(5, 1, commands.AcknowledgeCursor("client:c", epoch, 1, 1))
    assert core.apply(6, 1, commands.KeepLog("", 1, 3)) == [Kept(2)]
    assert core.apply(7, 1, commands.KeepLog("", 3, 3)) == [Kept(3)]  # the hard limit


def test_what_is_taken_over_in_a_group_counts_as_handed_out() -> None:
    """More may be sent between a takeover's proposal and its execution, or have been sent by an earlier leader."""
    world = World()
    world.ask(log_requests.MakeCursor("risk", "", EARLIEST, False, 1))
    world.publish(3)
    world.ask(log_requests.MakeCursor("risk", "", EARLIEST, False, 100))
    world.run(500)
    assert world.answers.attempts == [1, 2, 2, 2]
