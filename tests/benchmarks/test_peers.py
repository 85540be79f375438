"""The comparison with other systems: what of it is arithmetic and text."""

from collections import Counter

import msgspec
import pytest

from benchmarks.peers import loads
from benchmarks.peers.__main__ import chosen, events_of
from benchmarks.peers.loads import Job, Load
from benchmarks.peers.measure import Outcome, measure, outcome
from benchmarks.peers.report import LATENCY, OWN, TARGETS, Results, all_loads, lines, median, ratio, throughput_name
from benchmarks.peers.servers import running
from benchmarks.peers.system import System
from benchmarks.peers.systems import SYSTEMS
from holdfast import Filter


def an_outcome(rate: float, lost: int = 0, p50_us: float | None = None) -> Outcome:
    return Outcome(rate, lost, p50_us, p50_us, 1.0, 2.0, 3.0)


@pytest.mark.parametrize("size", [49, 60, 255, 1_024])
def test_attributes_have_exactly_the_size_that_is_asked_for(size: int) -> None:
    assert len(msgspec.msgpack.encode(loads.attributes_of_size(size))) == size


def test_a_stamped_message_has_its_size_and_its_time() -> None:
    message = loads.stamped(123_456_789, 60)
    assert (len(message), loads.stamp_of(message)) == (60, 123_456_789)


@pytest.mark.parametrize("name", [OWN, "nats", "redis", "zeromq"])
@pytest.mark.parametrize("in_turn", [False, True])
def test_every_event_reaches_many_clients_in_pace(name: str, in_turn: bool) -> None:
    system = SYSTEMS[name]
    if missing := system.missing():
        pytest.skip(f"{', '.join(missing)} is not installed")
    load = Load("", "clients", subscriptions=7, in_turn=in_turn)
    with running(system) as (port, server):
        result = measure(name, port, server, load, 400)
    assert result.lost == 0
    assert result.rate > 0


def test_a_publisher_stays_near_what_has_arrived() -> None:
    together, in_turn = (Load("", "clients", subscriptions=10, in_turn=in_turn) for in_turn in (False, True))
    assert (together.ahead, in_turn.ahead, Load("", "throughput").ahead) == (1, loads.AHEAD, 0)
    assert (len(set(loads.topics(together))), len(set(loads.topics(in_turn)))) == (1, 10)


@pytest.mark.parametrize("count", loads.FILTER_COUNTS)
def test_events_come_equally_often_for_every_subscription(count: int) -> None:
    turns = Counter(loads.keys_in_turn(Load("", "filters", subscriptions=count), 2 * count))
    assert turns == dict.fromkeys(range(count), 2)


def test_an_event_matches_the_filter_of_its_key_and_no_other() -> None:
    event = loads.attributes_of_size(60, 7)
    assert [number for number in range(10) if Filter(loads.filter_text(number)).matches(event)] == [7]


def test_every_delivery_is_expected_and_the_missing_ones_are_lost() -> None:
    job = Job(1, Load("", "throughput", subscriptions=10), 100)
    published = {"began_at": 0, "ended_at": 1, "cpu_s": 0.0001}
    arrived = {"received": 990, "ended_at": 2_000_000_000, "cpu_s": 0.0002, "p50_us": None, "p99_us": None}
    result = outcome(job, published, arrived, 0.0003)
    assert (job.expected, result.lost, result.rate) == (1_000, 10, 49.5)
    assert (result.server_us, result.publisher_us, result.subscriber_us) == pytest.approx((3.0, 1.0, 2.0))


def test_ratios_are_taken_inside_rounds() -> None:
    assert ratio([10.0, 100.0, 8.0], [5.0, 50.0, 1.0]) == 2.0
    assert ratio([10.0, None], [None, 5.0]) is None


def test_a_round_that_failed_does_not_count() -> None:
    assert median([3.0, None, 1.0]) == 2.0
    assert median([None]) is None


def test_the_report_says_which_targets_are_met_and_what_was_lost() -> None:
    small = throughput_name(60, 1)
    results: Results = {
        (small, OWN): [an_outcome(300.0)],
        (small, "nats"): [an_outcome(100.0, lost=5)],
        (small, "redis"): [an_outcome(100.0)],
        (LATENCY, OWN): [an_outcome(1.0, p50_us=110.0)],
        (LATENCY, "nats"): [an_outcome(1.0, p50_us=100.0)],
    }
    text = list(lines(results, [OWN, "nats", "redis"]))
    verdicts = [line.split()[-1] for line in text[-len(TARGETS) :]]
    assert verdicts[:5] == ["MISSED", "measured", "MISSED", "measured", "met"]
    assert verdicts[-3:] == ["met", "MISSED", "MISSED"]
    assert any("LOST: nats" in line and "5 events" in line for line in text)


def test_every_target_is_about_loads_that_are_run() -> None:
    run = {(load.name, only) for load, only in all_loads()}
    for target in TARGETS:
        for load, system in filter(None, (target.ours, target.theirs)):
            assert (load, "") in run or (load, system) in run


def test_a_system_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Absent(System):
        name = "nats"
        programs = ("no-such-server",)
        distributions = (("no_such_module", "no-such-client"),)

    monkeypatch.setitem(SYSTEMS, "nats", Absent())
    assert [system.name for system in chosen("nats")] == [OWN]
    assert "nats: left out, since no-such-server, no-such-client" in capsys.readouterr().out


def test_quick_runs_are_smaller_and_slow_systems_get_fewer_events() -> None:
    load = Load("", "throughput")
    assert events_of(load, SYSTEMS["amqtt"], False) < events_of(load, SYSTEMS["nats"], True)
    assert events_of(load, SYSTEMS[OWN], True) < events_of(load, SYSTEMS[OWN], False)
