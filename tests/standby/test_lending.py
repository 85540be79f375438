"""A site that lends a spare to another one: by real processes, over real connections (D0-A9, the paper's Fig. 1)."""

from __future__ import annotations

import asyncio
import os
import time
import tomllib
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.protocols.routing.network_map import NetworkMember
from holdfast.runtime.site_file import read_site
from holdfast.schemes.tree.standin.cycle.errands import Failed, Lend, Lent, Provided, Released, TakeBack
from holdfast.schemes.tree.standin.tables import LendTable
from holdfast.standby import processes
from holdfast.standby.borrowing import Borrowing
from holdfast.standby.launch import identity_of
from holdfast.standby.lending import Lender
from holdfast.standby.lent_site import Wish, pack, told
from holdfast.standby.spare_folder import Lending, Running
from holdfast.standby.started import Started
from tests.standby.lender_node import LenderNode
from tests.standby.sites import TestSite, sites

LEND = '[standin.lend]\nto = ["east"]\nbrokers = ["s3", "s4"]\n'
WEST_S3 = "west.s3"
GRACE_S = 3


def lending(folder: Path, more: str = "", name: str = "west") -> TestSite:
    return TestSite(folder / name, name, LEND + more)


def borrowing(folder: Path, *lenders: TestSite, name: str = "east") -> tuple[TestSite, Borrowing]:
    site = TestSite(folder / name, name)
    addresses = [lender.addresses["b1"] for lender in lenders]
    return site, Borrowing(site.site, str(site.file), addresses, within_s=60.0)


def wish_of(site: TestSite, *taken: str) -> str:
    packed = pack(Wish(told(tomllib.loads(site.file.read_text())), taken, "b2"))
    assert packed is not None
    return packed


def lender_of(site: TestSite, **changed: int) -> Lender:
    table = LendTable(("east",), ("s3", "s4"), **changed)
    return Lender(site.site, table, "warning")


def test_a_broker_is_borrowed_runs_as_the_borrower_s_spare_and_is_given_back(tmp_path: Path) -> None:
    west = lending(tmp_path)
    east, borrower = borrowing(tmp_path, west)
    member = NetworkMember(WEST_S3, west.addresses["s3"], west.peers["s3"])

    async def scene() -> None:
        async with LenderNode(west):
            found = await borrower.provide("b2", ("b1", "b2"))
            assert isinstance(found, Provided), found
            assert found.member == member
            assert found.note.startswith(f"borrowed from {west.addresses['b1']} until ")
            assert await processes.answers(west.addresses["s3"], WEST_S3)
            lent = read_site(str(west.spare("s3").lent / "site.toml"))
            assert lent.name == "east"
            assert [entry.id for entry in lent.members] == ["b1", "b2"]
            assert lent.links == east.site.links
            # All that it writes lies below the lender's folder.
            assert {Path(entry.data).is_relative_to(west.spare("s3").lent) for entry in lent.brokers} == {True}
            pid = west.pid("s3")
            other_program = Borrowing(east.site, str(east.file), [west.addresses["b1"]])
            assert await other_program.release(WEST_S3) == Released()
            await west.until_gone("s3")
            assert pid
            async with asyncio.timeout(30):
                while west.spare("s3").lending() is not None:
                    await asyncio.sleep(0.02)
            assert not west.spare("s3").lent.exists()

    with sites(west, east):
        asyncio.run(scene())


def test_two_that_ask_at_once_get_one_and_a_word_why_not(tmp_path: Path) -> None:
    west = lending(tmp_path)
    east = TestSite(tmp_path / "east", "east")

    async def scene() -> None:
        one, other = lender_of(west), lender_of(west)
        found = await asyncio.gather(
            one.lend(Lend("east", "t1", wish_of(east))), other.lend(Lend("east", "t2", wish_of(east)))
        )
        lent = [each for each in found if isinstance(each, Lent)]
        failed = [each for each in found if isinstance(each, Failed)]
        assert [each.member.name for each in lent] == [WEST_S3]
        assert len(failed) == 1
        assert failed[0].problem.startswith("west lends 1 at most: west.s3 is lent to east until ")
        # The same request again, after the program was restarted: the same answer, and no second process.
        ticket = "t1" if isinstance(found[0], Lent) else "t2"
        pid = west.pid("s3")
        assert await lender_of(west).lend(Lend("east", ticket, wish_of(east))) == lent[0]
        assert west.pid("s3") == pid
        assert await lender_of(west).take_back(TakeBack("north", WEST_S3)) == Failed(
            "west has lent no 'west.s3' to 'north'"
        )
        assert west.pid("s3") == pid
        assert await lender_of(west).take_back(TakeBack("east", WEST_S3)) == Released()
        assert west.pid("s3") == 0

    with sites(west):
        asyncio.run(scene())


