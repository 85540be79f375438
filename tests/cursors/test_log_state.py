"""Where the log begins and ends, and what its marks are good for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.node import InvariantBroken
from holdfast.protocols.core import log_state
from holdfast.protocols.core.log_state import LogState

batches = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 60), st.integers(-5, 30)), min_size=1, max_size=12)


@pytest.fixture(autouse=True, scope="module")
def close_marks() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_state, "MARK_BYTES", 100)
        patch.setattr(log_state, "MARK_NS", 40)
        yield


def filled(given_batches: list[tuple[int, int, int]]) -> tuple[LogState, list[tuple[int, int]]]:
    """A log, and the time and size of every event."""
    log, wall = LogState(), 1_000
    events: list[tuple[int, int]] = []
    for count, size, passed in given_batches:
        wall += passed
        assert log.add(count, count * size, wall) == len(events) + 1
        events += [(log.wall, size)] * count
        log.check_invariants()
    return log, events


@given(given_batches=batches)
def test_positions_have_no_gap_and_time_does_not_go_back(given_batches: list[tuple[int, int, int]]) -> None:
    log, events = filled(given_batches)
    assert (log.head, log.tail, log.bytes) == (len(events), 1, sum(size for _, size in events))
    assert [wall for wall, _ in events] == sorted(wall for wall, _ in events)


@given(given_batches=batches, tail=st.integers(-3, 40), passed=st.integers(-20, 300))
def test_a_search_by_time_begins_at_or_before_the_event(
    given_batches: list[tuple[int, int, int]], tail: int, passed: int
) -> None:
    log, events = filled(given_batches)
    log.keep_from(tail)
    log.check_invariants()
    since = 1_000 + passed
    found = next((p for p, (wall, _) in enumerate(events, 1) if wall >= since and p >= log.tail), log.head + 1)
    assert log.tail <= log.position_before(since) <= max(found, log.tail)


@given(given_batches=batches, tails=st.lists(st.integers(-3, 40), max_size=4))
def test_the_tail_only_moves_on_and_never_beyond_the_end(
    given_batches: list[tuple[int, int, int]], tails: list[int]
) -> None:
    log, events = filled(given_batches)
    expected = 1
    for tail in tails:
        log.keep_from(tail)
        expected = max(expected, min(tail, len(events) + 1))
        assert log.tail == expected
        kept = sum(size for _, size in events[log.tail - 1 :])
        assert kept <= log.kept_bytes or not kept
        log.check_invariants()


@given(given_batches=batches, bytes_max=st.integers(0, 500), passed=st.integers(0, 200))
def test_what_is_expendable_leaves_enough_and_nothing_young_goes(
    given_batches: list[tuple[int, int, int]], bytes_max: int, passed: int
) -> None:
    log, events = filled(given_batches)
    by_size = log.expendable(bytes_max, -1)
    assert by_size == 1 or sum(size for _, size in events[by_size - 1 :]) >= bytes_max
    by_age = log.expendable(1 << 60, 1_000 + passed)
    assert all(wall <= 1_000 + passed for wall, _ in events[: by_age - 1])


def test_contradictions_are_found() -> None:
    with pytest.raises(InvariantBroken, match="begins before it ends"):
        LogState(head=3, tail=5).check_invariants()


@given(given_batches=batches, position=st.integers(0, 40), tail=st.integers(1, 40))
def test_bytes_behind_a_position_are_about_those_of_the_events_there(
    given_batches: list[tuple[int, int, int]], position: int, tail: int
) -> None:
    log, events = filled(given_batches)
    log.keep_from(tail)
    kept = events[max(position, log.tail - 1) :]
    about, exact = log.bytes_behind(position), sum(size for _, size in kept)
    assert (about == 0) == (not kept) or about == 0 == exact
    between = max((b.bytes - a.bytes for a, b in zip(log.marks, log.marks[1:], strict=False)), default=0)
    between = max(between, log.bytes - log.marks[-1].bytes)
    assert abs(about - exact) <= between
    assert about >= log.bytes_behind(position + 1), "never more behind a later one"
