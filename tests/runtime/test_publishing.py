"""Waiting for what was published: one wake-up for all events of a batch, and an outcome for each."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from holdfast.client.publishing import BATCH_EVENTS, UNANSWERED_MAX, Publishing
from holdfast.errors import BusClosed, EventError, HoldfastError, OutcomeUnknown
from holdfast.protocols.sessions.messages import Refusal
from holdfast.protocols.sessions.requests import NewEvent, Published, PublishEvents


class Sent:
    """In place of a connection: what is sent waits here until the test answers it."""

    name = "p"
    reason = refusal = ""
    is_usable = True

    def __init__(self) -> None:
        self.requests: list[PublishEvents] = []
        self.hurried = 0

    def check_open(self) -> None: ...

    def hurry(self) -> None:
        self.hurried += 1

    def send(self, command: PublishEvents) -> int:
        self.requests.append(command)
        return len(self.requests) - 1


def run(scene: Callable[[Publishing, Sent], Awaitable[Any]]) -> Any:
    async def within_time() -> Any:
        sent: Any = Sent()
        async with asyncio.timeout(20):
            return await scene(Publishing(sent), sent)

    return asyncio.run(within_time())


def publish(publishing: Publishing, n: int) -> Coroutine[Any, Any, None]:
    return publishing.publish({"n": n}, "", b"", None, retry=True)


async def turns() -> None:
    """Until everything that can be done is."""
    for _ in range(5):
        await asyncio.sleep(0)


async def grouped(work: list[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for one in work:
            group.create_task(one)


async def in_tasks(work: list[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*[asyncio.create_task(one) for one in work])


async def in_time(work: list[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*[asyncio.wait_for(one, 10) for one in work])


async def gathered(work: list[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*work)


@pytest.mark.parametrize("wait", [gathered, in_tasks, grouped, in_time])
def test_who_waits_goes_on_when_his_event_is_answered_and_not_before(
    wait: Callable[[list[Coroutine[Any, Any, None]]], Awaitable[None]],
) -> None:
    async def scene(publishing: Publishing, sent: Sent) -> None:
        waiting = asyncio.ensure_future(wait([publish(publishing, n) for n in range(3)]))
        await turns()
        assert [[new.attributes["n"] for new in command.events] for command in sent.requests] == [[0, 1, 2]]
        assert not waiting.done()
        assert publishing.unanswered == 3
        publishing.answer(0, Published([]))
        await waiting
        assert publishing.unanswered == 0

    run(scene)


def test_all_who_wait_for_a_batch_share_a_future(monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher that has a thousand events in flight pays for one per batch, and for no task of ours."""

    async def scene(publishing: Publishing, sent: Sent) -> None:
        loop = asyncio.get_running_loop()
        create, made = loop.create_future, []

        def count() -> asyncio.Future[Any]:
            made.append(create())
            return made[-1]

        monkeypatch.setattr(loop, "create_future", count)
        workers = [asyncio.ensure_future(publish(publishing, n)) for n in range(4 * BATCH_EVENTS)]
        tasks = len(asyncio.all_tasks())
        await turns()
        assert (len(sent.requests), len(made), len(asyncio.all_tasks())) == (4, 4, tasks)
        for request in range(4):
            publishing.answer(request, Published([]))
        await asyncio.gather(*workers)

    run(scene)


def test_a_refusal_is_raised_at_who_published_the_event_and_nowhere_else() -> None:
    async def scene(publishing: Publishing, sent: Sent) -> None:
        waiting = [asyncio.ensure_future(publish(publishing, n)) for n in range(5)]
        await turns()
        publishing.answer(0, Published([(1, Refusal.EVENT, "bad"), (3, None, "gone")]))
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in found] == [type(None), EventError, type(None), OutcomeUnknown, type(None)]
        await publishing.flush()

    run(scene)


def test_a_refusal_that_nobody_waits_for_is_raised_by_flush() -> None:
    async def scene(publishing: Publishing, sent: Sent) -> None:
        waiting = asyncio.ensure_future(publish(publishing, 0))
        await turns()
        await publishing.post(NewEvent({"n": 1}))
        await turns()
        publishing.answer(0, Published([]))
        publishing.answer(1, Published([(0, Refusal.EVENT, "bad")]))
        await waiting
        with pytest.raises(EventError):
            await publishing.flush()

    run(scene)


