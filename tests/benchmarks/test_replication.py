"""The benchmark of groups: its arithmetic against the paper's own numbers, its text, and a small run."""

from pathlib import Path

import msgspec
import pytest

from benchmarks.replication import compare, delays, paper
from benchmarks.replication.__main__ import DOCUMENT, EVENTS, groups_in_turn, main
from benchmarks.replication.document import REPLICATION, markers, with_block
from benchmarks.replication.loads import SUBSCRIBERS, Job, schedule
from benchmarks.replication.measure import Offered, Saturated, offer, offered, running, saturate
from benchmarks.replication.paper import OFFERED, PUBLISHERS, REPLICAS, Values
from benchmarks.replication.report import markdown_lines, tables, targets, text_lines
from benchmarks.replication.results import PROTOCOLS, Results, best_mean, best_p50, best_per_s, median_p50
from benchmarks.replication.side_by_side import ODD, percentages
from benchmarks.replication.zaps import prepare, prepared, publications
from holdfast.apps.zapviewers.audience import Audience
from holdfast.apps.zapviewers.lines import LINE_BYTES_MAX
from holdfast.apps.zapviewers.publications import LINES_MAX

BOXES = 2_000
BEGIN, END = markers(REPLICATION)
WITHIN_POINTS = 0.07


def results(p50_ms: Values, per_s: Values, saturated_per_s: float = 50_000.0, rounds: int = 1) -> Results:
    """Every configuration as given, and in each further round a millisecond slower."""
    return Results(
        machine={"processor": "a processor", "cores": 2, "system": "a system", "python": "3.11", "date": "2026-01-01"},
        load_before=0.1,
        rounds=rounds,
        seconds=4.0,
        protocol="multi",
        events=EVENTS,
        offered=[
            Offered(
                round=number,
                replicas=replicas,
                publishers=publishers,
                p50_ms=p50_ms[replicas][publishers] + number,
                mean_ms=p50_ms[replicas][publishers] + number + 0.5,
                p99_ms=p50_ms[replicas][publishers] + number + 9.0,
                per_s=per_s[replicas][publishers],
                lost=0,
                late_ms=0.1,
                publisher_share=0.01,
                subscriber_share=0.02,
            )
            for number in range(rounds)
            for replicas in REPLICAS
            for publishers in PUBLISHERS
        ],
        saturated=[
            Saturated(
                round=number,
                replicas=replicas,
                protocol=protocol,
                publishers=publishers,
                per_s=saturated_per_s - 1_000 * number,
                publisher_share=0.3,
                cpu_us=[1.0 + number, *[0.5 + number] * (replicas - 1)],
            )
            for number in range(rounds)
            for replicas in REPLICAS
            for protocol in (PROTOCOLS if replicas > 1 else ("",))
            for publishers in PUBLISHERS
        ],
    )


# ---------------------------------------------------------------------------------------------------------- arithmetic
@pytest.mark.parametrize("table", paper.Printed._fields)
def test_inferred_values_give_the_printed_percentages(table: str) -> None:
    computed = percentages(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S)[table]
    printed: Values = getattr(paper.PRINTED, table)
    assert {replicas: list(row) for replicas, row in computed.items()} == {
        replicas: list(row) for replicas, row in printed.items()
    }
    at_odds = {
        (table, replicas, publishers)
        for replicas, row in printed.items()
        for publishers, other in row.items()
        if abs(computed[replicas][publishers] - other) > WITHIN_POINTS
    }
    assert at_odds == {entry for entry in paper.AT_ODDS if entry[0] == table}


def test_inferred_values_agree_with_the_printed_ones() -> None:
    for printed, inferred in (
        (paper.PRINTED_LATENCY_MS, paper.INFERRED_LATENCY_MS),
        (paper.PRINTED_PER_S, paper.INFERRED_PER_S),
    ):
        for replicas, by_publishers in printed.items():
            for publishers, value in by_publishers.items():
                assert inferred[replicas][publishers] == pytest.approx(value, abs=0.05)


def test_what_is_offered_is_what_the_papers_baseline_carried() -> None:
    assert paper.INFERRED_PER_S[1] == OFFERED


def test_the_best_round_counts_for_latency() -> None:
    measured = results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S, rounds=3)
    runs, saturated = measured.offered_rounds(3, 1), measured.saturated_rounds(3, "batch", 1)
    assert (best_p50(runs), best_mean(runs), median_p50(runs)) == pytest.approx((2.56, 3.06, 3.56))
    assert best_per_s(saturated) == 50_000.0
    assert measured.added_ms(3, 1) == pytest.approx(0.58)
    assert measured.added_ms_in_rounds(3, 24) == pytest.approx(0.93)
    assert measured.drop_percent(3, 24) == pytest.approx(11.11, abs=0.01)