def test_who_lends_waits_for_another_program_of_the_site_that_counts_what_is_lent(tmp_path: Path) -> None:
    west, east = lending(tmp_path), TestSite(tmp_path / "east", "east")

    async def scene() -> None:
        async with west.spare("s3").locked("lend.lock"):
            asked = asyncio.ensure_future(lender_of(west).lend(Lend("east", "t", wish_of(east))))
            await asyncio.wait({asked}, timeout=0.3)
            assert not asked.done()
            assert west.spare("s3").lending() is None
            other = west.spare("s4")
            other.path.mkdir()
            other.lend(Lending("east", "other", "west.s4", "a:1", "a:2", time.time() + 60))
            this = Running(os.getpid(), identity_of(os.getpid()))
            other.process_file.write_bytes(msgspec.json.encode(this))
        found = await asked
        assert isinstance(found, Failed)
        assert found.problem.startswith("west lends 1 at most: west.s4 is lent to east until ")
        west.spare("s4").process_file.unlink()

    asyncio.run(scene())


def test_who_is_not_on_the_list_and_what_is_not_free_is_not_lent_and_told_why(tmp_path: Path) -> None:
    west = lending(tmp_path)
    east, north = TestSite(tmp_path / "east", "east"), TestSite(tmp_path / "north", "north")

    async def scene() -> None:
        lender = lender_of(west)
        for asked, problem in (
            (Lend("north", "t", wish_of(north)), "west lends nothing to 'north'; its [standin.lend] has to = east"),
            (Lend("east", "t", wish_of(north)), "the site that 'east' describes is called 'north'"),
            (Lend("east", "t", "nonsense"), "west does not understand what east wishes: it can't be unpacked"),
            (
                Lend("east", "t", wish_of(east), ("s3", "s4")),
                "west has nobody to spare: s3 is not free; s4 is not free",
            ),
            (
                Lend("east", "t", wish_of(east, "west.s3", "west.s4")),
                "west has nobody to spare: s3 is not free; s4 is not free",
            ),
        ):
            found = await lender.lend(asked)
            assert isinstance(found, Failed)
            assert found.problem.startswith(problem)

    asyncio.run(scene())
    assert not west.spare("s3").process_file.exists()


def test_a_spare_that_the_lender_has_started_and_does_not_need_is_stopped_and_lent(tmp_path: Path) -> None:
    west, east = lending(tmp_path), TestSite(tmp_path / "east", "east")

    async def scene() -> None:
        own = Started(west.site, str(west.file), "", "warning")
        assert isinstance(await own.provide("b2", ("s4",)), Provided)
        first = west.pid("s3")
        for_own = await lender_of(west).lend(Lend("east", "t", wish_of(east), ("s4",)))
        assert for_own == Failed("west has nobody to spare: s3 was just started for b2; s4 is not free")
        (west.spare("s3").path / "reserved.json").unlink()  # as it is a minute later
        found = await lender_of(west).lend(Lend("east", "t", wish_of(east), ("s4",)))
        assert isinstance(found, Lent), found
        assert west.pid("s3") not in (0, first)
        # And the lender's own network does not get it meanwhile, nor ends it.
        none = await own.provide("b2", ("s4",))
        assert isinstance(none, Failed)
        assert "s3 is lent to east until " in none.problem
        pid = west.pid("s3")
        assert await own.release("s3") == Released()
        assert west.pid("s3") == pid

    with sites(west):
        asyncio.run(scene())


def test_whose_time_is_over_the_borrower_is_told_and_after_the_grace_time_it_is_ended(tmp_path: Path) -> None:
    """Also by a program that began after it was lent."""
    west, east = lending(tmp_path), TestSite(tmp_path / "east", "east")
    heard: list[tuple[str, str]] = []

    async def scene() -> None:
        assert isinstance(await lender_of(west).lend(Lend("east", "t", wish_of(east))), Lent)
        lent = west.spare("s3").lending()
        assert lent is not None
        over = time.time()
        west.spare("s3").lend(replace(lent, until=over))

        async def tell(lending: Lending) -> None:
            assert west.pid("s3"), "it is told before it is ended"
            assert lending.borrowers == tuple(east.addresses.values())
            heard.append((lending.borrower, lending.name))

        table = LendTable(("east",), ("s3", "s4"), grace_s=GRACE_S)
        watching = asyncio.ensure_future(Lender(west.site, table, "warning", tell).watch())
        await west.until_gone("s3")
        assert time.time() >= over + GRACE_S
        async with asyncio.timeout(30):
            while west.spare("s3").lending() is not None:
                await asyncio.sleep(0.02)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    with sites(west):
        asyncio.run(scene())
    assert heard == [("east", WEST_S3)]


