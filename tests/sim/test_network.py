"""Links: FIFO, losing only a suffix, and that only when they go down; cuts, resets, dialling; the adversary."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.inputs import ConnectFailed, Drained, LinkDown, LinkUp, Received, Started, TimerFired
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.schemes.catalogue import MESSAGES
from holdfast.sim.latency import Constant, Exponential, Latency, RoundTripMatrix, TransitStub, Uniform
from holdfast.sim.network import CONNECT_TIMEOUT, STALLED_FOR_MAX, Adversary, Packet
from tests.sim.scripted import DELAY, Place, World, message, number_of, sends

WILD = Exponential(minimum_us=1, mean_us=5_000, maximum_us=500_000)


# ------------------------------------------------------------------------------------------------------------ order
@pytest.mark.parametrize(
    "model",
    [
        Constant(delay_us=1_000),
        Uniform(low_us=1, high_us=50_000),
        WILD,
        TransitStub(seed=3),
        RoundTripMatrix(path="trips.txt", jitter_percent=90),
    ],
    ids=lambda model: type(model).__name__,
)
def test_links_are_fifo_for_every_latency_model(
    model: Latency, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("trips")
    (folder / "trips.txt").write_text("0\t90\t40\n90\t0\t10\n40\t10\t0\n")
    monkeypatch.chdir(folder)
    world = World(5, model)
    a, b = world.pair()
    world.run_for(5 * SECOND)
    start = world.now
    for n in range(200):
        world.at(start + n * 100_000, lambda n=n: a.do(sends("b", n)))  # type: ignore[misc]
        world.at(start + n * 130_000, lambda n=n: b.do(sends("a", n)))  # type: ignore[misc]
    world.run_for(10 * SECOND)
    assert (a.numbers(), b.numbers()) == (list(range(200)), list(range(200)))


def _check_links(places: list[Place], sent: dict[tuple[str, int], list[int]]) -> None:
    """What was received on a link is a prefix of what was sent on it; ups and downs alternate."""
    for place in places:
        up: dict[int, str] = {}
        current: dict[str, int] = {}
        for turn in place.turns:
            for event in turn.inputs:
                match event:
                    case Started():
                        up, current = {}, {}
                    case LinkUp():
                        assert event.peer not in current, "two links to one peer at a time"
                        assert event.link not in up
                        up[event.link] = event.peer
                        current[event.peer] = event.link
                    case LinkDown():
                        assert up.pop(event.link) == event.peer, "one LinkDown for one LinkUp"
                        del current[event.peer]
                    case Received():
                        assert current.get(event.peer) == event.link, "nothing of a link that is not up"
        got: dict[tuple[str, int], list[int]] = {}
        for event in place.got(Received):
            got.setdefault((event.peer, event.link), []).extend(map(number_of, event.messages))
        for end, numbers in got.items():
            assert numbers == sent.get(end, [])[: len(numbers)], "a prefix of what was sent"


class _Chatter:
    """Nodes that dial each other whenever they have no link, and number what they say on each."""

    def __init__(self, world: World, names: str) -> None:
        self.sent: dict[tuple[str, int], list[int]] = {}
        self._count = 0
        self._rng = world.simulation.rng_for("chatter", 0)
        self.places = [self._add(world, name, names) for name in names]

    def _add(self, world: World, name: str, names: str) -> Place:
        links: dict[str, int] = {}

        def connect(out: Outbox) -> None:
            for other in names:
                if other != name and other not in links:
                    out.connect(other, other)

        def started(event: Started, out: Outbox) -> None:
            links.clear()
            out.set_timer(("chatter", "dial"), 1)
            out.set_timer(("chatter", "talk"), 3 * MILLISECOND)

        def link_up(event: LinkUp, out: Outbox) -> None:
            links[event.peer] = event.link
            say(out, event.peer)

        def link_down(event: LinkDown, out: Outbox) -> None:
            del links[event.peer]
            out.drop_queue(event.peer)

        def say(out: Outbox, peer: str) -> None:
            self._count += 1
            self.sent.setdefault((name, links[peer]), []).append(self._count)
            out.send(peer, message(self._count))

        def timer(event: TimerFired, out: Outbox) -> None:
            if event.key[1] == "dial":
                connect(out)
                out.set_timer(event.key, 700 * MILLISECOND)
            else:
                for peer in links:
                    say(out, peer)
                out.set_timer(event.key, self._rng.choice((1, 30, 300, 2_000)) * MILLISECOND)

        return world.add(name, {Started: started, LinkUp: link_up, LinkDown: link_down, TimerFired: timer})


@settings(max_examples=80)
@given(st.integers(0, 2**32), st.sampled_from([None, "rate", "pace"]))
def test_a_link_delivers_a_prefix_and_goes_down_once_whatever_happens(seed: int, extra: str | None) -> None:
    rng = Random(seed)
    world = World(seed, WILD, bytes_per_second=2_000 if extra == "rate" else 0)
    chatter = _Chatter(world, "abc")
    if extra == "pace":
        for place in chatter.places:
            place.host.set_pace(200_000, 50_000, rng.choice((0, 30 * MILLISECOND)))
    for _ in range(12):
        world.run_for(rng.choice((1, 30, 400, 6_000, 25_000)) * MILLISECOND)
        place = rng.choice(chatter.places)
        host = place.host
        source, target = rng.sample("abc", 2)
        match rng.randrange(6):
            case 0:
                host.stop(power_cut=rng.random() < 0.5)
            case 1:
                host.pause()
            case 2:
                world.network.cut(source, target)
            case 3:
                world.network.heal(source, target)
            case 4:
                host.resume()
            case 5 if not host.running:
                host.start()
    _check_links(chatter.places, chatter.sent)
    # And in the end everyone is connected with everyone.
    world.network.heal_all()
    for place in chatter.places:
        place.host.resume()
        if not place.host.running:
            place.host.start()
    world.run_for(2 * STALLED_FOR_MAX)
    for place in chatter.places:
        ups = Counter(event.peer for event in place.got(LinkUp, place.host.life))
        downs = Counter(event.peer for event in place.got(LinkDown, place.host.life))
        assert sorted((ups - downs).elements()) == sorted(set("abc") - {place.host.name})
    _check_links(chatter.places, chatter.sent)


def test_what_the_accepting_side_says_at_once_arrives() -> None:
    world = World()
    a = world.add("a")
    b = world.add("b", {LinkUp: lambda up, out: out.send(up.peer, message(1))})
    world.link(a, "b")
    world.run_for(SECOND)
    assert a.numbers() == [1]
    assert (a.got(LinkDown), b.got(LinkDown)) == ([], [])


def test_both_ends_are_told_who_the_other_is() -> None:
    world = World()
    a, b = world.pair()
    (at_a,), (at_b,) = a.got(LinkUp), b.got(LinkUp)
    assert (at_a.peer, at_a.incarnation, at_a.initiated, at_a.address) == ("b", 1, True, "b")
    assert (at_b.peer, at_b.incarnation, at_b.initiated, at_b.address) == ("a", 1, False, "")
    assert at_a.link == at_b.link


def test_a_link_names_the_life_that_it_was_made_with() -> None:
    world = World()
    a, b = world.add("a"), world.add("b")
    a.do(lambda out: out.connect("b", "b"))
    world.run_for(DELAY + 1)  # b has it, and a has not heard yet
    b.host.stop(power_cut=False)
    b.host.start()
    world.run_for(SECOND)
    assert [up.incarnation for up in a.got(LinkUp)] == [1]
    assert [down.reason for down in a.got(LinkDown)] == ["reset by the other side"]


# --------------------------------------------------------------------------------------------------- one link of two
def test_two_hosts_that_dial_each_other_at_once_keep_one_link() -> None:
    world = World()
    a, b = world.add("a"), world.add("b")
    a.do(lambda out: out.connect("b", "b"))
    b.do(lambda out: out.connect("a", "a"))
    world.run_for(SECOND)
    assert [up.link for up in a.got(LinkUp)] == [2]
    assert [failed.reason for failed in a.got(ConnectFailed)] == ["superseded by a newer link"]
    assert [up.link for up in b.got(LinkUp)] == [1, 2]
    assert [down.link for down in b.got(LinkDown)] == [1]
    a.do(sends("b", 1))
    b.do(sends("a", 2))
    world.run_for(SECOND)
    assert (a.numbers(), b.numbers()) == ([2], [1])


@pytest.mark.parametrize("delays", [(1, 2, 30, 1), (30, 1, 1, 1), (1, 1, 1, 1)])
def test_of_two_dials_of_one_host_the_later_stands(delays: tuple[int, ...]) -> None:
    class Listed:
        def __init__(self) -> None:
            self._left = list(delays)

        def delay(self, source: str, target: str) -> int:
            return (self._left.pop(0) if self._left else 1) * MILLISECOND

    world = World(delays=Listed())
    a, b = world.add("a"), world.add("b")

    def dial_twice(out: Outbox) -> None:
        out.connect("", "b")
        out.connect("", "b")

    a.do(dial_twice)
    world.run_for(SECOND)
    assert len(a.got(LinkUp)) + len(a.got(ConnectFailed)) == 2
    for place in a, b:
        assert {up.link for up in place.got(LinkUp)} - {down.link for down in place.got(LinkDown)} == {2}


def test_nothing_of_an_old_link_arrives_after_a_newer_one() -> None:
    world = World(model=Constant(delay_us=10_000))
    a, b = world.add("a"), world.add("b")
    a.do(lambda out: out.connect("", "b"))
    world.run_for(SECOND)
    old = b.got(LinkUp)[0].link
    a.host.stop(power_cut=False)  # the reset is on its way for 10 ms
    a.host.start()
    a.do(lambda out: out.connect("", "b"))
    world.run_for(SECOND)
    assert [type(event).__name__ for turn in b.turns for event in turn.inputs if not isinstance(event, Started)] == [
        "LinkUp", "LinkDown", "LinkUp",
    ]  # fmt: skip
    assert b.got(LinkDown)[0].link == old
    assert b.got(LinkUp)[1].incarnation == 3


def test_a_peer_that_comes_again_takes_the_place_of_its_old_link() -> None:
    world = World()
    a, b = world.pair()
    a.host.stop(power_cut=True)  # b hears nothing of it
    a.host.start()
    world.link(a, "b")
    assert [(down.link, down.reason) for down in b.got(LinkDown)] == [(1, "superseded by a newer link")]
    assert [up.link for up in b.got(LinkUp)] == [1, 2]


# ------------------------------------------------------------------------------------------------------------- cuts
def test_a_cut_of_one_way_stalls_that_way_only() -> None:
    world = World()
    a, b = world.pair()
    world.network.cut("a", "b")
    a.do(sends("b", 1))
    b.do(sends("a", 2))
    world.run_for(SECOND)
    assert (a.numbers(), b.numbers()) == ([2], [])


def test_what_was_stalled_arrives_in_order_after_the_cut_is_healed() -> None:
    world = World(model=WILD)
    a, b = world.pair()
    world.run_for(SECOND)
    world.network.cut("a", "b")
    for n in range(20):
        a.do(sends("b", n))
    world.run_for(SECOND)
    world.network.heal("a", "b")
    a.do(sends("b", 20))
    world.run_for(SECOND)
    assert b.numbers() == list(range(21))
    assert (a.got(LinkDown), b.got(LinkDown)) == ([], [])


def test_a_way_that_was_cut_twice_opens_when_both_cuts_are_healed() -> None:
    world = World()
    a, b = world.pair()
    world.network.cut("a", "b")
    world.network.cut("a", "b")
    a.do(sends("b", 1))
    world.network.heal("a", "b")
    world.run_for(SECOND)
    assert b.numbers() == []
    assert world.network.is_cut("a", "b")
    world.network.heal("a", "b")
    world.run_for(SECOND)
    assert b.numbers() == [1]
    world.network.heal("a", "b")  # one too many does nothing
    world.network.cut("a", "b")
    assert world.network.is_cut("a", "b")


def test_heal_all_opens_every_way_however_often_it_was_cut() -> None:
    world = World()
    a, b = world.pair()
    for _ in range(3):
        world.network.cut("a", "b")
        world.network.cut("b", "a")
    a.do(sends("b", 1))
    b.do(sends("a", 2))
    world.network.heal_all()
    world.run_for(SECOND)
    assert (a.numbers(), b.numbers()) == ([2], [1])


def test_a_link_that_is_stalled_for_too_long_goes_down_at_the_sender() -> None:
    world = World()
    a, b = world.pair()
    world.network.cut("a", "b")
    world.run_for(2 * STALLED_FOR_MAX)
    assert a.got(LinkDown) == []  # nothing was sent, so that nothing is missed
    since = world.now
    a.do(sends("b", 1))
    world.run_for(2 * STALLED_FOR_MAX)
    assert a.times(LinkDown) == [since + STALLED_FOR_MAX]
    assert [down.reason for down in a.got(LinkDown)] == ["timed out"]
    assert b.got(LinkDown) == []
    world.network.heal("a", "b")
    world.run_for(SECOND)
    assert [down.reason for down in b.got(LinkDown)] == ["closed by the other side"]


def test_a_cut_that_is_healed_in_time_does_not_count_for_the_next() -> None:
    world = World()
    a, _ = world.pair()
    for n in range(3):
        world.network.cut("a", "b")
        a.do(sends("b", n))
        world.run_for(STALLED_FOR_MAX * 2 // 3)
        world.network.heal("a", "b")
        world.run_for(10 * DELAY)
    assert a.got(LinkDown) == []


def test_a_reset_does_not_cross_a_cut() -> None:
    world = World()
    a, b = world.pair()
    world.network.cut("a", "b")
    a.host.stop(power_cut=False)
    b.do(sends("a", 1))
    since = world.now
    world.run_for(STALLED_FOR_MAX)
    assert b.got(LinkDown) == []
    world.run_for(SECOND)
    assert b.times(LinkDown) == [since + DELAY + STALLED_FOR_MAX]


# ------------------------------------------------------------------------------------------------- hosts that are gone
def test_the_peers_of_a_killed_process_hear_of_it_at_once() -> None:
    world = World()
    a, b = world.pair()
    a.do(sends("b", 1, 2))
    since = world.now
    a.host.stop(power_cut=False)
    world.run_for(SECOND)
    assert b.numbers() == [1, 2]  # what it had said, it had said
    assert b.times(LinkDown) == [since + DELAY]
    assert b.got(LinkDown)[0].reason == "reset by the other side"


def test_the_peers_of_a_host_without_power_hear_nothing() -> None:
    world = World()
    a, b = world.pair()
    a.host.stop(power_cut=True)
    world.run_for(10 * STALLED_FOR_MAX)
    assert b.got(LinkDown) == []
    since = world.now
    b.do(sends("a", 1))
    world.run_for(2 * STALLED_FOR_MAX)
    assert b.times(LinkDown) == [since + DELAY + STALLED_FOR_MAX]


def test_a_host_that_has_power_again_resets_links_that_it_does_not_know() -> None:
    world = World()
    a, b = world.pair()
    a.host.stop(power_cut=True)
    a.host.start()
    since = world.now
    b.do(sends("a", 1))
    world.run_for(SECOND)
    assert a.numbers() == []
    assert b.times(LinkDown) == [since + 2 * DELAY]


def test_what_stalled_in_a_host_goes_with_its_power_but_not_with_its_process() -> None:
    for power_cut, arrived in (True, []), (False, [1]):
        world = World()
        a, b = world.pair()
        world.network.cut("a", "b")
        a.do(sends("b", 1))
        a.host.stop(power_cut)
        world.network.heal("a", "b")
        world.run_for(SECOND)
        assert b.numbers() == arrived


# ---------------------------------------------------------------------------------------------------------- dialling
def _reasons_of_one_dial(world: World, address: str, expected: str = "") -> list[str]:
    a = world.add("a")
    a.do(lambda out: out.connect(expected, address))
    world.run_for(60 * SECOND)
    assert a.got(LinkUp) == []
    assert [(failed.peer, failed.address) for failed in a.got(ConnectFailed)] == [(expected, address)]
    return [failed.reason for failed in a.got(ConnectFailed)]


def test_a_dial_to_an_unknown_address_fails_once() -> None:
    assert _reasons_of_one_dial(World(), "nowhere") == ["no such address"]


def test_a_dial_to_a_process_that_does_not_run_is_refused_once() -> None:
    world = World()
    world.add("b", start=False)
    assert _reasons_of_one_dial(world, "b") == ["connection refused"]


def test_a_dial_to_a_host_without_power_times_out_once() -> None:
    world = World()
    world.add("b").host.stop(power_cut=True)
    assert _reasons_of_one_dial(world, "b") == ["timed out"]


@pytest.mark.parametrize("way", [("a", "b"), ("b", "a")])
def test_a_dial_over_a_cut_times_out_once(way: tuple[str, str]) -> None:
    world = World()
    world.add("b")
    world.network.cut(*way)
    assert _reasons_of_one_dial(world, "b") == ["timed out"]


def test_a_dial_whose_answer_is_cut_off_times_out_once() -> None:
    world = World()
    world.add("b")
    world.at(DELAY // 2, lambda: world.network.cut("b", "a"))
    assert _reasons_of_one_dial(world, "b") == ["timed out"]


def test_a_dial_that_meets_a_power_cut_times_out_once() -> None:
    world = World()
    b = world.add("b")
    world.at(DELAY // 2, lambda: b.host.stop(power_cut=True))
    assert _reasons_of_one_dial(world, "b") == ["timed out"]
    assert CONNECT_TIMEOUT < 60 * SECOND


def test_a_dial_that_finds_someone_else_fails_once() -> None:
    world = World()
    b = world.add("b")
    assert _reasons_of_one_dial(world, "b", expected="c") == ["b answered, not c"]
    assert b.got(LinkUp) == []


def test_a_dial_of_a_process_that_was_killed_meanwhile_leads_to_nothing() -> None:
    world = World()
    a, b = world.add("a"), world.add("b")
    a.do(lambda out: out.connect("", "b"))
    a.host.stop(power_cut=False)
    a.host.start()
    world.run_for(60 * SECOND)
    assert (a.got(LinkUp), a.got(ConnectFailed), b.got(LinkUp)) == ([], [], [])


def test_a_failed_dial_is_not_told_to_a_later_life() -> None:
    world = World()
    a = world.add("a")
    a.do(lambda out: out.connect("", "nowhere"))
    a.host.stop(power_cut=False)
    a.host.start()
    world.run_for(60 * SECOND)
    assert a.got(ConnectFailed) == []


# -------------------------------------------------------------------------------------------------------------- rate
def test_a_link_of_limited_rate_takes_the_time_that_its_bytes_need() -> None:
    world = World(bytes_per_second=1_000)
    a, b = world.pair()
    since = world.now
    for n in range(3):
        world.at(since + n * MILLISECOND, lambda n=n: a.do(sends("b", n, padding=1_000)))  # type: ignore[misc]
    world.run_for(1_500 * MILLISECOND)
    a.do(sends("b", 3, padding=1_000))  # while the second and third are under way
    world.run_for(10 * SECOND)
    took = [(time - since) / SECOND for time in b.times(Received)]
    assert took == pytest.approx([1, 3, 4], rel=0.05)
    assert b.numbers() == [0, 1, 2, 3]


@pytest.mark.parametrize("adversary", [None, Adversary()])
def test_packets_that_are_put_on_a_slow_link_at_once_follow_each_other(adversary: Adversary | None) -> None:
    world = World(bytes_per_second=1_000, adversary=adversary)
    a, b = world.pair()
    end = a.host.end_to("b")
    assert end is not None
    since = world.now
    for n in range(3):
        world.network.send(end, Packet([MESSAGES.encode(message(n, padding=1_000))]))
    world.run_for(10 * SECOND)
    assert [(time - since) / SECOND for time in b.times(Received)] == pytest.approx([1, 2, 3], rel=0.05)


def test_drained_is_reported_once_when_the_queue_falls_to_its_mark() -> None:
    world = World(bytes_per_second=100_000)
    a, b = world.pair()

    def fill(out: Outbox) -> None:
        out.queue("b").notify_below(1)
        sends("b", 1, 2, 3)(out)

    a.do(sends("b", 0, padding=100_000))  # keeps the link busy for a second
    a.do(fill)
    world.run_for(SECOND // 2)
    assert a.got(Drained) == []
    world.run_for(60 * SECOND)
    a.do(sends("b", 4))
    world.run_for(SECOND)
    assert [(event.peer, event.count) for event in a.got(Drained)] == [("b", 3)]
    assert b.numbers() == [0, 1, 2, 3, 4]


def test_the_mark_itself_counts_as_drained() -> None:
    world = World()
    a, _ = world.pair()

    def fill(out: Outbox) -> None:
        out.queue("b").notify_below(0)
        sends("b", 1)(out)

    a.do(fill)
    world.run_for(SECOND)
    assert [(event.count, event.bytes) for event in a.got(Drained)] == [(1, message(1).weight())]


def test_a_report_of_an_earlier_life_is_not_given() -> None:
    world = World()
    a, _ = world.pair()
    a.do(lambda out: out.queue("b").notify_below(0))
    a.host.stop(power_cut=False)
    a.host.start()
    world.run_for(SECOND)
    assert a.got(Drained) == []


def test_a_queue_that_was_dropped_is_not_reported_as_drained() -> None:
    world = World()
    a, _ = world.pair()

    def drop(out: Outbox) -> None:
        out.queue("b").notify_below(0)
        out.drop_queue("b")

    a.do(drop)
    world.run_for(SECOND)
    assert a.got(Drained) == []


def test_a_busy_link_is_looked_at_once_when_it_is_free() -> None:
    world = World(bytes_per_second=1_000)
    a, b = world.pair()
    before = world.simulation.at(world.now, lambda _: None, None)
    for n in range(200):
        a.do(sends("b", n, padding=100))
    planned = world.simulation.at(world.now, lambda _: None, None) - before
    world.run_for(100 * SECOND)
    assert planned < 5
    assert b.numbers() == list(range(200))


# --------------------------------------------------------------------------------------------------------- adversary
def _shares(adversary: Adversary, healed: bool = False) -> tuple[float, float, float, Place]:
    """The shares of messages that were lost, that came twice, and that were overtaken."""
    world = World(1, adversary=adversary)
    a, b = world.pair()
    if healed:
        world.network.heal_all()
    count = 4_000
    start = world.now
    for n in range(count):
        world.at(start + n * MILLISECOND, lambda n=n: a.do(sends("b", n)))  # type: ignore[misc]
    world.run_for(10 * SECOND)
    got = b.numbers()
    times = Counter(got)
    overtaken = sum(later < earlier for earlier, later in pairwise(got))
    doubled = sum(n > 1 for n in times.values())
    return 1 - len(times) / count, doubled / count, overtaken / count, b


def test_the_adversary_loses_as_many_as_asked() -> None:
    lost, doubled, overtaken, _ = _shares(Adversary(loss=0.3))
    assert lost == pytest.approx(0.3, abs=0.03)
    assert (doubled, overtaken) == (0, 0)


def test_the_adversary_doubles_as_many_as_asked() -> None:
    lost, doubled, overtaken, _ = _shares(Adversary(duplication=0.2))
    assert doubled == pytest.approx(0.2, abs=0.03)
    assert (lost, overtaken) == (0, 0)


def test_the_adversary_makes_as_many_late_as_asked() -> None:
    lost, doubled, overtaken, b = _shares(Adversary(reordering=0.1))
    # A message that is late by up to 50 ms is overtaken, unless it is late by less than one.
    assert overtaken == pytest.approx(0.1, abs=0.03)
    assert (lost, doubled) == (0, 0)
    assert b.got(LinkDown) == []


def test_an_adversary_that_makes_nothing_late_keeps_the_order() -> None:
    world = World(3, WILD, Adversary(loss=0.2, duplication=0.2))
    a, b = world.pair()
    for n in range(300):
        a.do(sends("b", n))
        world.run_for(MILLISECOND)
    world.run_for(SECOND)
    assert b.numbers() == sorted(b.numbers())


def test_no_adversary_is_left_after_heal_all() -> None:
    assert _shares(Adversary(loss=0.5, duplication=0.5, reordering=0.5), healed=True)[:3] == (0, 0, 0)


def test_the_adversary_never_breaks_a_link_by_letting_a_message_overtake_its_opening() -> None:
    for seed in range(50):
        world = World(seed, WILD, Adversary(reordering=1.0))
        a = world.add("a")
        b = world.add("b", {LinkUp: lambda up, out: sends("a", *range(10))(out)})
        a.do(lambda out: out.connect("", "b"))
        world.run_for(5 * SECOND)
        assert sorted(a.numbers()) == list(range(10))
        assert (a.got(LinkDown), b.got(LinkDown)) == ([], [])


def test_under_the_adversary_a_cut_loses_what_is_sent() -> None:
    world = World(adversary=Adversary())
    a, b = world.pair()
    world.network.cut("a", "b")
    a.do(sends("b", 1))
    world.run_for(SECOND)
    world.network.heal("a", "b")
    a.do(sends("b", 2))
    world.run_for(SECOND)
    assert b.numbers() == [2]


def test_bytes_that_are_no_message_end_the_link() -> None:
    world = World()
    a, b = world.pair()
    end = a.host.end_to("b")
    assert end is not None
    b.host.receive(end.other, [(255, b"nonsense")])
    world.run_for(SECOND)
    assert [down.reason[:10] for down in b.got(LinkDown)] == ["no message"]
    assert [down.reason for down in a.got(LinkDown)] == ["closed by the other side"]
