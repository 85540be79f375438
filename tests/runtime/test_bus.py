"""The client library against a real broker process."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import Bus, State, Subscription, connect
from holdfast.errors import (
    BusClosed,
    EventError,
    FilterError,
    NotAdvertised,
    NotConnected,
    OutcomeUnknown,
    SubscriptionEnded,
    Superseded,
    UrlError,
)
from tests.runtime.broker_process import BrokerProcess, free_port


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site")) as process:
        yield process


def run(scene: Callable[[], Awaitable[Any]]) -> Any:
    async def within_time() -> Any:
        async with asyncio.timeout(30):
            return await scene()

    return asyncio.run(within_time())


@contextlib.asynccontextmanager
async def two(broker: BrokerProcess) -> AsyncIterator[tuple[Bus, Bus]]:
    async with connect(broker.url) as one, connect(broker.url) as other:
        yield one, other


async def _take_until_it_fails(events: Subscription) -> None:
    async for _ in events:
        pass


async def _publish_until_it_fails(bus: Bus, retry: bool = True) -> None:
    for _ in range(500):
        await bus.publish({"n": -1}, retry=retry)
        await asyncio.sleep(0.02)


def test_what_is_published_reaches_who_wants_it(broker: BrokerProcess) -> None:
    async def scene() -> None:
        wanted = "topic = 'stock' AND price > 100"
        async with two(broker) as (publisher, subscriber), subscriber.subscribe(wanted) as events:
            await publisher.publish({"symbol": "IBM", "price": 99}, topic="stock")
            await publisher.publish({"symbol": "IBM", "price": 101.5}, topic="stock", payload=b"\x00\xff")
            event = await events.next()
        assert (event.attributes, event.topic, event.payload) == (
            {"symbol": "IBM", "price": 101.5},
            "stock",
            b"\x00\xff",
        )
        assert event.id.startswith(f"{publisher.name}/")
        assert event.published_at > 1_700_000_000 * 10**9

    run(scene)


def test_a_publisher_that_advertised_is_held_to_it_until_it_takes_it_back(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with connect(broker.url) as bus:
            async with bus.advertise("topic = 'stock'") as first:
                assert first.filter == "topic = 'stock'"
                await bus.publish({"price": 1}, topic="stock")
                with pytest.raises(NotAdvertised, match="matches nothing"):
                    await bus.publish({"price": 1}, topic="weather")
                second = await bus.advertise("topic = 'weather'")
                await bus.publish({"price": 1}, topic="weather")
            with pytest.raises(NotAdvertised):
                await bus.publish({"price": 1}, topic="stock")
            await second.close()
            await bus.publish({"price": 1}, topic="anything")
            with pytest.raises(FilterError):
                await bus.advertise("price >")

    run(scene)


def test_many_events_arrive_once_in_order_in_any_way_of_taking_them(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with (
            two(broker) as (publisher, subscriber),
            subscriber.subscribe("topic = 'many'", overflow="block") as one_by_one,
            subscriber.subscribe("topic = 'many'", overflow="block", window=50) as in_lists,
        ):
            publishing = asyncio.create_task(publisher.publish_many(({"n": n}, "many") for n in range(5_000)))
            singles, lists = [], []

            async def take_lists() -> None:
                async for batch in in_lists.batches():
                    lists.extend(batch)
                    if len(lists) == 5_000:
                        return

            taking = asyncio.create_task(take_lists())
            async for event in one_by_one:
                singles.append(event)
                if len(singles) == 5_000:
                    break
            await taking
            assert await publishing == 5_000
        assert [event.attributes["n"] for event in singles] == list(range(5_000))
        assert [event.attributes["n"] for event in lists] == list(range(5_000))

    run(scene)


def test_posting_returns_early_and_flushing_waits_and_tells(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with two(broker) as (publisher, subscriber), subscriber.subscribe("topic = 'posted'") as events:
            for n in range(100):
                await publisher.post({"n": n}, topic="posted")
            await publisher.post({"n": float("nan")}, topic="posted")
            with pytest.raises(EventError, match="only finite numbers"):
                await publisher.flush()
            await publisher.flush()
            assert [(await events.next()).attributes["n"] for _ in range(100)] == list(range(100))

            async def numbers() -> AsyncIterator[dict[str, int]]:
                for n in range(10):
                    yield {"n": n}

            assert await publisher.publish_many(numbers()) == 10

    run(scene)


def test_mistakes_raise_precise_exceptions_and_harm_nothing(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with connect(broker.url) as bus:
            with pytest.raises(FilterError) as caught:
                await bus.subscribe("price >").__aenter__()
            assert (caught.value.problem, caught.value.offset) == ("the filter ends too early", 7)
            for attributes in ({"n": float("inf")}, {"n": 2**70}, {"": 1}, {"n": None}, {"topic": "x"}):
                with pytest.raises(EventError):
                    await bus.publish(attributes)  # type: ignore[arg-type]
            with pytest.raises(EventError, match="attributes are a mapping"):
                await bus.publish([("n", 1)])  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="overflow is one of disconnect, drop-oldest, block, not 'explode'"):
                bus.subscribe("", overflow="explode")
            with pytest.raises(ValueError, match="window is 1 to 65536, not 0"):
                bus.subscribe("", window=0)
            with pytest.raises(ValueError, match="lifetime is -1 s"):
                await bus.publish({}, lifetime=-1)
            await bus.publish({"n": 1})

    run(scene)


@pytest.mark.parametrize("url", ["127.0.0.1:1", "holdfast://", "holdfast://a:0", "holdfast://a,b:99999", "http://a:1"])
def test_a_url_that_names_no_broker_is_refused(url: str) -> None:
    with pytest.raises(UrlError):
        connect(url)


def test_no_broker_is_an_error_that_says_where() -> None:
    async def scene() -> None:
        url = f"holdfast://127.0.0.1:{free_port()}"
        with pytest.raises(NotConnected, match=f"no broker at {url} answered within 0.3 s"):
            async with connect(url, timeout_s=0.3):
                pass

    run(scene)


def test_a_closed_bus_says_so(broker: BrokerProcess) -> None:
    async def scene() -> None:
        bus = connect(broker.url)
        with pytest.raises(BusClosed, match="use it with 'async with'"):
            await bus.publish({})
        async with bus:
            events = await bus.subscribe("").__aenter__()
        with pytest.raises(BusClosed):
            await bus.publish({})
        with pytest.raises(BusClosed):
            await events.next()
        await bus.close()

    run(scene)


def test_a_cancelled_task_harms_nothing(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with two(broker) as (publisher, subscriber), subscriber.subscribe("topic = 'c'") as events:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(events.next(), 0.05)
            tasks = [asyncio.create_task(publisher.publish({"n": n}, topic="c")) for n in range(50)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await publisher.publish({"n": 99}, topic="c")
            seen: list[Any] = []
            while not seen or seen[-1] != 99:
                seen.append((await events.next()).attributes["n"])
            assert seen == sorted(seen)
            assert set(range(1, 50, 2)) <= set(seen)

    run(scene)


def test_a_name_belongs_to_whoever_came_last(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with connect(broker.url, name="desk") as first, connect(broker.url, name="desk") as second:
            await second.publish({"n": 1})
            with pytest.raises((Superseded, BusClosed, OutcomeUnknown)):
                await _publish_until_it_fails(first)

    run(scene)


def test_a_subscriber_that_is_too_slow_is_told(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with two(broker) as (publisher, subscriber), subscriber.subscribe("topic = 's'", window=10) as events:
            await publisher.publish_many(({"n": n}, "s") for n in range(11_000))
            with pytest.raises(SubscriptionEnded, match="overflow: more than 10000 events"):
                await _take_until_it_fails(events)

    run(scene)


def test_dropped_events_are_counted(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with (
            two(broker) as (publisher, subscriber),
            subscriber.subscribe("topic = 'd'", window=10, overflow="drop-oldest") as events,
        ):
            await publisher.publish_many(({"n": n}, "d") for n in range(12_000))
            seen = []
            async for event in events:
                seen.append(event.attributes["n"])
                if seen[-1] == 11_999:
                    break
            assert events.missed == 12_000 - len(seen) >= 1_900

    run(scene)


def test_a_client_carries_on_over_a_broker_that_is_killed(tmp_path: Path) -> None:
    states: list[State] = []

    async def scene() -> None:
        with BrokerProcess(tmp_path) as broker:
            async with (
                connect(broker.url, on_state=lambda state, _: states.append(state)) as subscriber,
                connect(broker.url) as publisher,
                subscriber.subscribe("n >= 0") as events,
            ):
                await publisher.publish({"n": 0})
                assert (await events.next()).attributes["n"] == 0
                broker.kill()
                with pytest.raises((NotConnected, OutcomeUnknown)):
                    await _publish_until_it_fails(publisher, retry=False)
                waiting = asyncio.create_task(publisher.publish({"n": 1}))
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(waiting), 0.2)
                broker.start()
                await waiting
                while events.gaps == 0:
                    await asyncio.sleep(0.02)
                # On the subscriber's own link: the subscription was asked for before it.
                await subscriber.publish({"n": -1})
                await publisher.publish({"n": 2})
                seen: list[Any] = []
                while not seen or seen[-1] != 2:
                    seen.append((await events.next()).attributes["n"])
                assert seen in ([2], [1, 2])

    run(scene)
    assert states[:3] == [State.CONNECTED, State.DISCONNECTED, State.FORGOTTEN]
    assert states[-1] is State.CLOSED


def test_a_broker_that_is_told_to_stop_stops_cleanly(tmp_path: Path) -> None:
    async def scene() -> None:
        with BrokerProcess(tmp_path) as broker:
            async with connect(broker.url) as bus:
                await bus.publish({"n": 1})
                assert await asyncio.to_thread(broker.stop) == 0

    run(scene)


def test_what_an_on_state_function_raises_does_not_end_the_bus(broker: BrokerProcess) -> None:
    raised: list[BaseException] = []

    def on_state(state: State, detail: str) -> None:
        raise LookupError(state.value)

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: raised.append(context["exception"]))
        async with connect(broker.url, on_state=on_state) as bus, bus.subscribe("topic = 'o'") as events:
            await bus.publish({"n": 1}, topic="o")
            await events.next()

    run(scene)
    assert str(raised[0]) == "connected"


def test_room_is_made_while_events_are_taken_one_by_one(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with two(broker) as (publisher, subscriber), subscriber.subscribe("topic = 'r'", window=8) as events:
            reports: list[int] = []
            made = subscriber._subscriptions
            consumed = made.consumed
            made.consumed = lambda number, count: (reports.append(count), consumed(number, count))[1]  # type: ignore[func-returns-value,method-assign]
            await publisher.publish_many(({"n": n}, "r") for n in range(40))
            seen = 0
            async for _ in events:
                seen += 1
                if seen == 40:
                    break
            assert max(reports) <= 2
            assert sum(reports) == 40

    run(scene)


def test_who_waits_at_a_bus_that_closes_gets_an_exception_of_its_own(broker: BrokerProcess) -> None:
    """One exception object for all would collect the traceback of every task that raises it."""

    async def scene() -> None:
        async with connect(broker.url) as bus, contextlib.AsyncExitStack() as subscribed:
            subscriptions = [await subscribed.enter_async_context(bus.subscribe(f"n = {n}")) for n in range(50)]
            waiting = [asyncio.create_task(events.next()) for events in subscriptions]
            await asyncio.sleep(0)
            await bus.close()
            problems: list[Any] = await asyncio.gather(*waiting, return_exceptions=True)
            for events in subscriptions[:3]:  # also who asks once more
                with pytest.raises(BusClosed) as raised:
                    await events.next()
                problems.append(raised.value)
        assert {type(problem) for problem in problems} == {BusClosed}
        assert len({id(problem) for problem in problems}) == len(problems)
        lines = [sum(text.count("\n") for text in traceback.format_exception(problem)) for problem in problems]
        assert max(lines) < 30, lines

    run(scene)


def test_requests_of_a_bus_that_ends_get_exceptions_of_their_own() -> None:
    async def scene() -> None:
        bus = connect("holdfast://127.0.0.1:1")
        waiting = [asyncio.get_running_loop().create_future() for _ in range(3)]
        bus._connection._futures.update(enumerate(waiting))
        bus._end(Superseded("another client has the name"))
        problems = [future.exception() for future in waiting]
        assert [type(problem) for problem in problems] == [Superseded] * 3
        assert len({id(problem) for problem in problems}) == 3

    run(scene)


def test_a_subscription_that_was_not_entered_says_so_and_does_not_wait(broker: BrokerProcess) -> None:
    async def scene() -> None:
        async with connect(broker.url) as bus:
            for events in (bus.subscribe(""), bus.subscribe("", name="unentered")):
                with pytest.raises(BusClosed, match="use it with 'async with'"):
                    await anext(aiter(events))

    run(scene)


def test_what_was_published_while_a_bus_did_not_find_a_broker_is_answered() -> None:
    async def scene() -> None:
        bus = connect(f"holdfast://127.0.0.1:{free_port()}", timeout_s=0.3)
        opening = asyncio.ensure_future(bus.open())
        await asyncio.sleep(0)
        publishing = asyncio.ensure_future(bus.publish({}))
        with pytest.raises(NotConnected):
            await bus.publish({}, retry=False)
        with pytest.raises(NotConnected):
            await opening
        with pytest.raises(NotConnected):
            await publishing

    run(scene)
