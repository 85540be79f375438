"""Seven brokers, each a process of its own, that are killed and started again, and whose links are cut.

    b1 ─ b2 ─ b3 ─ b4 ─ b5      Publishers are at b1, subscribers at b5 and b7: every event passes b2 and b3.
         ·    └─ b6 ─ b7 ·      Dotted: where levels detour, b2 and b6, and b5 and b7 are joined too.

Each level of reliability keeps what it promises, and loses what it may. The brokers of a level serve all its tests,
each with a topic of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import holdfast
from experiments.broker_network import BrokerNetwork, Measures
from experiments.processes import LOOK_EVERY_S

TREE = (("b1", "b2"), ("b2", "b3"), ("b3", "b4"), ("b4", "b5"), ("b3", "b6"), ("b6", "b7"))
GRAPH = (*TREE, ("b2", "b6"), ("b5", "b7"))  # its spanning tree is the same
NONE, PERIODIC, BUFFERED, BYPASS, BOTH = "none", "periodic", "buffered", "bypass", "bypass+buffered"
WAITING = "periodic, without asking"
LINKS = {NONE: TREE, PERIODIC: TREE, WAITING: TREE, BUFFERED: TREE, BYPASS: GRAPH, BOTH: GRAPH}
QUICK = "dial_every_ms = 100\nretransmit_ms = 200\nrefresh_ms = 300\n"
READERS = ("b5", "b7")
LAST = 1_000_000  # a number that says: nothing comes behind this
TOPICS = (f"t{number}" for number in itertools.count(1))


@pytest.fixture(scope="module")
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerNetwork]:
    """The brokers of a level; whoever stops one starts it again."""
    level, _, more = request.param.partition(", ")
    routing = QUICK + ("ask_neighbours = false\n" if more else "")
    with BrokerNetwork(tmp_path_factory.mktemp("network"), LINKS[request.param], level, routing) as network:
        asyncio.run(network.begin())
        yield network


def at(*levels: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("network", levels, indirect=True)


class Clients:
    """A publisher at b1, and a subscriber at each end."""

    def __init__(self, topic: str, publisher: holdfast.Bus, subscriptions: dict[str, holdfast.Subscription]) -> None:
        self.topic = topic
        self._publisher = publisher
        self.subscriptions = subscriptions

    async def publish(self, numbers: Iterable[int], lifetime: float | None = None) -> None:
        """Returns when each is accepted."""
        for number in numbers:
            await self._publisher.publish({"n": number}, topic=self.topic, lifetime=lifetime)

    async def reach(self) -> None:
        """Publishes zeros until each subscriber has got one: its subscription has come as far as here."""
        each = asyncio.gather(*(events.next() for events in self.subscriptions.values()))
        while not each.done():
            await self.publish([0])

    async def got(self) -> dict[str, list[int]]:
        """What each subscriber got since it was asked last, up to an event that is published now."""
        await self.publish([LAST])
        return {name: await until_last(events) for name, events in self.subscriptions.items()}


async def until_last(events: holdfast.Subscription) -> list[int]:
    got: list[int] = []
    while (number := int((await events.next()).attributes["n"])) != LAST:
        got.append(number)
    return [number for number in got if number]


def both(numbers: Iterable[int]) -> dict[str, list[int]]:
    return {name: list(numbers) for name in READERS}


@asynccontextmanager
async def clients_of(network: BrokerNetwork) -> AsyncIterator[Clients]:
    topic = next(TOPICS)
    async with AsyncExitStack() as stack:
        subscriptions = {}
        for name in READERS:
            bus = await stack.enter_async_context(holdfast.connect(network.url(name)))
            subscriptions[name] = await stack.enter_async_context(bus.subscribe(f"topic = '{topic}'"))
        publisher = await stack.enter_async_context(holdfast.connect(network.url("b1")))
        yield Clients(topic, publisher, subscriptions)


def play(network: BrokerNetwork, scene: Callable[[Clients], Awaitable[None]]) -> None:
    """A scene with clients that are there; the network is whole before and after it."""

    async def played() -> None:
        async with asyncio.timeout(60):
            try:
                async with clients_of(network) as clients:
                    await scene(clients)
            finally:
                await network.begin()

    asyncio.run(played())


def counting(taken: list[int]) -> Iterator[int]:
    """1, 2, …, and what was taken of it, until a 0 is put there."""
    while not taken or taken[-1]:
        taken.append(len(taken) + 1)
        yield taken[-1]


def counted(name: str, at_least: int) -> Callable[[Measures], bool]:
    return lambda measures: measures[name] >= at_least


def waiting(events: int) -> Callable[[Measures], bool]:
    return lambda measures: measures["feeds_events"] == events


def difference(after: Measures, before: Measures, *names: str) -> list[int]:
    return [after[f"events_{name}_total"] - before[f"events_{name}_total"] for name in names]


@at(NONE, PERIODIC, BUFFERED, BYPASS, BOTH)
def test_without_faults_everything_arrives_once_and_in_its_publishers_order(network: BrokerNetwork) -> None:
    """D0-B1, D1-B2: and nothing goes where nobody wants it."""

    async def scene(clients: Clients) -> None:
        before = await network.measures("b3")
        numbers = range(1, 51)
        async with holdfast.connect(network.url("b6")) as other:
            # Both begin at the same time, and so do their advertisements.
            each = (other.publish({"n": -number}, topic=clients.topic) for number in numbers)
            await asyncio.gather(clients.publish(numbers), *each)
            await other.publish({"n": 0}, topic="nobody's")
        for events in clients.subscriptions.values():
            got = [int((await events.next()).attributes["n"]) for _ in range(100)]
            assert [number for number in got if number > 0] == list(numbers)
            assert [-number for number in got if number < 0] == list(numbers)
        assert await clients.got() == both([])
        after = await network.measures("b3")
        # b4 gets all of them for b5, and b6 those of b1 for b7: one message an event and link, none back.
        expected = [50 + 50 + 1, 101 + 51, 0, 0]
        assert difference(after, before, "arrived", "forwarded", "lost", "retransmitted") == expected

    play(network, scene)


@at(NONE)
def test_without_reliability_a_broker_that_was_restarted_knows_nothing(network: BrokerNetwork) -> None:
    """D1-C1: it is up, it has its disk, it is linked; what would pass it is lost, for good."""

    async def scene(clients: Clients) -> None:
        await clients.publish(range(1, 11))
        assert await clients.got() == both(range(1, 11))
        await network.kill("b3")
        await network.begin("b3")
        # It says that nobody is there, and so nothing comes to it any more.
        before = await network.until("b1", lambda measures: measures["routes"] == 0)
        await clients.publish(range(11, 21))
        assert difference(await network.measures("b1"), before, "accepted", "forwarded") == [10, 0]
        assert (await network.measures("b3"))["routes"] == 0
        # Subscribers are served all the same with what does not pass it; a subscription made anew does pass it.
        for name in READERS:
            async with holdfast.connect(network.url(name)) as near:
                await near.publish({"n": LAST}, topic=clients.topic)
                assert await until_last(clients.subscriptions[name]) == []
        async with (
            holdfast.connect(network.url("b5")) as bus,
            bus.subscribe("n = 21") as events,
            holdfast.connect(network.url("b1")) as publisher,
        ):
            await publisher.publish({"n": 21}, topic="another")
            assert (await events.next()).attributes["n"] == 21

    play(network, scene)


@at(PERIODIC, WAITING)
def test_a_broker_that_was_restarted_is_told_again_what_is_wanted(network: BrokerNetwork) -> None:
    """D1-C2, D1-B3: without the clients; what was published meanwhile is lost, and counted."""

    async def scene(clients: Clients) -> None:
        await clients.publish(range(1, 11))
        assert await clients.got() == both(range(1, 11))
        await network.kill("b3")
        lost = (await network.measures("b2"))["events_lost_total"]
        await clients.publish(range(11, 21))
        await network.until("b2", counted("events_lost_total", lost + 10))
        await network.begin("b3")
        await network.until("b3", counted("routes", 2))
        await clients.publish(range(21, 31))
        assert await clients.got() == both(range(21, 31))
        assert (await network.measures("b2"))["events_lost_total"] == lost + 10

    play(network, scene)


@at(BUFFERED)
def test_what_was_accepted_while_brokers_were_down_arrives_when_they_are_back(network: BrokerNetwork) -> None:
    """D1-C3, D1-B4, D1-B4.2: also if the broker that kept it for the next, and the publisher's own, were killed."""

    async def scene(clients: Clients) -> None:
        await clients.publish(range(1, 11))
        assert await clients.got() == both(range(1, 11))
        await network.kill("b3")
        await clients.publish(range(11, 31))
        await network.until("b2", waiting(20))
        await network.until("b1", waiting(0))
        await network.kill("b2")
        await clients.publish(range(31, 51))
        await network.until("b1", waiting(20))
        await network.kill("b1")
        await network.begin("b1", "b2")
        await network.until("b2", waiting(40))
        await network.begin("b3")
        assert await clients.got() == both(range(11, 51))
        for name in network.names:
            await network.until(name, waiting(0))

    play(network, scene)


