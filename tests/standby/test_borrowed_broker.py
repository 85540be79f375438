"""Two domains that share no broker: a broker that one lends stands in for a broker of the other, while events flow
(D0-A9, the paper's Fig. 1)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import holdfast
from experiments.broker_network import BrokerNetwork
from holdfast.runtime.site_file import read_site
from holdfast.schemes.tree.standin.cycle.errands import Provided, Released
from holdfast.standby.borrowing import Borrowing
from tests.runtime.standin_load import standin
from tests.standby.lender_node import LenderNode
from tests.standby.sites import TestSite, sites

EVENTS = 50
LEND = '[standin.lend]\nto = ["site"]\nbrokers = ["s3"]\n'


@pytest.mark.full
@pytest.mark.parametrize("level", ["none", "buffered"])
def test_a_borrowed_broker_stands_in_and_goes_back_when_the_own_one_is_well_again(tmp_path: Path, level: str) -> None:
    west = TestSite(tmp_path / "west", "west", LEND, level)
    (tmp_path / "east").mkdir()

    async def scene(east: BrokerNetwork) -> None:
        await east.begin()
        site = read_site(str(east.site))
        async with LenderNode(west), AsyncExitStack() as stack:
            borrowing = Borrowing(site, str(east.site), [west.addresses["b1"]])
            publisher = await stack.enter_async_context(holdfast.connect(east.url("b1")))
            subscriber = await stack.enter_async_context(holdfast.connect(east.url("b3")))
            events = aiter(await stack.enter_async_context(subscriber.subscribe("topic = 'load'")))
            number = 0

            async def more() -> None:
                nonlocal number
                for _ in range(EVENTS):
                    number += 1
                    await publisher.publish({"n": number}, topic="load")

            async def all_came() -> None:
                got = [int((await anext(events)).attributes["n"]) for _ in range(number - seen)]
                assert got == list(range(seen + 1, number + 1))

            seen = 0
            await more()
            await all_came()
            seen = number
            await east.kill("b2")
            await more()  # waits for the stand-in
            found = await borrowing.provide("b2", ("b1", "b2", "b3"))
            assert isinstance(found, Provided), found
            name, member = found.member.name, found.member
            where = ("--address", member.client_address, "--peer-address", member.peer_address)
            await standin(east, "replace", "b2", "--by", name, *where)
            await more()
            await all_came()
            seen = number
            await east.start_beside("b2")
            await standin(east, "hand-back", "b2")
            await more()
            await all_came()
            assert await borrowing.release(name) == Released()
            await west.until_gone("s3")
            seen = number
            await more()
            await all_came()

    with sites(west), BrokerNetwork(tmp_path / "east", [("b1", "b2"), ("b2", "b3")], level, "[standin]\n") as east:
        asyncio.run(asyncio.wait_for(scene(east), 120))