def test_who_is_cancelled_goes_at_once_and_the_others_wait_on() -> None:
    async def scene(publishing: Publishing, sent: Sent) -> None:
        waiting = [asyncio.ensure_future(publish(publishing, n)) for n in range(6)]
        await turns()
        for cancelled in (waiting[1], waiting[4]):
            cancelled.cancel()
            await turns()
            assert cancelled.cancelled()
        waiting[2].cancel()
        waiting[5].cancel()
        await turns()
        assert [one.done() for one in waiting] == [False, True, True, False, True, True]
        publishing.answer(0, Published([(1, Refusal.EVENT, "bad"), (3, Refusal.EVENT, "bad")]))
        found = await asyncio.gather(*waiting, return_exceptions=True)
        kinds = [type(one).__name__ for one in found]
        assert kinds == [
            "NoneType",
            "CancelledError",
            "CancelledError",
            "EventError",
            "CancelledError",
            "CancelledError",
        ]
        await publishing.flush()  # what was refused had someone who waited

    run(scene)


def test_who_publishes_behind_one_who_was_cancelled_waits_for_his_own() -> None:
    async def scene(publishing: Publishing, sent: Sent) -> None:
        async def cancel_and_publish() -> None:
            first.cancel()
            await publish(publishing, 1)

        first = asyncio.ensure_future(publish(publishing, 0))
        second = asyncio.ensure_future(cancel_and_publish())
        await turns()
        assert [len(command.events) for command in sent.requests] == [2]
        assert (first.cancelled(), second.done()) == (True, False)
        publishing.answer(0, Published([(1, Refusal.EVENT, "bad")]))
        with pytest.raises(EventError):
            await second

    run(scene)


def test_who_is_out_of_time_is_told_and_the_others_wait_on() -> None:
    async def scene(publishing: Publishing, sent: Sent) -> None:
        patient = asyncio.ensure_future(publish(publishing, 0))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(publish(publishing, 1), 0.001)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await publish(publishing, 2)
        assert not patient.done()
        for request in range(len(sent.requests)):
            publishing.answer(request, Published([]))
        await patient

    run(scene)


def test_who_outlived_a_cancellation_is_not_cancelled_with_another() -> None:
    async def stubborn(publishing: Publishing, sent: Sent) -> str:
        try:
            await publish(publishing, 0)
        except asyncio.CancelledError:
            await publish(publishing, 1)  # as who cleans up would
        return "done"

    async def scene(publishing: Publishing, sent: Sent) -> None:
        task = asyncio.ensure_future(stubborn(publishing, sent))
        await turns()
        task.cancel()
        other = asyncio.ensure_future(publish(publishing, 2))
        await turns()
        assert len(sent.requests) == 2
        other.cancel()
        await turns()
        assert (task.done(), other.cancelled()) == (False, True)
        publishing.answer(1, Published([]))
        assert await task == "done"

    run(scene)


def test_an_answer_and_a_cancellation_of_the_same_turn_are_both_heard() -> None:
    async def scene(publishing: Publishing, sent: Sent) -> None:
        waiting = [asyncio.ensure_future(publish(publishing, n)) for n in range(3)]
        await turns()
        waiting[0].cancel()
        publishing.answer(0, Published([]))
        waiting[1].cancel()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one).__name__ for one in found] == ["CancelledError", "CancelledError", "NoneType"]

    run(scene)


def test_who_waits_when_nothing_is_answered_any_more_gets_an_exception_of_his_own() -> None:
    async def scene(publishing: Publishing, sent: Sent) -> None:
        waiting = [asyncio.ensure_future(publish(publishing, n)) for n in range(3)]
        await turns()
        publishing.end(BusClosed("over"))
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in found] == [BusClosed] * 3
        assert len({id(one) for one in found}) == 3
        await publishing.flush()  # nothing was posted

    run(scene)


def test_who_publishes_when_too_many_are_unanswered_waits_for_room() -> None:
    async def scene(publishing: Publishing, sent: Sent) -> None:
        publishing.collect([NewEvent({"n": n}) for n in range(UNANSWERED_MAX)], True)
        waiting = asyncio.ensure_future(publish(publishing, -1))
        await turns()
        assert len(sent.requests) == 1
        publishing.answer(0, Published([]))
        await turns()
        assert len(sent.requests) == 2
        publishing.answer(1, Published([(0, None, "lost")]))
        with pytest.raises(HoldfastError):
            await waiting

    run(scene)
