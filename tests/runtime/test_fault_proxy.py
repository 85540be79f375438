"""Over a real network that misbehaves, a client carries on and nothing is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.client import Bus, State, connect
from holdfast.errors import NotConnected
from holdfast.testing import FaultProxy
from tests.runtime.broker_process import BrokerProcess
from tests.runtime.test_bus import run


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site")) as process:
        yield process


def through(proxy: FaultProxy, **options: Any) -> Bus:
    return connect(f"holdfast://{proxy.address}", **options)


def test_resets_and_stalls_lose_double_and_reorder_nothing(broker: BrokerProcess) -> None:
    rng = random.Random(1)
    states: list[State] = []

    async def scene() -> list[Any]:
        async with (
            FaultProxy(f"127.0.0.1:{broker.port}") as proxy,
            through(proxy, on_state=lambda state, _: states.append(state)) as subscriber,
            through(proxy) as publisher,
            subscriber.subscribe("topic = 'faults'", overflow="block") as events,
        ):
            publishing = asyncio.create_task(_publish(publisher))

            async def break_it() -> None:
                for _ in range(6):
                    await asyncio.sleep(rng.random() * 0.1)
                    proxy.stall(to_server=rng.random() < 0.5, to_client=rng.random() < 0.5)
                    await asyncio.sleep(rng.random() * 0.1)
                    if rng.random() < 0.7:
                        proxy.reset()
                    proxy.heal()

            breaking = asyncio.create_task(break_it())
            seen: list[Any] = []
            async for event in events:
                seen.append(event.attributes["n"])
                if len(seen) == 600:
                    break
            await breaking
            await publishing
            assert events.gaps == events.missed == 0
            return seen

    assert run(scene) == list(range(600))
    assert State.DISCONNECTED in states
    assert State.FORGOTTEN not in states


async def _publish(bus: Bus) -> None:
    for n in range(600):
        await bus.post({"n": n}, topic="faults")
        await asyncio.sleep(0.001)
    await bus.flush()


def test_a_proxy_delays_refuses_and_slows_down(broker: BrokerProcess) -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        async with FaultProxy(f"127.0.0.1:{broker.port}", delay_s=0.05) as proxy, through(proxy) as bus:
            started = loop.time()
            await bus.publish({"n": 1})
            assert loop.time() - started >= 0.1
            proxy.refuse = True
            proxy.reset()
            with pytest.raises(NotConnected):
                await through(proxy, timeout_s=0.3).open()
            proxy.heal()
            await bus.publish({"n": 2})
        async with FaultProxy(f"127.0.0.1:{broker.port}", bytes_per_second=20_000) as slow, through(slow) as bus:
            started = loop.time()
            await bus.publish({}, payload=bytes(10_000))
            assert loop.time() - started >= 0.4

    run(scene)


def test_a_stalled_direction_hides_that_the_other_side_closed() -> None:
    async def scene() -> None:
        closed = asyncio.Event()

        async def close_at_once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"x")
            await closed.wait()
            writer.close()

        server = await asyncio.start_server(close_at_once, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, FaultProxy(f"127.0.0.1:{port}") as proxy:
            host, _, through_port = proxy.address.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(through_port))
            assert await reader.read(1) == b"x"
            proxy.stall(to_client=True)
            closed.set()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.2)
            proxy.heal()
            assert await reader.read(1) == b""
            writer.close()

    run(scene)
