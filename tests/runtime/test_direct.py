"""Direct links over sockets: every replica hears what is published, and a client outlives its leader."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.kit import BrokerKit
from holdfast.broker.registry import SCHEMES
from holdfast.client import connect
from holdfast.kernel.inputs import ConnectFailed, Input, Requested
from holdfast.kernel.links import Role
from holdfast.kernel.node import Node
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.core.commands import Command
from holdfast.runtime.runner import NodeRunner
from holdfast.runtime.segment_storage import SegmentStorage
from holdfast.schemes.catalogue import RECORDS
from holdfast.schemes.paxos.parts import PaxosKit, make_replica
from holdfast.schemes.paxos.settings import Member, PaxosSettings
from tests.runtime.broker_process import free_port
from tests.runtime.test_bus import run
from tests.sim.test_direct_groups import LeaderTakesDirect

SPOKEN = SCHEMES["paxos"].catalogue


class Seeing(LeaderTakesDirect):
    """Writes down what every replica is given."""


class ReplicasHere:
    """A group of three in this process, whose leader takes what clients say to all replicas."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        names = ("b1", "b2", "b3")
        ports = [free_port() for _ in range(6)]
        addresses = [f"127.0.0.1:{port}" for port in ports]
        self.members = tuple(map(Member, names, addresses[:3], addresses[3:]))
        self.url = "holdfast://" + ",".join(addresses[3:])
        self.runners: dict[str, NodeRunner] = {}

    async def start(self) -> None:
        Seeing.seen.clear()
        for member in self.members:
            group = PaxosSettings(member.name, self.members)

            def make(rng: Random, streams: StoredStreams, group: PaxosSettings = group) -> Node:
                kit = BrokerKit(scheme=PaxosKit(replica=Seeing))
                return make_replica(BrokerSettings(group.name, durable=True), group, rng, streams, kit=kit)

            storage = SegmentStorage(str(self._folder / member.name), RECORDS)
            runner = self.runners[member.name] = NodeRunner(member.name, Role.BROKER, make, SPOKEN, storage=storage)
            runner.start()
            for roles, address in (((Role.CLIENT,), member.client_address), ((Role.BROKER,), member.peer_address)):
                host, _, port = address.rpartition(":")
                await runner.listen(roles, host, int(port))

    async def stop(self) -> None:
        for runner in self.runners.values():
            await runner.stop()

    def measured(self, name: str) -> dict[str, int]:
        return {runner.name: runner.measure().get(name, 0) for runner in self.runners.values()}

    @property
    def leader(self) -> str:
        leading = self.measured("replica_is_leading")
        return next((name for name, leads in leading.items() if leads), "")

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def replicas(folder: Path) -> AsyncIterator[ReplicasHere]:
    group = ReplicasHere(folder)
    try:
        await group.start()
        yield group
    finally:
        await group.stop()


def given(name: str) -> list[Command]:
    return [command for by, command in Seeing.seen if by == name]


def test_every_replica_hears_what_is_published_also_after_the_leader_is_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            replicas(tmp_path) as group,
            connect(group.url, name="p") as bus,
            bus.subscribe("n >= 0") as events,
        ):
            got: list[Any] = []
            await group.until(lambda: sum(group.measured("replica_clients_direct").values()) == 2)
            for n in range(5):
                await bus.publish({"n": n})
            await group.until(lambda: all(len(given(name)) == 5 for name in group.runners))
            assert given("b1") == given("b2") == given("b3")
            gone = group.leader
            await group.runners.pop(gone).stop()
            for n in range(5, 10):
                await bus.publish({"n": n})
            # The one that leads now has the session, and the other a direct link.
            await group.until(lambda: group.measured("replica_clients_direct").get(group.leader) == 0)
            follower = next(name for name in group.runners if name != group.leader)
            await group.until(lambda: group.measured("replica_clients_direct")[follower] == 1)
            await bus.publish({"n": 10})
            await group.until(lambda: len(given(follower)) > 5)
            while len(got) < 11:
                got.append((await events.next()).attributes["n"])
            assert got == list(range(11))

    run(scene)


def test_a_client_that_does_not_want_direct_links_has_none(tmp_path: Path) -> None:
    async def scene() -> None:
        async with replicas(tmp_path) as group, connect(group.url, allow_direct=False) as bus:
            await bus.publish({"n": 1})
            assert set(group.measured("replica_clients_direct").values()) == {0}
            assert Seeing.seen == []

    run(scene)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:", "127.0.0.1:999999999999", "\x00:1", "a" * 300 + ":1"])
def test_what_is_no_address_can_not_be_connected_to_and_the_node_hears_so(address: str) -> None:
    """A broker may name any text as an address."""

    class Dials:
        failed: ConnectFailed | None = None

        def handle(self, inputs: list[Input], out: Outbox) -> None:
            for event in inputs:
                if isinstance(event, Requested):
                    out.connect("", address)
                if isinstance(event, ConnectFailed):
                    self.failed = event
                    out.stop("done")

        def check_invariants(self) -> None:
            pass

    async def scene() -> None:
        node = Dials()
        runner = NodeRunner("c", Role.CLIENT, lambda rng, streams: node, SPOKEN)
        runner.start()
        runner.request(1, None)
        await runner.stopped.wait()
        await runner.stop()
        assert node.failed is not None
        assert node.failed.address == address

    run(scene)
