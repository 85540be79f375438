"""Stages that grow part by part, of events that their publisher encodes."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import holdfast
from holdfast.client.blocking import BlockingBus
from holdfast.client.stages import BlockingStage
from holdfast.model.event import Event, EventBytes, encode_batch, encode_event
from tests.runtime.broker_process import BrokerProcess

PARTS = 20  # more than are under way at a time


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingBus]:
    folder: Path = tmp_path_factory.mktemp("stages")
    with (
        BrokerProcess(folder, entry=f'data = "{folder}/data"\n') as broker,
        holdfast.blocking.connect(broker.url) as bus,
    ):
        yield bus


def part(bus: BlockingBus, stage: BlockingStage, *numbers: int) -> EventBytes:
    return encode_batch([encode_event(Event(bus.name, stage.incarnation, n + 1, "t", {"n": n})) for n in numbers])


def test_parts_are_published_in_order_and_at_once(bus: BlockingBus) -> None:
    stage = bus.open_stage("parts", 1, 0)
    for number in range(PARTS):
        stage.add(part(bus, stage, 2 * number, 2 * number + 1), 2)
    receipt = stage.finish()
    assert (receipt.count, bus.head().number) == (2 * PARTS, 0)
    empty = bus.open_stage("parts", 1, 1).finish()
    assert empty.count == 0
    done = bus.commit("parts", 1, [empty, receipt])
    assert (done.first and done.first.number, done.last and done.last.number) == (1, 2 * PARTS)
    assert [event.attributes["n"] for event in bus.read(start=1)] == list(range(2 * PARTS))


def test_what_the_broker_refuses_is_raised(bus: BlockingBus) -> None:
    bus.commit("refused", 3, [bus.open_stage("refused", 3, 0).finish()])
    late = bus.open_stage("refused", 3, 0)
    late.add(part(bus, late, 1), 1)
    late.add(part(bus, late, 2), 1)
    with pytest.raises(holdfast.EpochCommitted):
        late.finish()
    bad = bus.open_stage("refused", 4, 0)
    wrong = Event(bus.name, bad.incarnation, 1, "t", {"topic": 1})
    bad.add(encode_batch([encode_event(wrong)]), 1)
    with pytest.raises(holdfast.EventError, match="topic"):
        bad.finish()


def test_a_part_that_does_not_fit_into_a_message_is_refused_here(bus: BlockingBus) -> None:
    stage = bus.open_stage("large", 1, 0)
    with pytest.raises(ValueError, match="a part has up to"):
        stage.add(msgspec.Raw(bytes(1024 * 1024)), 1)
    with pytest.raises(ValueError, match="a part has up to"):
        stage.add(msgspec.Raw(b"\x90"), 8_193)
    stage.cancel()


def test_a_bus_that_is_closed_opens_no_stage() -> None:
    with pytest.raises(holdfast.BusClosed):
        holdfast.blocking.connect("holdfast://127.0.0.1:1").open_stage("q", 1, 0)
