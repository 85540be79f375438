"""Stages: parts in order and once, commits once for each epoch, and an end to what is never committed."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.messages import Message
from holdfast.kernel.node import InvariantBroken
from holdfast.protocols.core.commands import CommitStages, StageEvents
from holdfast.protocols.core.staging import Staging
from holdfast.protocols.cursors.messages import LogRefused, Staged, StagesCommitted
from holdfast.protocols.sessions.messages import Refusal
from tests.sessions.bench import batch


def stage(staging: Staging, part: int, *numbers: int, wall: int = 1, **fields: object) -> Message:
    wanted = {"query": "q", "query_epoch": 1, "task": 1, "stage": "s"} | fields
    events = batch(*numbers)
    command = StageEvents("client:c", 1, 9, **wanted, part=part, events=events)  # type: ignore[arg-type]
    answer = staging.stage(command, len(numbers), wall, 1_000)
    staging.check_invariants()
    return answer


def commit(staging: Staging, epoch: int, *stages: str, query: str = "q") -> Message | list[msgspec.Raw]:
    """The answer if nothing is to be done, or the parts that are published."""
    command = CommitStages("client:c", 1, 9, query, epoch, stages)
    answer = staging.answer_commit(command)
    if answer is not None:
        return answer
    parts = staging.take_parts(stages)
    staging.commit(query, epoch, 5, 6, 1, 2)
    staging.check_invariants()
    return parts


def refusal(answer: Message | list[msgspec.Raw]) -> Refusal:
    assert isinstance(answer, LogRefused)
    return answer.reason


def test_a_part_counts_once_and_none_may_be_missing() -> None:
    staging = Staging()
    assert refusal(stage(staging, 2, 1)) is Refusal.UNKNOWN
    assert staging.stages == {}
    assert stage(staging, 1, 1, 2) == Staged(9, 2)
    assert stage(staging, 1, 1, 2) == Staged(9, 2)
    assert refusal(stage(staging, 3, 4)) is Refusal.UNKNOWN
    assert stage(staging, 2, 3) == Staged(9, 3)
    assert commit(staging, 1, "s") == [batch(1, 2), batch(3)]
    assert (staging.stages, staging.bytes) == ({}, 0)


def test_a_commit_is_done_once_and_answered_as_done_after_that() -> None:
    staging = Staging()
    stage(staging, 1, 1)
    stage(staging, 1, 2, stage="t", task=2)
    assert commit(staging, 1, "t", "s", "t") == [batch(2), batch(1)]
    assert commit(staging, 1, "t", "s") == StagesCommitted(9, 5, 6, already=True)
    assert commit(staging, 0, "x") == StagesCommitted(9, 0, 0, already=True)
    assert refusal(stage(staging, 1, 1)) is Refusal.CONFLICT
    assert refusal(stage(staging, 1, 1, query_epoch=0)) is Refusal.CONFLICT


def test_only_stages_of_the_epoch_are_committed_and_all_or_none() -> None:
    staging = Staging()
    stage(staging, 1, 1)
    stage(staging, 1, 2, stage="later", query_epoch=2)
    stage(staging, 1, 3, stage="other", query="r")
    for unknown in ("x", "later", "other"):
        assert refusal(commit(staging, 1, "s", unknown)) is Refusal.UNKNOWN
    assert set(staging.stages) == {"s", "later", "other"}
    assert commit(staging, 2, "later") == [batch(2)]
    assert set(staging.stages) == {"other"}, "earlier epochs of the query are done with"


def test_a_stage_belongs_to_one_task_of_one_epoch() -> None:
    staging = Staging()
    stage(staging, 1, 1)
    for other in ({"task": 2}, {"query_epoch": 2}, {"query": "r"}):
        assert refusal(stage(staging, 2, 2, **other)) is Refusal.CONFLICT


def test_stages_are_bounded_and_expire() -> None:
    staging = Staging()
    stage(staging, 1, *range(20), wall=5)
    assert refusal(stage(staging, 2, *range(60))) is Refusal.LIMIT
    stage(staging, 1, 1, stage="t", wall=7)
    assert staging.oldest() == 5
    staging.expire(5)
    assert set(staging.stages) == {"s", "t"}
    staging.expire(6)
    assert (set(staging.stages), staging.oldest()) == ({"t"}, 7)
    staging.check_invariants()


def test_the_queries_that_are_remembered_are_bounded() -> None:
    staging = Staging()
    for wall, query in enumerate("abc"):
        staging.commit(query, 1, 1, 1, wall, 2)
    assert set(staging.committed) == {"b", "c"}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("stage"), st.sampled_from("st"), st.integers(1, 3), st.integers(1, 2), st.integers(1, 3)),
        st.tuples(st.just("commit"), st.sampled_from([("s",), ("t",), ("s", "t")]), st.integers(1, 3)),
    ),
    max_size=20,
)


@given(taken=steps)
def test_every_epoch_publishes_at_most_once_what_was_staged_for_it(taken: list[tuple[Any, ...]]) -> None:
    staging, done = Staging(), 0
    published: list[int] = []
    model: dict[str, tuple[int, list[int]]] = {}
    for kind, *fields in taken:
        if kind == "stage":
            id, epoch, part, number = fields
            answer = stage(staging, part, number, stage=id, query_epoch=epoch)
            known = model.get(id, (epoch, []))
            if isinstance(answer, Staged) and part == len(known[1]) + 1:
                model[id] = (epoch, [*known[1], number])
        else:
            ids, epoch = fields
            parts = commit(staging, epoch, *ids)
            if isinstance(parts, list):
                assert epoch > done
                done = epoch
                published.append(epoch)
                wanted = [batch(n) for id in dict.fromkeys(ids) for n in model[id][1]]
                assert parts == wanted
                model = {id: stage for id, stage in model.items() if stage[0] > done}
    assert published == sorted(set(published))


def test_contradictions_are_found() -> None:
    staging = Staging()
    stage(staging, 1, 1)
    staging.bytes = 0
    with pytest.raises(InvariantBroken):
        staging.check_invariants()