@pytest.mark.parametrize("killed", ["before it runs", "while it is lent"])
def test_one_that_was_lent_and_has_failed_is_free_again(tmp_path: Path, killed: str) -> None:
    """With all that it has left; also for the same request, and also if it is the lender that was killed, too soon."""
    west, east = lending(tmp_path), TestSite(tmp_path / "east", "east")
    folder = west.spare("s3")

    async def fail() -> None:
        if killed == "before it runs":
            folder.lent.mkdir(parents=True)
            (folder.lent / "left").write_text("something")
            folder.lend(Lending("east", "t", WEST_S3, "a:1", "a:2", time.time() + 60))
        else:
            assert isinstance(await lender_of(west).lend(Lend("east", "t", wish_of(east))), Lent)
            west.kill("s3")
            await west.until_gone("s3")

    async def scene() -> None:
        await fail()
        found = await lender_of(west).lend(Lend("east", "t", wish_of(east)))
        assert isinstance(found, Lent)
        assert west.pid("s3")
        assert not (folder.lent / "left").exists()
        assert await lender_of(west).take_back(TakeBack("east", WEST_S3)) == Released()
        await fail()
        watching = asyncio.ensure_future(lender_of(west).watch())
        async with asyncio.timeout(30):
            while folder.lending() is not None:
                await asyncio.sleep(0.02)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        assert not folder.lent.exists()

    with sites(west):
        asyncio.run(scene())


def test_who_can_not_borrow_is_told_what_is_wrong_with_each_lender(tmp_path: Path) -> None:
    west, silent = lending(tmp_path), lending(tmp_path, name="south")
    _, borrower = borrowing(tmp_path, silent, west, name="north")

    async def scene() -> None:
        async with LenderNode(west):
            failed = await borrower.provide("b2", ())
            assert isinstance(failed, Failed)
            assert failed.problem.startswith(f"nobody lends a broker: {silent.addresses['b1']} does not answer: ")
            assert failed.problem.endswith("west lends nothing to 'north'; its [standin.lend] has to = east")
            assert await borrower.release("b1") is None, "one of its own"
        gone = await borrower.release("west.s3")
        assert isinstance(gone, Failed)
        assert gone.problem.startswith("west.s3 is not given back before its time is over: ")

    asyncio.run(scene())


def test_a_lender_that_is_slow_is_asked_again_and_lends_one_broker_and_not_two(tmp_path: Path) -> None:
    west = lending(tmp_path, "most = 2\n")
    east = TestSite(tmp_path / "east", "east")
    borrower = Borrowing(east.site, str(east.file), [west.addresses["b1"]], within_s=0.05)

    async def scene() -> None:
        async with LenderNode(west):
            first = await borrower.provide("b2", ())
            assert isinstance(first, Failed)
            assert "began to lend one, and has not said within 0.05 s what came of it" in first.problem
            async with asyncio.timeout(60):
                while not isinstance(found := await borrower.provide("b2", ()), Provided):
                    assert "began to lend one" in found.problem
            assert found.member.name == WEST_S3
            assert (west.pid("s3") > 0, west.pid("s4") > 0) == (True, False)
            # Whoever finds that one unfit gets another.
            failed = await borrower.provide("b2", (WEST_S3,))
            assert isinstance(failed, Failed)
            assert "has lent west.s3, which is not free" in failed.problem
            async with asyncio.timeout(60):
                while not isinstance(found := await borrower.provide("b2", (WEST_S3,)), Provided):
                    pass
            assert found.member.name == "west.s4"

    with sites(west):
        asyncio.run(scene())


def test_a_record_that_can_not_be_read_is_told_of_and_others_are_lent(tmp_path: Path) -> None:
    west, east = lending(tmp_path), TestSite(tmp_path / "east", "east")
    folder = west.spare("s3")
    folder.path.mkdir()
    (folder.path / "process.json").write_text("no record")

    async def scene() -> None:
        failed = await lender_of(west).lend(Lend("east", "t", wish_of(east), ("s4",)))
        assert isinstance(failed, Failed)
        assert "process.json can't be read" in failed.problem
        found = await lender_of(west).lend(Lend("east", "t2", wish_of(east)))
        assert isinstance(found, Lent)
        assert found.member.name == "west.s4"

    try:
        asyncio.run(scene())
    finally:
        west.kill("s4")


def test_a_site_without_the_table_lends_nothing(tmp_path: Path) -> None:
    west = TestSite(tmp_path / "west", "west")
    _, borrower = borrowing(tmp_path, west)

    async def scene() -> None:
        async with LenderNode(west):
            failed = await borrower.provide("b2", ())
            assert isinstance(failed, Failed)
            assert failed.problem.endswith("this site lends no brokers: its site file has no [standin.lend]")

    asyncio.run(scene())
