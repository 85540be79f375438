"""Publishers of a synthetic log: what they publish is the log, as fast as asked, and counted once acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

import holdfast
from holdfast.apps.zapviewers import publishing
from holdfast.apps.zapviewers.errors import ZapError
from holdfast.apps.zapviewers.generator import ZapSettings, generate
from holdfast.apps.zapviewers.publishing import Acknowledged, PublishedLines, PublishSettings, publish_log
from tests.runtime.broker_process import BrokerProcess

LOG = ZapSettings(boxes=2_000, rate=20)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site"), entry='data = "data"\n') as process:
        yield process


def published(
    broker: BrokerProcess, settings: PublishSettings, stop: asyncio.Event | None = None
) -> tuple[PublishedLines, list[Acknowledged], list[holdfast.ReceivedEvent]]:
    """What was acknowledged, and what the log has of this run."""

    async def scene() -> tuple[PublishedLines, list[Acknowledged], list[holdfast.ReceivedEvent]]:
        tally, heard = PublishedLines(), list[Acknowledged]()
        await publish_log(broker.url, settings, tally, stop, heard.append)
        async with holdfast.connect(broker.url) as bus:
            return tally, heard, [event async for event in bus.read(f"topic = 'zap' AND run = '{settings.run}'")]

    return asyncio.run(scene())


def test_what_is_published_is_the_log_of_each_publisher(broker: BrokerProcess) -> None:
    settings = PublishSettings(run="whole", log=LOG, publishers=3, lines=2_000)
    tally, heard, events = published(broker, settings)
    assert (tally.lines, tally.publications) == (2_000, len(events)) == (2_000, len(heard))
    for publisher in (1, 2, 3):
        of_one = [event for event in events if event.attributes["publisher"] == publisher]
        assert [event.attributes["number"] for event in of_one] == list(range(1, len(of_one) + 1))
        assert all(event.attributes["lines"] == event.payload.count(b"\n") + 1 <= 200 for event in of_one)
        wanted = b"".join(turn.text for turn in islice(generate(settings.log_of(publisher)), 30)).split(b"\n")
        lines = b"\n".join(event.payload for event in of_one).split(b"\n")
        assert lines == wanted[: len(lines)]
        assert len(lines) == 667 - (publisher == 3)
    assert {(one.publisher, one.number, one.lines) for one in heard} == {
        tuple(event.attributes[name] for name in ("publisher", "number", "lines")) for event in events
    }


def test_publishers_have_boxes_of_their_own() -> None:
    settings = PublishSettings(run="r", log=ZapSettings(boxes=180_000, seed=5), publishers=24)
    assert [settings.log_of(n).first_box for n in (1, 2, 24)] == [0, 180_000, 23 * 180_000]
    assert [settings.log_of(n).seed for n in (1, 24)] == [5, 28]


@pytest.mark.parametrize("lines", [0, 1, 2])
def test_as_many_lines_as_asked_for_are_published(broker: BrokerProcess, lines: int) -> None:
    tally, _, events = published(broker, PublishSettings(run=f"few-{lines}", log=LOG, publishers=2, lines=lines))
    assert (tally.lines, len(events)) == (lines, lines)
    assert f"{lines} lines acknowledged" in str(tally)


def test_no_event_is_due_before_its_time() -> None:
    def due(**pace: Any) -> list[float | None]:
        publisher = publishing._Publisher(2, PublishSettings(run="r", log=LOG, publishers=2, **pace))
        return [when for when, _, _ in islice(publisher._publications(), 4)]

    lines = [turn.lines for turn in islice(generate(PublishSettings(run="r", log=LOG).log_of(2)), 3)]
    assert due() == [None] * 4
    assert due(speed=4) == [0, 0.25, 0.5, 0.75]
    assert due(rate=100)[:3] == [0, lines[0] / 50, sum(lines[:2]) / 50]


def test_time_that_is_up_and_a_stop_end_it_with_everything_acknowledged(broker: BrokerProcess) -> None:
    # A whole day, as slow as boxes are.
    tally, heard, events = published(broker, PublishSettings(run="short", log=LOG, speed=1, seconds=0.05))
    assert len(events) == len(heard) == tally.publications <= 1
    stop = asyncio.Event()
    stop.set()
    tally, _, events = published(broker, PublishSettings(run="stopped", log=LOG, speed=1), stop)
    assert (tally.publications, events) == (0, [])


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"publishers": 0}, "1 to 24"),
        ({"publishers": 25}, "1 to 24"),
        ({"log": ZapSettings(boxes=180_001)}, "at most 180,000"),
        ({"speed": 1.0, "rate": 1.0}, "not by both"),
        ({"speed": 0.0}, "more than 0"),
        ({"rate": float("inf")}, "more than 0"),
        ({"log": ZapSettings(boxes=180_000, first_box=6_000_000), "publishers": 5}, "numbers from 0 to"),
    ],
)
def test_what_can_not_be_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ZapError, match=problem):
        PublishSettings(**{"run": "r", "log": LOG, **settings})


def test_a_broker_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "CONNECT_WITHIN_S", 0.01)
    with pytest.raises(holdfast.NotConnected):
        asyncio.run(publish_log("holdfast://127.0.0.1:1", PublishSettings(run="r", log=LOG), PublishedLines()))
