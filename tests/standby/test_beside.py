"""The program beside a broker: several errands at a time, and none that ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import cast

import pytest

from holdfast.errors import BusClosed
from holdfast.protocols.routing.network_map import NetworkMember
from holdfast.schemes.tree.standin.cycle.errands import (
    Errand,
    Failed,
    Lend,
    Outcome,
    Propose,
    Provide,
    Provided,
    Release,
    Released,
    TakeBack,
)
from holdfast.standby.beside import AT_ONCE_MAX, Beside
from holdfast.standby.lending import Lender
from holdfast.standby.provisioner import Provisioners
from tests.apps.directory.test_application import START, later
from tests.standby.errand_node import ErrandNode

MEMBER = NetworkMember("s3", "a:1", "a:2")


class Scripted:
    """Does with each broker what its name says."""

    def __init__(self) -> None:
        self.at_once = 0
        self.most = 0
        self.go_on = asyncio.Event()

    async def provide(self, faulty: str, taken: Collection[str]) -> Provided | Failed:
        match faulty:
            case "breaks":
                raise ZeroDivisionError("a mistake")
            case "is closed":
                raise BusClosed("the bus is closed")
            case "is full":
                raise OSError(28, "No space left on device")
            case "waits":
                self.at_once += 1
                self.most = max(self.most, self.at_once)
                await self.go_on.wait()
                self.at_once -= 1
            case "fails":
                return Failed("nobody is there")
        return Provided(MEMBER, f"for {faulty}, none of {','.join(taken)}")

    async def release(self, name: str) -> Released | Failed | None:
        return Released() if name == "s3" else None


async def outcomes_of(provisioner: Scripted, *errands: Errand) -> list[Outcome]:
    async with ErrandNode(*errands) as node:
        running = asyncio.ensure_future(Beside("b1", Provisioners([provisioner])).run(node.ask))
        try:
            return await node.outcomes()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_an_errand_that_goes_wrong_is_answered_with_why_and_the_next_one_is_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene() -> list[Outcome]:
        errands = [Provide(name, ("x",)) for name in ("breaks", "is closed", "is full", "fails", "b2")]
        return await outcomes_of(Scripted(), *errands)

    with caplog.at_level(logging.WARNING, "holdfast"):
        assert asyncio.run(scene()) == [
            Failed("a stand-in for breaks: a mistake of the program: ZeroDivisionError: a mistake"),
            Failed("a stand-in for is closed: the bus is closed"),
            Failed("a stand-in for is full: [Errno 28] No space left on device"),
            Failed("nobody is there"),
            Provided(MEMBER, "for b2, none of x"),
        ]
    assert any(record.exc_info for record in caplog.records), "a mistake is logged with where it was made"


def test_several_are_seen_to_at_once_and_not_too_many() -> None:
    async def scene() -> int:
        provisioner = Scripted()
        async with ErrandNode(*[Provide("waits", ())] * (AT_ONCE_MAX + 3)) as node:
            running = asyncio.ensure_future(Beside("b1", provisioner).run(node.ask))
            while provisioner.at_once < AT_ONCE_MAX:
                await asyncio.sleep(0)
            provisioner.go_on.set()
            await node.outcomes()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return provisioner.most

    assert asyncio.run(scene()) == AT_ONCE_MAX


def test_what_the_site_file_has_no_table_for_is_said_to_be_so() -> None:
    async def scene() -> list[Outcome]:
        errands = (
            Propose(START, later(1000)),
            Lend("east", "t", "w"),
            TakeBack("east", "west.s3"),
            Release("s3"),
            Release("s4"),
        )
        return await outcomes_of(Scripted(), *errands)

    lends_none = Failed("this site lends no brokers: its site file has no [standin.lend]")
    assert asyncio.run(scene()) == [
        Failed("the site file has no [standin.directory]"),
        lends_none,
        lends_none,
        Released(),
        Released(),
    ]


def test_what_is_lent_is_looked_after_also_after_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.standby.beside.AGAIN_AFTER_S", 0.0)
    looked = 0

    class Clumsy:
        async def watch(self) -> None:
            nonlocal looked
            looked += 1
            if looked < 3:
                raise ZeroDivisionError
            await asyncio.Event().wait()

    async def scene() -> None:
        async with ErrandNode() as node:
            running = asyncio.ensure_future(Beside("b1", Scripted(), cast(Lender, Clumsy())).run(node.ask))
            async with asyncio.timeout(10):
                while looked < 3:
                    await asyncio.sleep(0)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scene())


def test_where_nothing_is_set_up_that_is_what_is_said() -> None:
    none = asyncio.run(Provisioners([]).provide("b2", ()))
    assert none == Failed(
        "no spare that runs is free, and the site file has no [standin.processes] and no [standin.borrow]"
    )


def test_the_first_that_has_one_gives_it_and_else_all_say_why_not() -> None:
    async def scene() -> None:
        both = Provisioners([Scripted(), Scripted()])
        assert await both.provide("fails", ()) == Failed("nobody is there; nobody is there")
        assert await both.provide("b2", ("x",)) == Provided(MEMBER, "for b2, none of x")

    asyncio.run(scene())