@at(BUFFERED)
def test_a_broker_that_comes_back_amid_events_acknowledges_none_that_it_would_lose(network: BrokerNetwork) -> None:
    """D1-B4.1, D1-C3: it is killed while events flow, and so is the next."""

    async def scene(clients: Clients) -> None:
        numbers: list[int] = []
        publishing = asyncio.create_task(clients.publish(counting(numbers)))
        for name in ("b3", "b4"):
            arrived = (await network.measures(name))["events_arrived_total"]
            await network.until(name, counted("events_arrived_total", arrived + 5))
            network.stop(name)
            await network.begin(name)
        numbers.append(0)
        await publishing
        assert await clients.got() == both(numbers[:-1])

    play(network, scene)


@at(BUFFERED)
def test_what_expires_while_the_next_broker_is_down_is_not_delivered(network: BrokerNetwork) -> None:
    """D1-A4, D1-B4: it is given up, and counted; what has time left, or no end, arrives."""

    async def scene(clients: Clients) -> None:
        assert await clients.got() == both([])
        await network.kill("b3")
        for number in range(1, 11):
            await clients.publish([number], lifetime=(0.5, 3600.0, None)[number % 3])
        expired = time.time() + 0.5
        before = await network.until("b2", waiting(10))
        while time.time() <= expired:  # the deadlines are of the wall clock
            await asyncio.sleep(LOOK_EVERY_S)
        await network.begin("b3")
        assert await clients.got() == both([1, 2, 4, 5, 7, 8, 10])
        assert difference(await network.measures("b2"), before, "expired_under_way") == [3]

    play(network, scene)


