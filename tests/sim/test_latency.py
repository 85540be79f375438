"""Latency models read from scenarios, give the delays that they describe, and give them again for the same seed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from math import exp
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import msgspec
import pytest

from holdfast.errors import HoldfastError, ScenarioError, TopologyError
from holdfast.sim.latency import (
    LOOPBACK_NS,
    Constant,
    Delays,
    Exponential,
    Latency,
    RoundTripMatrix,
    TransitStub,
    Uniform,
    build,
)
from holdfast.topology.shortest_paths import ShortestPaths
from holdfast.topology.transit_stub import TransitStubShape, generate

DRAWS = 40_000
MS = 1_000_000
SMALL: dict[str, int] = {"transit_domains": 3, "routers_per_transit_domain": 2, "stub_domains_per_transit_router": 1}

MODELS: list[tuple[str, Latency]] = [
    ('{"model":"constant","delay_us":500}', Constant(delay_us=500)),
    ('{"model":"uniform","low_us":200,"high_us":900}', Uniform(low_us=200, high_us=900)),
    (
        '{"model":"exponential","minimum_us":200,"mean_us":300,"maximum_us":10000}',
        Exponential(minimum_us=200, mean_us=300, maximum_us=10_000),
    ),
    ('{"model":"matrix","path":"table.tsv"}', RoundTripMatrix(path="table.tsv")),
    ('{"model":"matrix","path":"table.tsv","jitter_percent":5}', RoundTripMatrix(path="table.tsv", jitter_percent=5)),
    ('{"model":"transit-stub","seed":1}', TransitStub(seed=1)),
    (
        '{"model":"transit-stub","seed":1,"transit_domains":2,"access_low_ms":5}',
        TransitStub(seed=1, transit_domains=2, access_low_ms=5),
    ),
]


class OnlyRandom(Random):
    """A generator that may be asked for random() alone, and counts how often."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.asked = 0

    def random(self) -> float:
        self.asked += 1
        return super().random()

    def getrandbits(self, k: int) -> int:
        raise AssertionError("only random() keeps its sequence between versions of Python")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table of four hosts: the round trip from i to j takes 10 (4 i + j) ms."""
    rows = ["\t".join(str(10 * (4 * one + other)) for other in range(4)) for one in range(4)]
    (tmp_path / "table.tsv").write_text("\n".join(rows) + "\n")
    return tmp_path


def drawn(delays: Delays) -> list[int]:
    return [delays.delay("a", "b") for _ in range(DRAWS)]


def placed(delay_ns: int) -> tuple[int, int]:
    """The rows of the folder's table that such a delay is between."""
    return divmod(delay_ns // (5 * MS), 4)


# ---- scenarios


@pytest.mark.parametrize(("text", "model"), MODELS)
def test_a_model_is_read_from_json_and_written_back(text: str, model: Latency) -> None:
    assert msgspec.json.decode(text, type=Latency) == model
    assert msgspec.json.decode(msgspec.json.encode(model), type=Latency) == model


def test_a_field_that_no_model_has_is_refused() -> None:
    for text, _ in MODELS:
        with pytest.raises(msgspec.ValidationError, match="unknown field `delay_ms`"):
            msgspec.json.decode(text.replace("}", ',"delay_ms":1}'), type=Latency)


def test_a_bad_model_in_json_is_refused_with_its_place_and_cause() -> None:
    text = '{"latency":{"model":"uniform","low_us":2,"high_us":1}}'
    with pytest.raises(msgspec.ValidationError, match=r"low_us is 2, above high_us.* - at `\$.latency`$") as caught:
        msgspec.json.decode(text, type=msgspec.defstruct("Scenario", [("latency", Latency)]))
    assert isinstance(caught.value.__cause__, ScenarioError)


@pytest.mark.parametrize(
    ("model", "fields", "problem"),
    [
        (Constant, {"delay_us": -1}, "delay_us is -1"),
        (Constant, {"delay_us": 0.5}, "delay_us is 0.5"),
        (Constant, {"delay_us": True}, "delay_us is True"),
        (Constant, {"delay_us": 3_600_000_001}, "delay_us is 3600000001"),
        (Uniform, {"low_us": -1, "high_us": 1}, "low_us is -1"),
        (Uniform, {"low_us": 0, "high_us": "1"}, "high_us is '1'"),
        (Uniform, {"low_us": 2, "high_us": 1}, "low_us is 2, above high_us, which is 1"),
        (Exponential, {"minimum_us": -1, "mean_us": 1, "maximum_us": 1}, "minimum_us is -1"),
        (Exponential, {"minimum_us": 1, "mean_us": 0, "maximum_us": 1}, "mean_us is 0"),
        (Exponential, {"minimum_us": 1, "mean_us": 1, "maximum_us": -1}, "maximum_us is -1"),
        (
            Exponential,
            {"minimum_us": 2, "mean_us": 1, "maximum_us": 1},
            "minimum_us is 2, above maximum_us, which is 1",
        ),
        (RoundTripMatrix, {"path": ""}, "path is ''"),
        (RoundTripMatrix, {"path": "a\0b"}, "path is 'a\\x00b'"),
        (RoundTripMatrix, {"path": "a", "jitter_percent": 100}, "jitter_percent is 100"),
        (RoundTripMatrix, {"path": "a", "jitter_percent": -1}, "jitter_percent is -1"),
        (TransitStub, {"seed": -1}, "seed is -1"),
        (TransitStub, {"seed": 1, "access_low_ms": 91}, "access_low_ms is 91, above access_high_ms, which is 90"),
        (TransitStub, {"seed": 1, "transit_domains": 10_000}, "the graph would have 1250000 routers"),
    ],
)
def test_a_model_that_cannot_be_meant_is_refused(model: Any, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        model(**fields)
    error = caught.value
    assert error.problem.startswith(problem)
    assert error.where == f"the latency model {model.__struct_config__.tag!r}"
    assert error.remedy.startswith(("give ", "make "))
    assert str(error) == f"{error.where}: {error.problem}; {error.remedy}"
    assert isinstance(error, HoldfastError)
    assert isinstance(error, ValueError)
    assert not isinstance(error, TopologyError)


# ---- what holds for every model


@pytest.mark.parametrize("model", [model for _, model in MODELS])
def test_a_host_is_a_constant_away_from_itself_and_that_draws_nothing(folder: Path, model: Latency) -> None:
    rng = OnlyRandom(1)
    delays = build(model, rng, folder)
    built = rng.asked
    assert [delays.delay(name, name) for name in ("a", "b", "a")] == [LOOPBACK_NS] * 3
    assert rng.asked == built


@pytest.mark.parametrize(
    ("model", "draws"),
    list(zip([model for _, model in MODELS], [0, 1, 1, 0, 1, 0, 0], strict=True)),
)
def test_a_message_draws_as_often_as_its_model_says(folder: Path, model: Latency, draws: int) -> None:
    rng = OnlyRandom(1)
    delays = build(model, rng, folder)
    built = rng.asked
    for source, target in permutations("abcd", 2):
        delays.delay(source, target)
    assert rng.asked - built == 12 * draws


@pytest.mark.parametrize("model", [model for _, model in MODELS])
def test_delays_are_positive_ints_and_the_same_for_the_same_seed(folder: Path, model: Latency) -> None:
    questions = [*permutations("abcdef", 2)] * 3
    first, again = (
        [delays.delay(*question) for question in questions]
        for delays in (build(model, Random(3), folder), build(model, Random(3), folder))
    )
    assert first == again
    assert {type(delay) for delay in first} == {int}
    assert min(first) > 0


@pytest.mark.parametrize("model", [model for _, model in MODELS[1:5]])
def test_another_seed_gives_other_delays(folder: Path, model: Latency) -> None:
    some = [
        tuple(delays.delay(*question) for question in permutations("abcd", 2))
        for delays in (build(model, Random(seed), folder) for seed in range(5))
    ]
    # Four rows have 24 orders only, so two of the seeds may share one.
    assert len(set(some)) > 1


def test_delays_do_not_depend_on_the_hash_seed(folder: Path) -> None:
    # Each in a new interpreter, since a running one can't change its hash seed.
    program = (
        "import msgspec, sys\n"
        "from pathlib import Path\n"
        "from random import Random\n"
        "from holdfast.sim.latency import Latency, build\n"
        "for text in sys.argv[2:]:\n"
        "    delays = build(msgspec.json.decode(text, type=Latency), Random(5), Path(sys.argv[1]), ['d', 'a'])\n"
        "    print([delays.delay(one, other) for one in 'abcdef' for other in 'abcdef'])\n"
    )
    texts = [text for text, _ in MODELS]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(folder), *texts],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("0", "12345")
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(outputs[0].splitlines()) == len(MODELS)
    assert outputs[0] == outputs[1]


# ---- delays drawn for each message


def test_a_constant_delay_is_that_delay() -> None:
    delays = build(Constant(delay_us=500), Random(1))
    assert {delays.delay("a", "b"), delays.delay("b", "a")} == {500_000}


def test_uniform_delays_fill_their_bounds_evenly() -> None:
    delays = drawn(build(Uniform(low_us=200, high_us=900), Random(1)))
    assert 200_000 <= min(delays) < 200_100
    assert 899_900 < max(delays) <= 900_000
    tenths = [sum(1 for delay in delays if (delay - 200_000) * 10 // 700_001 == tenth) for tenth in range(10)]
    assert all(count == pytest.approx(DRAWS / 10, rel=0.05) for count in tenths)


@pytest.mark.parametrize(("low_us", "high_us"), [(7, 7), (1, 3_600_000_000), (3_599_999_999, 3_600_000_000)])
def test_uniform_delays_reach_both_bounds_and_no_further(low_us: int, high_us: int) -> None:
    class Extreme(Random):
        values = iter([0.0, 1 - 2**-53])

        def random(self) -> float:
            return next(self.values)

    delays = build(Uniform(low_us=low_us, high_us=high_us), Extreme())
    assert [delays.delay("a", "b"), delays.delay("a", "b")] == [low_us * 1000, high_us * 1000]


def test_exponential_delays_have_their_minimum_mean_and_tail() -> None:
    delays = drawn(build(Exponential(minimum_us=200, mean_us=300, maximum_us=100_000), Random(1)))
    assert 200_000 <= min(delays) < 200_100
    assert mean(delays) == pytest.approx(500_000, rel=0.01)
    for means in (0.5, 1, 2, 3):
        above = sum(1 for delay in delays if delay > 200_000 + means * 300_000)
        assert above == pytest.approx(DRAWS * exp(-means), rel=0.06)


def test_exponential_delays_beyond_the_maximum_become_the_maximum() -> None:
    delays = drawn(build(Exponential(minimum_us=200, mean_us=300, maximum_us=500), Random(1)))
    assert max(delays) == 500_000
    assert delays.count(500_000) == pytest.approx(DRAWS * exp(-1), rel=0.03)
    assert mean(delays) == pytest.approx(200_000 + 300_000 * (1 - exp(-1)), rel=0.01)


def test_a_random_number_of_zero_is_the_minimum() -> None:
    class Zero(Random):
        def random(self) -> float:
            return 0.0

    delay = build(Exponential(minimum_us=200, mean_us=300, maximum_us=500), Zero()).delay("a", "b")
    assert (delay, type(delay)) == (200_000, int)


# ---- a measured network


def test_hosts_take_rows_without_repetition_while_rows_last(folder: Path) -> None:
    orders = set()
    for seed in range(200):
        delays = build(RoundTripMatrix(path="table.tsv"), Random(seed), folder, "abcd")
        rows = [placed(delays.delay("a", other)) for other in "bcd"]
        order = (rows[0][0], *(row for _, row in rows))
        assert sorted(order) == [0, 1, 2, 3]
        assert {first for first, _ in rows} == {order[0]}
        # Any other pair stands on the same rows.
        assert placed(delays.delay("d", "b")) == (order[3], order[1])
        orders.add(order)
    assert len(orders) == 24


def test_each_row_is_as_likely_for_a_host(folder: Path) -> None:
    model = RoundTripMatrix(path="table.tsv")
    rows = [placed(build(model, Random(seed), folder).delay("a", "b"))[0] for seed in range(2000)]
    assert all(rows.count(row) == pytest.approx(500, rel=0.12) for row in range(4))


def test_rows_begin_again_when_they_are_used_up(folder: Path) -> None:
    delays = build(RoundTripMatrix(path="table.tsv"), Random(1), folder, "abcdefgh")
    for first, second in zip("abcd", "efgh", strict=True):
        assert delays.delay(first, second) == LOOPBACK_NS
        other = "b" if first != "b" else "c"
        assert delays.delay(first, other) == delays.delay(second, other)


def test_hosts_named_beforehand_make_the_order_of_questions_irrelevant(folder: Path) -> None:
    model, pairs = RoundTripMatrix(path="table.tsv"), list(permutations("abcd", 2))
    forwards, backwards = (build(model, Random(1), folder, "abcd") for _ in range(2))
    assert {pair: forwards.delay(*pair) for pair in pairs} == {pair: backwards.delay(*pair) for pair in pairs[::-1]}
    unnamed = build(model, Random(1), folder)
    assert {pair: forwards.delay(*pair) for pair in pairs} != {pair: unnamed.delay(*pair) for pair in pairs[::-1]}


def test_hosts_take_rows_in_the_order_in_which_they_are_met(folder: Path) -> None:
    model = RoundTripMatrix(path="table.tsv")
    named, met = build(model, Random(1), folder, "abcd"), build(model, Random(1), folder)
    questions = [("a", "b"), ("c", "a"), ("d", "c")]
    assert [named.delay(*question) for question in questions] == [met.delay(*question) for question in questions]


def test_a_pair_keeps_its_delay_and_each_direction_its_own(folder: Path) -> None:
    delays = build(RoundTripMatrix(path="table.tsv"), Random(1), folder)
    assert len({delays.delay("a", "b") for _ in range(10)}) == 1
    assert placed(delays.delay("a", "b")) == placed(delays.delay("b", "a"))[::-1]


def test_jitter_spreads_a_delay_evenly_to_both_sides(folder: Path) -> None:
    steady = build(RoundTripMatrix(path="table.tsv"), Random(1), folder).delay("a", "b")
    delays = drawn(build(RoundTripMatrix(path="table.tsv", jitter_percent=20), Random(1), folder))
    assert 0.8 * steady <= min(delays) < 0.801 * steady
    assert 1.199 * steady < max(delays) <= 1.2 * steady
    assert mean(delays) == pytest.approx(steady, rel=0.002)
    assert sum(1 for delay in delays if delay < 0.9 * steady) == pytest.approx(DRAWS / 4, rel=0.05)


def test_a_path_begins_at_the_folder_unless_it_is_absolute(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    expected = build(RoundTripMatrix(path="table.tsv"), Random(1), folder).delay("a", "b")
    absolute = RoundTripMatrix(path=str(folder / "table.tsv"))
    assert build(absolute, Random(1), elsewhere).delay("a", "b") == expected
    monkeypatch.chdir(folder)
    assert build(RoundTripMatrix(path="table.tsv"), Random(1)).delay("a", "b") == expected
    with pytest.raises(ScenarioError, match="there is no such file"):
        build(RoundTripMatrix(path="table.tsv"), Random(1), elsewhere)


def test_planetlab_delays_are_halves_of_its_round_trips(data_file: Callable[[str], Path]) -> None:
    path = data_file("planetlab-rtt-490.tsv.xz")
    hosts = [f"broker-{number}" for number in range(490)]
    delays = build(RoundTripMatrix(path=path.name), Random(1), path.parent, hosts)
    from_first = [delays.delay(hosts[0], host) for host in hosts[1:]]
    assert LOOPBACK_NS not in from_first
    assert all(0 < delay < 1_500 * MS for delay in from_first)
    assert from_first == [delays.delay(host, hosts[0]) for host in hosts[1:]]


# ---- a simulated network


def test_transit_stub_delays_are_shortest_paths_between_access_links() -> None:
    delays = build(TransitStub(seed=5, **SMALL), Random(1))
    graph = generate(TransitStubShape(**SMALL), Random(5))
    paths = ShortestPaths(graph.routers, graph.links)
    places = {host: graph.attach(Random(f"5/{host}")) for host in "abcd"}
    for one, other in permutations("abcd", 2):
        path = paths.delay(places[one].router, places[other].router)
        assert delays.delay(one, other) == places[one].delay_ns + path + places[other].delay_ns


def test_a_transit_stub_network_is_a_function_of_the_model_and_the_names() -> None:
    model, pairs = TransitStub(seed=5, **SMALL), list(permutations("abcdefgh", 2))
    one, other = build(model, Random(1)), build(model, Random(2), hosts="hgf")
    expected = {pair: one.delay(*pair) for pair in pairs}
    assert {pair: other.delay(*pair) for pair in reversed(pairs)} == expected
    assert all(expected[source, target] == expected[target, source] for source, target in pairs)
    another = build(TransitStub(seed=6, **SMALL), Random(1))
    assert {pair: another.delay(*pair) for pair in pairs} != expected


def test_hosts_of_the_default_network_are_20_to_400_ms_apart() -> None:
    # D2-E1: two access links of 10–90 ms, and the routers between.
    delays = build(TransitStub(seed=1), Random(1))
    hosts = [f"broker-{number}" for number in range(30)]
    found = [delays.delay(*pair) for pair in permutations(hosts, 2)]
    assert min(found) >= 20 * MS
    assert max(found) <= 400 * MS
    assert mean(found) == pytest.approx(171 * MS, rel=0.15)


def test_hosts_at_one_router_are_two_access_links_apart() -> None:
    model = TransitStub(
        seed=1,
        transit_domains=1,
        routers_per_transit_domain=1,
        stub_domains_per_transit_router=0,
        access_low_ms=7,
        access_high_ms=7,
    )
    assert build(model, Random(1)).delay("a", "b") == 14 * MS