# --------------------------------------------------------------------------------------------------------------- loads
@pytest.mark.parametrize("publishers", PUBLISHERS)
def test_exactly_what_is_offered_is_planned(publishers: int) -> None:
    plan = schedule(Job("", publishers, OFFERED[publishers], 4.0))
    due = sorted(moment for one in plan for moment in one)
    assert (len(plan), len(due)) == (publishers, 4 * OFFERED[publishers])
    assert due[0] >= 0
    assert due[-1] < 4.0
    assert all(one == sorted(one) for one in plan)


def test_publications_have_lines_that_viewers_are_counted_from(tmp_path: Path) -> None:
    prepare(tmp_path, 2, 20, BOXES)
    contents = prepared(tmp_path, 1, 0, 20)
    lines = [payload.split(b"\n") for payload in contents]
    assert max(map(len, lines)) <= LINES_MAX
    assert max(len(line) for each in lines for line in each) <= LINE_BYTES_MAX
    audience = Audience()
    for payload in contents:
        audience.take(payload)
    assert (audience.lines, audience.malformed, audience.anomalies) == (sum(map(len, lines)), 0, 0)


def test_publications_are_the_same_each_time_and_differ_between_publishers(tmp_path: Path) -> None:
    first, again, other = (next(publications(publisher, BOXES)) for publisher in (1, 1, 0))
    assert first == again != other
    prepare(tmp_path, 1, 3, BOXES)
    every = prepared(tmp_path, 0, 0, 3)
    assert every[0] == other
    assert prepared(tmp_path, 0, 2, 3) == [every[2], every[0], every[1]]


def test_what_does_not_arrive_is_lost_and_what_arrives_late_costs_throughput() -> None:
    job = Job("", 1, 10.0, 1.0)
    published = {"began_at": 0, "ended_at": 2_000_000_000, "cpu_s": 0.5, "late_ns": 100_000}
    arrived = {"latencies": [1_000_000] * (SUBSCRIBERS * 10 - 3), "last_at": 1_000_000_000, "share": 0.1}
    run = offered(job, 3, 0, published, arrived)
    assert (run.lost, run.per_s, run.p50_ms, run.publisher_share) == (3, 9.0, 1.0, 0.25)
    late = offered(job, 3, 0, published, {**arrived, "last_at": 2_000_000_000})
    assert late.per_s == 4.5
    early = offered(job, 3, 0, published, {**arrived, "last_at": 900_000_000})
    assert early.per_s == 9.0


def test_every_number_of_publishers_publishes_as_many_events() -> None:
    assert all(EVENTS % publishers == 0 for publishers in PUBLISHERS)


def test_every_round_is_begun_by_another_group() -> None:
    orders = [groups_in_turn(number) for number in range(5)]
    assert [order[0] for order in orders] == [*REPLICAS, REPLICAS[0]]
    assert all(sorted(order) == list(REPLICAS) for order in orders)


# ---------------------------------------------------------------------------------------------------------------- text
def verdicts(measured: Results) -> list[bool]:
    return [target.met for target in targets(measured)]


def test_targets_are_met_or_missed() -> None:
    flat: Values = {replicas: dict.fromkeys(PUBLISHERS, 2.0) for replicas in REPLICAS}
    slow: Values = {**flat, 3: {**flat[3], 1: 2.61, 24: 3.26}}
    carried: Values = dict.fromkeys(REPLICAS, OFFERED)
    assert verdicts(results(flat, carried)) == [True] * 5
    assert verdicts(results(slow, carried)) == [False, False, True, True, True]
    assert verdicts(results(flat, paper.INFERRED_PER_S, 29_999.0)) == [True, True, False, False, False]


def test_the_papers_entries_stand_beside_ours_and_inferred_ones_are_marked() -> None:
    text = "\n".join(text_lines(results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S)))
    for cell in (
        "29.29 (29.29)",
        f"0.83 (1.25{ODD})",
        f"15.28 (15.38{ODD})",
        "2.56 (~2.56)",
        "(1.98)",
        "80.00 (80.04)",
    ):
        assert cell in text


def test_a_part_that_was_not_measured_is_left_out() -> None:
    everything = results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S)
    halves = [msgspec.structs.replace(everything, **{part: []}) for part in ("offered", "saturated")]
    assert [len(list(tables(half))) for half in halves] == [2, 7]
    assert [len(list(targets(half))) for half in halves] == [2, 3]
    assert all(list(markdown_lines(half)) for half in halves)