@at(BUFFERED)
def test_events_for_a_link_that_was_cut_or_silent_arrive_once_when_it_is_whole(network: BrokerNetwork) -> None:
    """D1-C3: through a proxy between b2 and b3."""

    async def scene(clients: Clients) -> None:
        await network.kill("b2")
        async with network.proxy("b2", "b3") as proxy:
            network.lead_through(proxy, "b2", "b3")
            await network.begin("b2")
            await clients.publish(range(1, 11))
            proxy.refuse = True
            proxy.reset()
            await clients.publish(range(11, 31))
            await network.until("b2", counted("feeds_events", 20))
            proxy.heal()
            assert await clients.got() == both(range(1, 31))
            before = await network.measures("b3")
            proxy.stall(to_client=True)  # b3 gets everything, and b2 never hears of it
            await clients.publish(range(31, 51))
            await network.until("b2", counted("events_retransmitted_total", 20))
            proxy.reset()
            proxy.heal()
            assert await clients.got() == both(range(31, 51))
            assert difference(await network.measures("b3"), before, "arrived") == [21]
            await network.kill("b2")
        network.lead_directly("b2")

    play(network, scene)


@at(BYPASS, BOTH)
def test_events_and_subscriptions_go_around_a_broker_that_is_down(network: BrokerNetwork) -> None:
    """D1-B5, D1-C4, D1-C5: while it is down, and once each when it is back."""

    async def scene(clients: Clients) -> None:
        await clients.publish(range(1, 11))
        assert await clients.got() == both(range(1, 11))
        await network.kill("b3")
        for name in network.processes:  # all have heard that it is gone
            await network.until(name, lambda measures: measures["brokers_unreachable"] == 1)
        await clients.publish(range(11, 31))
        assert await clients.got() == both(range(11, 31))
        assert (await network.measures("b2"))["detours_sent_total"] > 0
        async with clients_of(network) as new:
            await new.reach()
            await new.publish(range(1, 11))
            assert await new.got() == both(range(1, 11))
        await network.begin("b3")
        await clients.publish(range(31, 51))
        assert await clients.got() == both(range(31, 51))

    play(network, scene)


