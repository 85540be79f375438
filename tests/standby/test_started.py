"""Spares that are started on this machine, and ended: by real processes (D0-A9, D0-A35)."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from signal import SIGSTOP

from holdfast.protocols.routing.network_map import NetworkMember
from holdfast.schemes.tree.standin.cycle.errands import Failed, Provide, Provided, Release, Released
from holdfast.standby import processes
from holdfast.standby.beside import beside as beside_of
from holdfast.standby.launch import identity_of
from holdfast.standby.spare_folder import Running
from holdfast.standby.started import Started
from holdfast.wire.addresses import split_address
from tests.standby.errand_node import ErrandNode
from tests.standby.sites import TestSite, sites

PROCESSES = "[standin.processes]\n"


def started(site: TestSite) -> Started:
    return Started(site.site, str(site.file), "", "warning")


def test_a_spare_is_started_when_it_is_needed_and_ended_by_another_program_than_its_own(tmp_path: Path) -> None:
    site = TestSite(tmp_path, "west", PROCESSES)
    member = NetworkMember("s3", site.addresses["s3"], site.peers["s3"])

    async def scene() -> None:
        async with ErrandNode(Provide("b2", ("b1", "b2"))) as node:
            beside = asyncio.ensure_future(
                beside_of(site.site, site.site.brokers[0], str(site.file), "warning").run(node.ask)
            )
            assert await node.outcomes() == [Provided(member, "started on this machine")]
            beside.cancel()
            await asyncio.gather(beside, return_exceptions=True)
        # It goes on without the program that started it; and another one ends it.
        assert await processes.answers(site.addresses["s3"], "s3")
        pid = site.pid("s3")
        assert os.getsid(pid) == pid, "what ends a member's terminal does not end it"
        async with ErrandNode(Release("s3"), Release("s4"), Release("unheard-of")) as node:
            beside = asyncio.ensure_future(
                beside_of(site.site, site.site.brokers[1], str(site.file), "warning").run(node.ask)
            )
            assert await node.outcomes() == [Released()] * 3
            beside.cancel()
            await asyncio.gather(beside, return_exceptions=True)
        assert identity_of(pid) == ""

    with sites(site):
        asyncio.run(scene())


def test_two_that_need_one_at_once_get_different_ones_and_who_asks_again_gets_the_same(tmp_path: Path) -> None:
    site = TestSite(tmp_path, "west", PROCESSES)

    async def scene() -> None:
        one, other = started(site), started(site)
        first, second = await asyncio.gather(one.provide("b1", ()), other.provide("b2", ()))
        assert isinstance(first, Provided)
        assert isinstance(second, Provided)
        assert {first.member.name, second.member.name} == {"s3", "s4"}
        again = await started(site).provide("b2", ())
        assert again == Provided(second.member, "started on this machine before")
        third = await one.provide("b9", ("s3",))
        whose = "b2" if second.member.name == "s4" else "b1"
        assert third == Failed(f"no spare can be started: s4 was just started for {whose}")
        assert await one.provide("b9", ("s3", "s4")) == Failed("no spare can be started: all of them are taken")

    with sites(site):
        asyncio.run(scene())


def test_a_spare_whose_address_is_in_use_is_passed_over_and_told_of(tmp_path: Path) -> None:
    site = TestSite(tmp_path, "west", PROCESSES)
    with sites(site), socket.socket() as other:
        other.bind(split_address(site.peers["s3"]))
        other.listen()
        found = asyncio.run(started(site).provide("b2", ()))
        assert isinstance(found, Provided)
        assert found.member.name == "s4"
        failed = asyncio.run(started(site).provide("b2", ("s4",)))
        assert failed == Failed(
            "no spare can be started: s3 was not started from here, and it can't listen on"
            f" {site.peers['s3']}: Address already in use"
        )


def test_a_broker_that_does_not_start_is_told_of_with_what_it_said(tmp_path: Path) -> None:
    site = TestSite(tmp_path, "west", PROCESSES)
    (tmp_path / "s3").mkdir()
    (tmp_path / "s3" / "letter.txt").write_text("not a log")
    with sites(site):
        failed = asyncio.run(started(site).provide("b2", ("s4",)))
    assert isinstance(failed, Failed)
    assert failed.problem.startswith("no spare can be started: s3 did not start; it said: ")
    assert "letter.txt" in failed.problem
    assert not site.spare("s3").process_file.exists()


def test_without_a_file_there_is_nothing_to_start(tmp_path: Path) -> None:
    site = TestSite(tmp_path, "west", PROCESSES)
    failed = asyncio.run(Started(site.site, "-", "", "warning").provide("b2", ()))
    assert failed == Failed("no spare can be started: this broker was not given a site file by its name")


def test_a_broker_that_does_not_end_by_itself_is_killed(tmp_path: Path) -> None:
    site = TestSite(tmp_path, "west", PROCESSES)

    async def scene() -> None:
        assert isinstance(await started(site).provide("b2", ()), Provided)
        running = site.spare("s3").running()
        assert running is not None
        os.kill(running.pid, SIGSTOP)
        await processes.end(running, within_s=0.2)
        assert not running.is_alive

    with sites(site):
        asyncio.run(scene())


def test_a_process_that_has_ended_and_that_nobody_has_waited_for_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert identity_of(ended.pid) == ""


def test_a_process_with_the_number_of_one_that_is_gone_is_left_alone() -> None:
    """Process numbers come again."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        stale = Running(other.pid, "another boot/1")
        assert not stale.is_alive
        asyncio.run(processes.end(stale, within_s=0.1))
        assert Running(other.pid, identity_of(other.pid)).is_alive
        other.communicate(b"\n")
        assert other.returncode == 0, "it ended by itself, and by no signal"
        assert identity_of(other.pid) == ""
