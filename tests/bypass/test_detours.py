"""Detours, message by message: what is sent, passed on, handed over, dropped and refused (D1-B5)."""

from __future__ import annotations

from collections.abc import Container

import pytest

from holdfast.codec import Registry
from holdfast.errors import ProtocolError
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import LATEST, NOW, After, Effect, Outbox, RecordingOutbox, Send
from holdfast.kernel.queues import Lane
from holdfast.protocols.routing.acquaintances import Acquaintances
from holdfast.protocols.routing.notices import Detoured
from holdfast.schemes.tree.bypass.database import Database
from holdfast.schemes.tree.bypass.detours import Detours
from holdfast.schemes.tree.bypass.messages import Detour, LinkState
from holdfast.schemes.tree.bypass.view import View
from holdfast.topology.graph import BrokerGraph
from tests.bypass.network import CARRIED, Parcel

# The tree is a – b – {c, d}; a – c and c – d are ways around.
BROKERS = ["a", "b", "c", "d"]
TREE = [("a", "b"), ("b", "c"), ("b", "d")]
GRAPH = BrokerGraph(BROKERS, [*TREE, ("a", "c"), ("c", "d")])
KIND, BODY = CARRIED.encode(Parcel(5))


class Trusting:
    """A detector that trusts these."""

    def __init__(self, up: Container[str]) -> None:
        self._up = up

    def trusts(self, peer: str) -> bool:
        return peer in self._up


class Bench:
    """The detours of one broker. All links are up and all brokers ready, but for `without`: links that are down and
    brokers that are not ready."""

    def __init__(self, own: str, *without: str, after: After = LATEST) -> None:
        self.database = Database(GRAPH, own)
        self.database.start(1)
        for broker in BROKERS:
            up = tuple(near for near in GRAPH.neighbours(broker) if not {broker + near, near + broker} & set(without))
            if broker == own:
                for near in up:
                    self.database.set_up(near, True)
            else:
                self.database.merge(GRAPH.neighbours(own)[0], [LinkState(broker, 1, 1, up, broker not in without)])
        view = View(self.database, BrokerGraph(BROKERS, TREE).spanning_tree())
        trusted = self.database.state(own)
        assert trusted is not None
        self.detours = Detours(
            self.database, view, CARRIED, Trusting(trusted.up), Acquaintances(tuple(BROKERS)), after, 200
        )
        self.out = RecordingOutbox()

    @property
    def arrived(self) -> list[tuple[str, Message]]:
        return [(notice.source, notice.message) for notice in self.out.notices if isinstance(notice, Detoured)]

    def receive(self, peer: str, detour: Detour) -> list[Effect]:
        self.detours.on_detour(peer, detour, self.out)
        return self.out.take_effects()

    def counts(self) -> tuple[int, ...]:
        """Sent, passed, arrived, dropped."""
        return tuple(self.detours.measure().values())[:4]


def test_to_a_neighbour_that_is_there_a_message_goes_as_it_is() -> None:
    bench = Bench("a")
    assert bench.detours.send("b", Parcel(5), Lane.USER, bench.out) == ("b",)
    assert bench.out.take_effects() == [Send("b", Parcel(5), Lane.USER, LATEST)]
    assert bench.counts() == (0, 0, 0, 0)


def test_around_a_link_that_is_down_it_goes_to_the_neighbour_itself() -> None:
    bench = Bench("a", "ab")
    assert bench.detours.send("b", Parcel(5), Lane.USER, bench.out) == ("b",)
    assert bench.out.take_effects() == [Send("c", Detour("b", "a", 3, KIND, BODY, True), Lane.USER, LATEST)]


def test_past_a_broker_that_is_not_ready_it_goes_to_each_child_and_what_makes_it_ready_to_itself() -> None:
    bench = Bench("a", "b", after=NOW)
    assert bench.detours.send("b", Parcel(5), Lane.CONTROL, bench.out) == ("c", "d")
    assert bench.out.take_effects() == [
        Send("c", Detour("c", "a", 3, KIND, BODY), Lane.CONTROL, NOW),
        Send("b", Detour("d", "a", 3, KIND, BODY), Lane.CONTROL, NOW),  # two ways are as short; b is the first
    ]
    assert bench.detours.send("b", Parcel(5), Lane.CONTROL, bench.out, unready=True) == ("b",)
    assert bench.out.take_effects() == [Send("b", Parcel(5), Lane.CONTROL, NOW)]
    assert bench.counts() == (2, 0, 0, 0)


def test_with_nobody_left_it_goes_nowhere_and_the_caller_knows() -> None:
    bench = Bench("a", "ab", "ac")
    assert bench.detours.send("b", Parcel(5), Lane.USER, bench.out) == ()
    assert bench.out.take_effects() == []


