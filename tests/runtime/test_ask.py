"""Asking the application that a broker hosts, over real connections: answers, and typed errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.repository import ROOT
from tests.runtime.broker_process import BrokerProcess

HOSTING = """\
[limits]
request_bytes = 100
requests_in_flight = 3
[application]
factory = "tests.sessions.counting:Counting"
[application.settings]
every = 2
"""


def hosting(folder: Path, entry: str = "") -> BrokerProcess:
    return BrokerProcess(folder, entry=entry, rest=HOSTING, environment={"PYTHONPATH": str(ROOT)})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with hosting(tmp_path_factory.mktemp("site")) as process:
        yield process


def test_a_request_is_answered_with_asyncio_and_without(broker: BrokerProcess) -> None:
    async def scene() -> list[bytes]:
        async with holdfast.connect(broker.url) as bus:
            # More at once than may be under way.
            return await asyncio.gather(*(bus.ask(b"many", timeout_s=60) for _ in range(20)))

    answers = asyncio.run(scene())
    assert sorted(answers) == sorted(f"many {n}".encode() for n in range(1, 21))
    with holdfast.blocking.connect(broker.url) as bus:
        assert bus.ask(b"one") == b"one 1"
        assert bus.ask(b"one", timeout_s=60) == b"one 2"


def test_what_goes_wrong_is_typed(broker: BrokerProcess) -> None:
    with holdfast.blocking.connect(broker.url) as bus:
        with pytest.raises(holdfast.ApplicationFailed, match="ValueError: asked to fail"):
            bus.ask(b"fail")
        with pytest.raises(holdfast.LimitReached, match="beyond request_bytes, 100") as beyond:
            bus.ask(bytes(101))
        assert (beyond.value.limit, beyond.value.allowed) == ("request_bytes", 100)
        with pytest.raises(TypeError, match="a request is bytes, not str"):
            bus.ask("text")  # type: ignore[arg-type]
        assert bus.ask(b"still there") == b"still there 1"
    with pytest.raises(holdfast.BusClosed):
        bus.ask(b"x")


def test_what_is_derived_is_delivered_and_no_client_can_have_its_publishers_name(broker: BrokerProcess) -> None:
    with holdfast.blocking.connect(broker.url) as bus, bus.subscribe("topic = 'tenth'") as events:
        bus.publish_many([({"n": n}, "count") for n in range(4)])
        made = [events.next(60) for _ in range(2)]
        assert [event.publisher for event in made] == ["@application"] * 2
        assert [event.sequence for event in made] == [1, 2]
        assert [event.attributes["count"] for event in made] == [2, 4]
    with pytest.raises(holdfast.HoldfastError, match="is no name"):
        holdfast.blocking.connect(broker.url, name="@application")


def test_a_durable_broker_answers_as_before_after_a_kill_and_forgets_nothing(tmp_path: Path) -> None:
    with hosting(tmp_path, f'data = "{tmp_path}/b1"\n') as broker, holdfast.blocking.connect(broker.url) as bus:
        assert bus.ask(b"a") == b"a 1"
        broker.kill()
        with pytest.raises(TimeoutError, match="may be executed all the same"):
            bus.ask(b"a", timeout_s=0.05)
        broker.start()
        # The one that nobody waited for was sent again, and executed before this one.
        assert bus.ask(b"a", timeout_s=60) == b"a 3"
