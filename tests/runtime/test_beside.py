"""What runs beside each broker that is served: it begins and ends with it, and asks its node alone."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from experiments.processes import free_ports
from holdfast.broker.site import BrokerEntry, Site, site_from_toml
from holdfast.runtime.beside import Ask
from holdfast.runtime.serving import serve_until
from holdfast.schemes.tree.standin.cycle.errands import EndErrand, Given, Release, Released, TakeErrand
from tests.standby.errand_node import ErrandNode

SITE = '[[broker]]\nid = "b1"\naddress = "127.0.0.1:{}"\n'


class Companion:
    """Says when it begins and ends."""

    def __init__(self, fails: bool = False) -> None:
        self.said: list[str] = []
        self.begun = asyncio.Event()
        self._fails = fails

    async def __call__(self, site: Site, entry: BrokerEntry, ask: Ask) -> None:
        self.said.append(f"beside {entry.id}")
        self.begun.set()
        if self._fails:
            raise ValueError("no idea")
        try:
            await asyncio.Event().wait()
        finally:
            self.said.append("gone")


def served(port: int, companion: Companion) -> None:
    site = site_from_toml(SITE.format(port), "site.toml")

    async def scene() -> None:
        stopping, ready = asyncio.Event(), asyncio.Event()
        serving = asyncio.ensure_future(
            serve_until(stopping, site, site.brokers, lambda entry, port: ready.set(), companion=companion)
        )
        await companion.begun.wait()
        assert ready.is_set(), "it begins when the broker serves"
        await asyncio.sleep(0)
        assert not serving.done()
        stopping.set()
        assert await serving is None

    asyncio.run(scene())


def test_a_companion_begins_with_its_broker_and_ends_with_it(unused_port: int) -> None:
    companion = Companion()
    served(unused_port, companion)
    assert companion.said == ["beside b1", "gone"]


def test_a_broker_goes_on_without_a_companion_that_failed_and_says_so(
    unused_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL, "holdfast"):
        served(unused_port, Companion(fails=True))
    assert [record.getMessage() for record in caplog.records] == ["b1: the program beside it failed, and is gone"]


@pytest.fixture
def unused_port() -> int:
    return free_ports(1)[0]


def test_each_question_gets_its_own_answer_and_one_that_is_given_up_none() -> None:
    async def scene() -> list[Any]:
        async with ErrandNode(Release("x"), Release("y")) as node:
            given = await asyncio.gather(node.ask(TakeErrand()), node.ask(TakeErrand()))
            waiting = asyncio.ensure_future(node.ask(TakeErrand()))
            assert await node.ask(EndErrand(2, Released())) is None
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert list(given) == [Given(1, Release("x")), Given(2, Release("y"))]
            return list(node.desk.outcomes)

    assert asyncio.run(scene()) == [2]