@pytest.mark.parametrize(("own", "sender", "source"), [("d", "a", "b"), ("d", "c", "b"), ("b", "a", "a")])
def test_who_gets_it_takes_it_as_from_its_own_neighbour_in_the_tree(own: str, sender: str, source: str) -> None:
    bench = Bench(own)
    assert bench.receive("c", Detour(own, sender, 1, KIND, BODY)) == []
    assert bench.arrived == [(source, Parcel(5))]
    assert bench.counts() == (0, 0, 1, 0)


@pytest.mark.parametrize("is_user", [False, True])
def test_what_is_for_another_is_passed_on_with_a_link_less_and_waits_for_no_disk(is_user: bool) -> None:
    bench = Bench("c", "cb")
    lane = Lane.USER if is_user else Lane.CONTROL
    assert bench.receive("a", Detour("b", "a", 3, KIND, BODY, is_user)) == [
        Send("a", Detour("b", "a", 2, KIND, BODY, is_user), lane, NOW)
    ]
    assert (bench.arrived, bench.counts()) == ([], (0, 1, 0, 0))


def test_what_finds_no_way_or_has_taken_too_many_links_is_dropped_and_counted() -> None:
    bench = Bench("c")
    assert bench.receive("a", Detour("b", "a", 1, KIND, BODY)) == []
    alone = Bench("c", "ab", "bd", "bc")
    assert alone.receive("a", Detour("b", "a", 3, KIND, BODY)) == []
    assert (bench.counts(), alone.counts()) == ((0, 0, 0, 1), (0, 0, 0, 1))


def test_views_that_disagree_send_a_detour_in_a_circle_only_until_its_links_are_used_up() -> None:
    """`c` believes that the way to `b` is by `a`, and `a` that it is by `c`."""
    ends = {"a": Bench("a", "ab", "bd"), "c": Bench("c", "cb", "bd")}
    ends["a"].detours.send("b", Parcel(5), Lane.USER, ends["a"].out)
    moving, sent = ends["a"].out.take_effects(), 0
    source = "a"
    while moving:
        [send] = moving
        assert isinstance(send, Send)
        assert isinstance(send.message, Detour)
        sent += 1
        moving, source = ends[send.to].receive(source, send.message), send.to
    assert sent == len(BROKERS) - 1
    assert sum(end.counts()[3] for end in ends.values()) == 1


def test_user_traffic_is_not_passed_on_to_a_neighbour_that_reads_nothing_and_control_is() -> None:
    bench = Bench("c")
    user, control = Detour("b", "a", 3, KIND, BODY, True), Detour("b", "a", 3, KIND, BODY)
    passed = [len(bench.receive("a", user)) for _ in range(10)]
    assert sum(passed) == 4  # each weighs a little more than a quarter of the limit, which may be passed once
    assert len(bench.receive("a", control)) == 1
    assert bench.counts() == (0, 5, 0, 6)


@pytest.mark.parametrize(
    ("detour", "problem"),
    [
        (Detour("c", "c", 3, KIND, BODY), "to itself"),
        (Detour("b", "b", 3, KIND, BODY), "to itself"),
        (Detour("c", "a", 7, KIND, BODY), "over 7 links; no way here has nearly as many"),
        (Detour("b", "a", 2**63, KIND, BODY), "no way here has nearly as many"),
        (Detour("c", "a", 3, 222, BODY), "no type with the number 222"),
        (Detour("b", "a", 3, 222, BODY), "no type with the number 222"),
        (Detour("b", "a", 3, KIND, b"\xc1"), "bytes are no Parcel"),
    ],
)
def test_what_no_broker_could_have_sent_is_refused_before_anything_is_done(detour: Detour, problem: str) -> None:
    bench = Bench("c")
    with pytest.raises(ProtocolError, match=problem) as raised:
        bench.receive("a", detour)
    assert len(str(raised.value)) < 200
    assert (bench.arrived, bench.counts(), bench.out.take_effects()) == ([], (0, 0, 0, 0), [])


@pytest.mark.parametrize("detour", [Detour("x" * 999, "a", 3, KIND, BODY), Detour("c", "x" * 999, 3, KIND, BODY)])
def test_a_detour_of_brokers_that_this_one_does_not_know_is_dropped_and_no_mistake(detour: Detour) -> None:
    """Its sender may have a newer map, or an older one."""
    bench = Bench("c")
    assert bench.receive("a", detour) == []
    assert (bench.arrived, bench.counts()) == ([], (0, 0, 0, 1))


def test_a_detour_takes_at_least_one_link() -> None:
    registry = Registry[Message]({1: Detour})
    with pytest.raises(ProtocolError):
        registry.decode(*registry.encode(Detour("b", "a", 0, KIND, BODY)))


def test_a_network_of_one_has_no_ways() -> None:
    database = Database(BrokerGraph(["a"], []), "a")
    database.start(1)
    view = View(database, database.graph.spanning_tree())
    detours = Detours(database, view, CARRIED, Trusting(()), Acquaintances(("a",)))
    assert detours.measure()["brokers_unreachable"] == 0
    with pytest.raises(ProtocolError):
        detours.on_detour("a", Detour("a", "a", 1, KIND, BODY), Outbox())