@at(BYPASS)
def test_what_no_way_leads_around_is_lost_where_nothing_is_kept(network: BrokerNetwork) -> None:
    """D1-C4: without b2, b1 is alone."""

    async def scene(clients: Clients) -> None:
        await clients.publish(range(1, 11))
        assert await clients.got() == both(range(1, 11)), "before b2 is killed, with all that it has"
        before = await network.measures("b1")
        await network.kill("b2")
        lost = (await network.measures("b1"))["events_lost_total"]
        await clients.publish(range(11, 21))
        await network.until("b1", counted("events_lost_total", lost + 10))
        await network.begin("b2")
        # On a busy machine b2 may give up waiting for b3 and be ready without it: then its word takes back what is
        # wanted behind b3, until b3 has told it.
        await network.until(
            "b1",
            lambda measures: (
                not measures["brokers_unreachable"] + measures["brokers_unready"]
                and measures["routes"] >= before["routes"]
            ),
        )
        await clients.publish(range(21, 31))
        assert await clients.got() == both(range(21, 31))

    play(network, scene)


@at(BOTH)
def test_what_no_way_leads_around_is_kept_where_the_level_keeps_it(network: BrokerNetwork) -> None:
    """D1-B6, D1-C5: without b2, b1 is alone."""

    async def scene(clients: Clients) -> None:
        await clients.publish(range(1, 11))
        await network.kill("b2")
        await clients.publish(range(11, 21))
        await network.until("b1", counted("feeds_events", 10))
        await network.begin("b2")
        assert await clients.got() == both(range(1, 21))

    play(network, scene)


# ------------------------------------------------------------------------------------------------------ on the disk
def copies_on_disk(folder: Path, text: bytes) -> int:
    return sum(path.read_bytes().count(text) for path in folder.rglob("*.segment"))


def test_an_event_is_on_the_disk_of_a_broker_that_buffers_once(tmp_path: Path) -> None:
    """Where it comes in, in the journal, the log, and the store of what waits for a neighbour; at the neighbour's, in
    journal and log. All of it is there after both were killed."""
    texts = [f"<number {n:04} of them>" for n in range(1, 501)]

    async def scene(network: BrokerNetwork) -> None:
        async with (
            holdfast.connect(network.url("b2"), name="s") as reader,
            reader.subscribe("topic = 'kept'", name="desk") as events,
            holdfast.connect(network.url("b1"), name="p") as publisher,
        ):
            first = asyncio.ensure_future(events.next())
            while not first.done():
                await publisher.publish({"text": ""}, topic="kept")
            await network.kill("b2")
            await publisher.publish_many(({"text": text}, "kept") for text in texts)
            assert [copies_on_disk(network.folder / "b1", text.encode()) for text in texts] == [1] * len(texts)
            await network.kill("b1")
            await network.begin("b1", "b2")
            taken: list[str] = []
            while len(taken) < len(texts):
                text = str((await events.next()).attributes["text"])
                taken += [text] if text else []
            assert taken == texts
            assert [copies_on_disk(network.folder / "b2", text.encode()) for text in texts] == [1] * len(texts)

    with BrokerNetwork(tmp_path, (("b1", "b2"),), BUFFERED, QUICK) as network:
        asyncio.run(network.begin())
        asyncio.run(asyncio.wait_for(scene(network), 60))
