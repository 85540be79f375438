"""What is staged and committed without Spark, attempt by attempt: published exactly once, and nothing is left over."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from experiments.replication.group import ReplicaGroup
from holdfast.client.blocking import connect
from holdfast.errors import EventError, LimitReached, NotConnected, StageLost
from holdfast.spark import writer as sink
from holdfast.spark.sink_options import Kind, SinkColumns, SinkOptions
from holdfast.spark.writer import TaskStaged, commit_stages, stage_rows
from tests.runtime.broker_process import free_port
from tests.spark.sink import DurableBroker

COLUMNS = SinkColumns({"n": Kind.INTEGER})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DurableBroker]:
    with DurableBroker(tmp_path_factory.mktemp("sink"), rest="[limits]\nstaged_bytes = 1_000_000\n") as process:
        yield process
        assert process.staged_bytes() == 0, "every test leaves it as it was"


def batch(*numbers: int) -> Any:
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


class Query:
    """One query to a broker, with epochs and tasks."""

    def __init__(self, broker: DurableBroker, name: str, wait_s: float = 30.0) -> None:
        self.options = SinkOptions(broker.url, wait_s=wait_s)
        self._name = name

    def stage(self, epoch: int, task: int, *batches: Any) -> TaskStaged:
        return self.stage_all(epoch, task, iter(batches))

    def stage_all(self, epoch: int, task: int, batches: Iterator[Any]) -> TaskStaged:
        return stage_rows(self.options, COLUMNS, self._name, epoch, task, batches)

    def commit(self, *messages: TaskStaged | None) -> None:
        commit_stages(self.options, list(messages))


@pytest.fixture
def query(broker: DurableBroker, request: pytest.FixtureRequest) -> Query:
    return Query(broker, request.node.name[:100])


def numbers(found: list[dict[str, Any]]) -> list[int]:
    return [event["n"] for event in found]


def failing(*batches: Any) -> Iterator[Any]:
    yield from batches
    raise RuntimeError("the task failed")


def test_tasks_are_published_in_the_order_of_their_partitions_when_all_are_there(
    broker: DurableBroker, query: Query
) -> None:
    with broker.published() as found:
        second = query.stage(0, 1, batch(3), batch(4, 5))
        empty = query.stage(0, 2, batch())
        first = query.stage(0, 0, batch(), batch(1, 2))
        assert broker.staged_bytes() > 0
        assert (first.rows, second.rows, empty) == (2, 3, TaskStaged(first.query, 0))
        with broker.published() as early:
            pass
        query.commit(first, second, empty)
    assert (early, numbers(found)) == ([], [1, 2, 3, 4, 5])
    assert broker.staged_bytes() == 0


def test_an_epoch_without_rows_asks_nothing_of_the_broker(query: Query) -> None:
    nobody = SinkOptions(f"holdfast://127.0.0.1:{free_port()}", wait_s=0)
    empty = stage_rows(nobody, COLUMNS, "q", 0, 0, iter([batch()]))
    commit_stages(nobody, [empty, stage_rows(nobody, COLUMNS, "q", 0, 1, iter([]))])
    commit_stages(nobody, [])


def test_a_task_that_failed_after_a_part_is_published_once_by_its_next_attempt(
    broker: DurableBroker, query: Query
) -> None:
    with broker.published() as found:
        with pytest.raises(RuntimeError, match="the task failed"):
            query.stage_all(0, 0, failing(batch(*range(3_000))))
        left = broker.staged_bytes()
        assert left > 0, "a part was staged"
        query.commit(query.stage(0, 0, batch(*range(3_000))))
    assert numbers(found) == list(range(3_000))
    assert broker.staged_bytes() == 0, "what the first attempt left went with the commit"


def test_a_task_that_ran_twice_is_published_once(broker: DurableBroker, query: Query) -> None:
    with broker.published() as found:
        query.stage(0, 0, batch(1))
        query.commit(query.stage(0, 0, batch(1)), query.stage(0, 1, batch(2)))
    assert numbers(found) == [1, 2]
    assert broker.staged_bytes() == 0


def test_the_replay_of_an_epoch_that_was_committed_publishes_nothing(broker: DurableBroker, query: Query) -> None:
    with broker.published() as found:
        query.commit(query.stage(4, 0, batch(1)), query.stage(4, 1, batch(2)))
        again = query.stage(4, 0, batch(1)), query.stage(4, 1, batch(2)), query.stage(4, 2, batch())
        assert [message.already for message in again] == [True, True, False]
        query.commit(*again)
        query.commit(query.stage(5, 0, batch(3)))
    assert numbers(found) == [1, 2, 3]
    assert broker.staged_bytes() == 0


def test_the_replay_of_an_epoch_that_was_not_committed_publishes_it_once(broker: DurableBroker, query: Query) -> None:
    with broker.published() as found:
        abandoned = query.stage(4, 0, batch(1)), query.stage(4, 1, batch(2))
        query.commit(query.stage(4, 0, batch(1)), query.stage(4, 1, batch(2)))
        # The worker of a driver that was killed may live on, and commit late.
        query.commit(*abandoned)
    assert numbers(found) == [1, 2]
    assert broker.staged_bytes() == 0


def test_a_commit_that_is_repeated_changes_nothing(broker: DurableBroker, query: Query) -> None:
    with broker.published() as found:
        staged = query.stage(0, 0, batch(1))
        query.commit(staged)
        query.commit(staged)
    assert numbers(found) == [1]


def test_an_epoch_that_is_committed_while_its_replay_is_staged_is_published_once(
    broker: DurableBroker, query: Query
) -> None:
    with broker.published() as found:
        first = query.stage(0, 0, batch(1)), query.stage(0, 1, batch(2))
        replayed = query.stage(0, 0, batch(1))
        query.commit(*first)
        late = query.stage(0, 1, batch(2))
        assert (replayed.already, late.already) == (False, True)
        query.commit(replayed, late)
    assert numbers(found) == [1, 2]
    assert broker.staged_bytes() == 0


def test_a_part_of_an_epoch_is_never_committed(
    broker: DurableBroker, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even if the broker should know nothing of the commit any more that one of the tasks was told of."""
    staged = query.stage(0, 0, batch(1))
    with broker.published() as found:
        query.commit(staged, TaskStaged(staged.query, 0, already=True))
    assert found == []
    query.commit(staged)


