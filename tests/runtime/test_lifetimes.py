"""Over real sockets: what comes after its deadline is not handed out, and the application can see how much that was."""

from __future__ import annotations

import asyncio
from pathlib import Path

import holdfast
from holdfast.testing import FaultProxy
from tests.runtime.broker_process import BrokerProcess

LIFETIME_S = 0.2


def test_events_that_are_held_up_past_their_deadlines_are_not_handed_out(tmp_path: Path) -> None:
    """D1-A4. The link to the subscriber stands still until the event has expired."""

    async def run() -> None:
        async with (
            FaultProxy(f"127.0.0.1:{process.port}") as proxy,
            holdfast.connect(process.url, name="publisher") as publisher,
            holdfast.connect(f"holdfast://{proxy.address}", name="subscriber") as subscriber,
            subscriber.subscribe("n > 0") as plain,
            subscriber.subscribe("n > 0", name="kept") as named,
        ):
            await publisher.publish({"n": 1}, lifetime=600)
            assert [(await events.next()).attributes["n"] for events in (plain, named)] == [1, 1]
            proxy.stall(to_client=True)
            await publisher.publish({"n": 2}, lifetime=LIFETIME_S)
            await publisher.publish({"n": 3})
            await asyncio.sleep(2 * LIFETIME_S)
            proxy.heal()
            assert [(await events.next()).attributes["n"] for events in (plain, named)] == [3, 3]
            assert (plain.expired, named.expired, plain.missed) == (1, 1, 0)
            read = [event.attributes["n"] async for event in subscriber.read("n > 0", 1, await subscriber.head())]
            assert read == [1, 2, 3], "it is a log"

    with BrokerProcess(tmp_path, entry='data = "var/b1"') as process:
        asyncio.run(run())
