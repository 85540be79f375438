"""The bus without asyncio."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import holdfast
from tests.runtime.broker_process import BrokerProcess, free_port


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site")) as process:
        yield process


def test_a_script_publishes_and_subscribes(broker: BrokerProcess) -> None:
    with holdfast.blocking.connect(broker.url) as bus, bus.subscribe("price > 10") as events:
        bus.publish({"price": 5})
        bus.publish({"price": 11}, topic="stock", payload=b"x")
        event = events.next(timeout_s=5)
        assert (event.attributes, event.topic, event.payload) == ({"price": 11}, "stock", b"x")
        assert bus.publish_many([{"price": price} for price in range(11, 111)]) == 100
        seen = []
        for event in events:
            seen.append(event.attributes["price"])
            if len(seen) == 100:
                break
        assert seen == list(range(11, 111))
        with pytest.raises(TimeoutError, match="nothing came within"):
            events.next(timeout_s=0.05)


def test_threads_share_a_bus(broker: BrokerProcess) -> None:
    with holdfast.blocking.connect(broker.url) as bus, bus.subscribe("thread >= 0") as events:
        threads = [threading.Thread(target=bus.publish, args=({"thread": n},)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(int(events.next(5).attributes["thread"]) for _ in range(8)) == list(range(8))


def test_errors_and_closing_are_the_same(broker: BrokerProcess) -> None:
    bus = holdfast.blocking.connect(broker.url)
    with pytest.raises(holdfast.BusClosed):
        bus.publish({})
    with bus:
        with pytest.raises(holdfast.FilterError), bus.subscribe("price >"):
            pass
        with pytest.raises(holdfast.EventError):
            bus.publish({"n": float("nan")})
    with pytest.raises(holdfast.BusClosed):
        bus.publish({})
    with (
        pytest.raises(holdfast.NotConnected),
        holdfast.blocking.connect(f"holdfast://127.0.0.1:{free_port()}", timeout_s=0.2),
    ):
        pass