@pytest.mark.parametrize(
    ("load", "rounds", "seconds", "why"),
    [
        (0.1, 5, 4.0, ""),
        (1.5, 5, 4.0, "busy with other work."),
        (0.1, 4, 4.0, "fewer than 5 rounds."),
        (0.1, 5, 1.0, "less than 4 s (`--quick`)."),
    ],
)
def test_a_run_that_is_not_the_full_one_on_a_quiet_machine_is_marked(
    load: float, rounds: int, seconds: float, why: str
) -> None:
    full = results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S, rounds=rounds)
    text = "\n".join(markdown_lines(msgspec.structs.replace(full, load_before=load, seconds=seconds)))
    assert ("Preliminary" in text) is bool(why)
    assert why in text
    assert ("Short runs flatter" in text) is (seconds < 4.0)


@pytest.mark.parametrize("client", ["publisher_share", "subscriber_share"])
def test_clients_that_are_busy_are_named(client: str) -> None:
    idle = results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S)
    busy = msgspec.structs.replace(
        idle, offered=[*idle.offered[:-1], msgspec.structs.replace(idle.offered[-1], **{client: 0.5})]
    )
    assert ["BUSY" in "\n".join(text_lines(each)) for each in (idle, busy)] == [False, True]


def test_saturated_runs_whose_publishers_are_busy_are_counted() -> None:
    idle = results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S)
    busy = [msgspec.structs.replace(run, publisher_share=0.94) for run in idle.saturated[:2]]
    text = "\n".join(text_lines(msgspec.structs.replace(idle, saturated=[*busy, *idle.saturated[2:]])))
    assert "at most 94% of a core" in text
    assert f"in 2 of {len(idle.saturated)} runs" in text


def test_results_come_back_from_a_file_as_they_were() -> None:
    measured = results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S, rounds=2)
    assert msgspec.json.decode(msgspec.json.encode(measured), type=Results) == measured


# ------------------------------------------------------------------------------------------------------------ document
def test_only_what_is_between_the_markers_is_replaced() -> None:
    document = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    new = with_block(document, "new")
    assert new == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert with_block(new, "new") == new


@pytest.mark.parametrize("document", ["", BEGIN, f"{END}\n{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_a_document_without_its_markers_is_refused(document: str) -> None:
    with pytest.raises(ValueError, match="markers"):
        with_block(document, "new")


@pytest.mark.parametrize("module", [REPLICATION, delays.BLOCK, compare.BLOCK])
def test_the_document_has_its_markers(module: str) -> None:
    with_block(DOCUMENT.read_text(), "new", module)


def test_a_saved_run_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S)
    path = tmp_path / "results.json"
    path.write_bytes(msgspec.json.encode(measured))
    main(["--read", str(path), "--markdown"])
    assert capsys.readouterr().out == "\n".join(markdown_lines(measured)) + "\n"


# ----------------------------------------------------------------------------------------------------------- small runs
@pytest.mark.parametrize("replicas", [1, 3])
def test_a_small_run_loses_nothing_and_counts_what_it_took(replicas: int, tmp_path: Path) -> None:
    prepare(tmp_path, 2, 5, BOXES)
    with running(replicas, "multi") as (url, pids):
        job = Job(url, 2, 50.0, 0.2, zaps=str(tmp_path))
        run = offer(job, replicas, 0)
        assert (run.replicas, run.publishers, run.lost) == (replicas, 2, 0)
        assert 0 < run.per_s <= 50.0
        assert 0 < run.p50_ms <= run.p99_ms
        saturated = saturate(Job(url, 2, 0.0, 0.0, 2_000), pids, "multi", 0)
        assert saturated.per_s > 0
        assert len(saturated.cpu_us) == replicas
        assert all(cost > 0 for cost in saturated.cpu_us)


def test_processor_time_is_that_of_the_round_that_took_least() -> None:
    measured = results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S)
    processor = list(tables(msgspec.structs.replace(measured, offered=[])))[1]
    assert dict(processor.rows)["1 (not replicated)"] == ["1.00"] * len(PUBLISHERS)
    assert dict(processor.rows)["3, batch"] == ["1.00, 0.50"] * len(PUBLISHERS)


def test_a_run_of_before_processor_time_was_measured_has_no_table_of_it() -> None:
    measured = results(paper.INFERRED_LATENCY_MS, paper.INFERRED_PER_S)
    old = [msgspec.structs.replace(run, cpu_us=[]) for run in measured.saturated]
    assert len(list(tables(msgspec.structs.replace(measured, offered=[], saturated=old)))) == 1
