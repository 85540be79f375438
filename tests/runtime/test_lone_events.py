"""What comes alone leaves at once: how often a node has its turn, and how often it writes, for one event."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.registry import SCHEMES
from holdfast.client import connect
from holdfast.client.subscription import Subscription
from holdfast.client.subscriptions import Subscriptions
from holdfast.kernel.inputs import Input, Received
from holdfast.kernel.links import Role
from holdfast.kernel.node import Node
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.queues import Queued
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.sessions.messages import Pong
from holdfast.runtime.connection import Connection
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.tree.parts import make_broker
from holdfast.wire.handshake import Listening
from holdfast.wire.limits import WireLimits
from tests.runtime.test_bus import run

SPOKEN = SCHEMES["tree"].catalogue


class Listener:
    """A node that keeps what it hears, turn by turn."""

    def __init__(self) -> None:
        self.turns: list[list[Input]] = []

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        self.turns.append(inputs)

    def check_invariants(self) -> None:
        pass


def make(rng: Random, streams: StoredStreams) -> Node:
    return make_broker(BrokerSettings("b1"), rng, streams)


def connection(runner: NodeRunner) -> Connection:
    limits = WireLimits()
    handshake = Listening((Role.CLIENT,), runner.name, 1, limits, SPOKEN.versions, SPOKEN.scheme, runner.role)
    return Connection(runner, handshake, limits, SPOKEN)


@pytest.mark.parametrize(("role", "at_once"), [(Role.CLIENT, True), (Role.BROKER, False)])
def test_a_client_takes_what_it_reads_at_once_and_a_broker_together_with_what_others_say(
    role: Role, at_once: bool
) -> None:
    async def scene() -> tuple[int, int]:
        node = Listener()
        runner = NodeRunner("n", role, lambda rng, streams: node, SPOKEN)
        runner.start()
        await asyncio.sleep(0)
        before = len(node.turns)
        for _ in range(3):
            assert runner.on_messages(connection(runner), [Pong()]) is at_once
        during = len(node.turns) - before
        await asyncio.sleep(0)
        await runner.stop()
        heard = [event for turn in node.turns for event in turn if isinstance(event, Received)]
        assert len(heard) == 3
        return during, len(node.turns) - before

    assert run(scene) == ((3, 3) if at_once else (0, 1))


def test_an_event_and_an_acknowledgement_to_one_peer_leave_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, list[str]]] = []
    put = NodeRunner.put

    def recorded(runner: NodeRunner, link: Connection, entries: list[Queued]) -> None:
        written.append((runner.name, [type(entry.message).__name__ for entry in entries]))
        put(runner, link, entries)

    monkeypatch.setattr(NodeRunner, "put", recorded)

    async def scene() -> None:
        runner = NodeRunner("b1", Role.BROKER, make, SPOKEN)
        runner.start()
        port = await runner.listen((Role.CLIENT,), "127.0.0.1", 0)
        async with connect(f"holdfast://127.0.0.1:{port}", name="a") as bus, bus.subscribe("n > 0") as events:
            written.clear()
            await bus.publish({"n": 1})
            await events.next()
            assert written == [("a", ["Publish"]), ("b1", ["Accepted", "Deliver"])]
        await runner.stop()

    run(scene)


def test_connections_of_one_event_loop_read_into_the_same_memory_and_those_of_others_do_not() -> None:
    async def scene() -> list[memoryview]:
        runner = NodeRunner("n", Role.CLIENT, lambda rng, streams: Listener(), SPOKEN)
        return [connection(runner).get_buffer(-1) for _ in range(2)]

    one, two = run(scene)
    elsewhere: list[memoryview] = []
    thread = threading.Thread(target=lambda: elsewhere.extend(asyncio.run(scene())))
    thread.start()
    thread.join()
    assert one is two
    assert elsewhere[0] is elsewhere[1] is not one


async def _one_by_one(events: Subscription) -> None:
    for _ in range(7):
        await events.next()


async def _iterating(events: Subscription) -> None:
    count = 0
    async for _ in events:
        count += 1
        if count == 7:
            return


async def _in_lists(events: Subscription) -> None:
    count = 0
    async for taken in events.batches():
        count += len(taken)
        if count == 7:
            return


@pytest.mark.parametrize("take", [_one_by_one, _iterating, _in_lists])
def test_what_a_program_takes_is_told_by_quarters_of_the_window(
    take: Callable[[Subscription], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[int] = []
    monkeypatch.setattr(Subscriptions, "consumed", lambda self, number, count: told.append(count))

    async def scene() -> None:
        runner = NodeRunner("b1", Role.BROKER, make, SPOKEN)
        runner.start()
        port = await runner.listen((Role.CLIENT,), "127.0.0.1", 0)
        async with connect(f"holdfast://127.0.0.1:{port}") as bus, bus.subscribe("n > 0", window=8) as events:
            taking = asyncio.create_task(take(events))
            for n in range(1, 8):
                await bus.publish({"n": n})
            await taking
        await runner.stop()

    run(scene)
    assert 6 <= sum(told) <= 7
    assert min(told) >= 2