def test_after_an_abort_nothing_is_published_and_the_next_commit_clears_up(
    broker: DurableBroker, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = sink.HoldfastStreamWriter.__new__(sink.HoldfastStreamWriter)
    with broker.published() as found:
        staged = query.stage(0, 0, batch(1))
        stream.abort([staged, None], 0)
        assert broker.staged_bytes() > 0
        query.commit(query.stage(0, 0, batch(2)))
    assert numbers(found) == [2]
    assert broker.staged_bytes() == 0


def test_a_stage_that_the_broker_lost_stops_the_epoch_and_says_what_to_do(broker: DurableBroker, query: Query) -> None:
    staged = query.stage(0, 0, batch(1))
    lost = TaskStaged(staged.query, 0, "gone", 1)
    with broker.published() as found, pytest.raises(StageLost, match=r"nothing .* published.*Start the query again"):
        query.commit(staged, lost)
    assert found == []
    query.commit(query.stage(0, 0, batch(1)))


def test_a_row_that_is_no_event_is_named_and_nothing_is_published(broker: DurableBroker, query: Query) -> None:
    columns = SinkColumns({"n": Kind.FLOAT})
    good, bad = pa.record_batch({"n": [0.5] * 2_500}), pa.record_batch({"n": [0.5, float("nan")]})
    with broker.published() as found, pytest.raises(EventError, match=r"partition 7, row 2501, column 'n': is nan"):
        stage_rows(query.options, columns, "nan", 0, 7, iter([good, bad]))
    assert found == []
    commit_stages(query.options, [stage_rows(query.options, columns, "nan", 0, 7, iter([good]))])


def test_an_epoch_beyond_what_may_be_staged_says_what_to_do(broker: DurableBroker, query: Query) -> None:
    with broker.published() as found:
        with pytest.raises(LimitReached, match=r"staged_bytes, 1000000.*write less at a time"):
            query.stage(0, 0, *(batch(*range(2_000)) for _ in range(20)))
        query.commit(query.stage(0, 0, batch(1)))
    assert numbers(found) == [1]


def test_a_broker_that_is_killed_while_rows_are_staged_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with DurableBroker(tmp_path) as broker:

        def batches() -> Iterator[Any]:
            for start in range(0, 10_000, 2_500):
                yield batch(*range(start, start + 2_500))
                if start == 2_500:
                    broker.kill()
                    broker.start()

        query = Query(broker, "q")
        staged = query.stage_all(0, 0, batches())
        broker.kill()
        broker.start()
        with broker.published() as found:
            query.commit(staged)
        assert numbers(found) == list(range(10_000))
        assert broker.staged_bytes() == 0


def test_a_leader_that_is_killed_while_rows_are_staged_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with ReplicaGroup(tmp_path) as group:
        group.start()

        def batches() -> Iterator[Any]:
            for start in range(0, 10_000, 2_500):
                yield batch(*range(start, start + 2_500))
                if start == 2_500:
                    group.stop(asyncio.run(group.leader()))

        options = SinkOptions(group.url, wait_s=60)
        commit_stages(options, [stage_rows(options, COLUMNS, "q", 0, 0, batches())])
        with connect(group.url) as bus:
            assert [event.attributes["n"] for event in bus.read(start=1)] == list(range(10_000))


def test_a_broker_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    port, answers = free_port(), list[TaskStaged]()
    options = SinkOptions(f"holdfast://127.0.0.1:{port}", wait_s=60)

    def work() -> None:
        answers.append(stage_rows(options, COLUMNS, "q", 0, 0, iter([batch(1, 2)])))

    thread = threading.Thread(target=work)
    thread.start()
    with DurableBroker(tmp_path, port=port) as broker:
        thread.join(60)
        assert [answer.rows for answer in answers] == [2]
        with broker.published() as found:
            commit_stages(options, list(answers))
        assert numbers(found) == [1, 2]


def test_a_broker_that_does_not_come_is_waited_for_no_longer_than_said() -> None:
    options = SinkOptions(f"holdfast://127.0.0.1:{free_port()}", wait_s=0.2)
    with pytest.raises(NotConnected, match="option 'wait_s'"):
        stage_rows(options, COLUMNS, "q", 0, 0, iter([batch(1)]))
    with pytest.raises(NotConnected, match="option 'wait_s'"):
        commit_stages(options, [TaskStaged("q", 0, "s", 1)])


def test_a_broker_that_goes_away_for_good_ends_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink, "ANSWER_S_MIN", 0.2)
    with DurableBroker(tmp_path) as broker:

        def batches() -> Iterator[Any]:
            yield batch(1)
            broker.kill()
            yield batch(2)

        with pytest.raises(NotConnected, match=r"publishes once"):
            Query(broker, "q", wait_s=0.2).stage_all(0, 0, batches())
