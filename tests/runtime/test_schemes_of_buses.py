"""A bus is of the scheme of the broker that it reaches first: what it is told, what ends it, and whether it listens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from experiments.replication.group import ReplicaGroup
from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.catalogue import catalogue_of
from holdfast.broker.registry import SCHEMES
from holdfast.client.connection import State
from holdfast.errors import ListenFailed, NotConnected, SchemeChanged
from holdfast.kernel.links import Role
from holdfast.protocols.sessions import requests
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.tree.parts import make_broker
from holdfast.wire.addresses import split_address
from holdfast.wire.limits import WireLimits
from tests.runtime.broker_process import BrokerProcess, free_port
from tests.runtime.hostile import RawPeer, opened
from tests.taking_scheme import KIND
from tests.taking_scheme.client import Greet


def run(scene: Callable[[], Awaitable[Any]]) -> Any:
    async def within_time() -> Any:
        async with asyncio.timeout(60):
            return await scene()

    return asyncio.run(within_time())


class Served:
    """A broker in this process that says of itself that it is of a scheme, over which it tells the truth or not."""

    def __init__(self, scheme: str) -> None:
        catalogue = catalogue_of(scheme, {}, {}, ())
        self.runner = NodeRunner(
            "b1", Role.BROKER, lambda rng, streams: make_broker(BrokerSettings("b1"), rng, streams), catalogue
        )
        self.url = ""

    async def __aenter__(self) -> Served:
        self.runner.start()
        self.url = f"holdfast://127.0.0.1:{await self.runner.listen((Role.CLIENT,), '127.0.0.1', 0)}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runner.stop()


def test_nobody_says_whether_a_url_is_a_tree_s_or_a_group_s(tmp_path: Path) -> None:
    async def scene() -> None:
        with BrokerProcess(tmp_path) as broker, ReplicaGroup(tmp_path, protocol="fast") as group:
            group.start()
            for url, scheme in ((broker.url, "tree"), (group.url, "paxos")):
                async with holdfast.connect(url) as bus, bus.subscribe("n > 0") as events:
                    await bus.publish({"n": 1})
                    assert (await events.next()).attributes == {"n": 1}
                    assert bus.scheme == scheme

    run(scene)


def test_a_bus_shakes_hands_once() -> None:
    async def scene() -> None:
        async with Served("tree") as broker, holdfast.connect(broker.url) as bus:
            await bus.publish({"n": 1})
            counts = broker.runner.measure()
            assert (counts["connections_opened_total"], counts["connections"]) == (1, 1)

    run(scene)


def test_a_broker_of_another_scheme_at_the_same_address_ends_the_bus(tmp_path: Path) -> None:
    async def scene() -> None:
        port = free_port()
        states: list[tuple[holdfast.State, str]] = []
        closed = asyncio.Event()

        def on_state(state: holdfast.State, detail: str) -> None:
            states.append((state, detail))
            if state is holdfast.State.CLOSED:
                closed.set()

        with BrokerProcess(tmp_path, port) as broker:
            bus = holdfast.connect(broker.url, on_state=on_state)
            await bus.open()
            subscription = bus.subscribe("n > 0")
            await subscription.__aenter__()
            broker.kill()
            waiting = asyncio.ensure_future(bus.publish({"n": 1}))
            with BrokerProcess(tmp_path, port, f'data = "{tmp_path}/data"\n', '[scheme]\nkind = "paxos"\n'):
                await closed.wait()
                for call in (waiting, subscription.next(), bus.publish({"n": 2}), bus.head(), bus.ask(b"?")):
                    with pytest.raises(SchemeChanged) as ended:
                        await call
                    assert ended.value.args == (f"127.0.0.1:{port}", "paxos", "tree")
                assert states[-1][1] == str(ended.value)
                assert str(ended.value) == (
                    f"127.0.0.1:{port} is of the scheme 'paxos'; this bus was connected to one of 'tree'"
                )
                await bus.close()

    run(scene)


def test_what_was_posted_to_a_bus_that_ended_is_not_forgotten() -> None:
    async def scene() -> None:
        async with Served("tree") as broker:
            bus = holdfast.connect(broker.url)
            await bus.open()
        await bus.post({"n": 1})
        bus._end(SchemeChanged("a:1", "paxos", "tree"))
        with pytest.raises(SchemeChanged):
            await bus.flush()
        await bus.flush()
        await bus.close()

    run(scene)


@pytest.mark.parametrize(
    ("scheme", "reason"),
    [
        ("delta9", "b1 is of the scheme 'delta9', which is not known here; known are {known}"),
        ("", "b1 names no scheme: it is of an earlier version"),
    ],
)
def test_a_broker_whose_scheme_is_not_known_is_not_connected_to(scheme: str, reason: str) -> None:
    told = reason.format(known=", ".join(SCHEMES.kinds))

    async def scene() -> None:
        async with Served(scheme) as broker:
            with pytest.raises(NotConnected) as refused:
                async with holdfast.connect(broker.url, timeout_s=0.3):
                    pass
            assert (refused.value.reason, refused.value.refusal) == (f"{broker.url[11:]}: {told}", "scheme")
            assert str(refused.value).endswith(told)

    run(scene)


def test_other_addresses_are_tried_when_the_scheme_of_one_is_not_known() -> None:
    async def scene() -> None:
        async with (
            Served("delta9") as strange,
            Served("tree") as broker,
            holdfast.connect(f"{strange.url},{broker.url[11:]}") as bus,
        ):
            assert bus.scheme == "tree"

    run(scene)


# --------------------------------------------------------------------------------------------------------- listening
@pytest.fixture
def taking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCHEMES._packages, KIND, "tests.taking_scheme")


@pytest.mark.usefixtures("taking")
def test_a_bus_that_listens_is_dialled_by_another_and_speaks_its_scheme_s_messages() -> None:
    async def scene() -> None:
        async with (
            Served(KIND) as broker,
            holdfast.connect(broker.url, name="one") as one,
            holdfast.connect(broker.url, name="other", listen="127.0.0.1:0") as other,
            other.subscribe("n > 0") as events,
        ):
            assert one.listening == ""
            answer = await one._connection.ask(Greet(other.listening))
            assert answer == f"client:other: hello from one, says {other.listening}"
            await one.publish({"n": 1})
            assert (await events.next()).attributes == {"n": 1}

    run(scene)


@pytest.mark.usefixtures("taking")
def test_a_bus_that_listens_refuses_whom_its_scheme_does_not_take_and_is_gone_when_it_is_closed() -> None:
    async def scene() -> None:
        async with Served(KIND) as broker:
            async with holdfast.connect(broker.url, name="other", listen="127.0.0.1:0") as other:
                port = split_address(other.listening)[1]
                refused = await asyncio.to_thread(_heard, port, b"HOLDFAST-MANAGE\n")
                assert (refused.reason.value, refused.problem) == (
                    "role",
                    "this listener is for clients, not for operators",
                )
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", port)

    run(scene)


def _heard(port: int, data: bytes) -> Any:
    with RawPeer(port, data) as peer:
        return peer.until_closed()


@pytest.mark.usefixtures("taking")
def test_limits_hold_for_the_links_that_a_client_takes() -> None:
    async def scene() -> None:
        limits = WireLimits(connections=1)
        runner = NodeRunner(
            "c", Role.CLIENT, lambda rng, streams: _Idle(), SCHEMES.client(KIND).catalogue, limits=limits
        )
        runner.start()
        port = await runner.listen((Role.CLIENT,), "127.0.0.1", 0)
        first = await asyncio.to_thread(RawPeer, port, opened("first"))
        refused = await asyncio.to_thread(_heard, port, opened("second"))
        assert refused.problem == "the client has all the connections that it takes: connections, 1"
        assert runner.refusals["limit"] == 1
        first.close()
        await runner.stop()

    run(scene)


class _Idle:
    def handle(self, inputs: list[Any], out: Any) -> None: ...

    def check_invariants(self) -> None: ...


def test_a_bus_of_a_scheme_whose_clients_take_no_links_does_not_listen() -> None:
    async def scene() -> None:
        async with Served("tree") as broker:
            with pytest.raises(ListenFailed, match="clients of the scheme 'tree' take no links") as failed:
                async with holdfast.connect(broker.url, name="c", listen="127.0.0.1:0"):
                    pass
            assert (failed.value.owner, failed.value.address) == ("client 'c'", "127.0.0.1:0")
            while broker.runner.measure()["connections"]:
                await asyncio.sleep(0)

    run(scene)


@pytest.mark.parametrize(
    ("listen", "problem"),
    [
        ("0.0.0.0:0", "it would listen without TLS"),
        ("example.org:7000", "it would listen without TLS"),
        ("7000", "this is no address"),
        ("127.0.0.1", "this is no address"),
        ("127.0.0.1:70000", "this is no address"),
    ],
)
def test_what_can_t_be_listened_on_is_refused_before_anything_is_dialled(listen: str, problem: str) -> None:
    with pytest.raises(ListenFailed, match=problem):
        holdfast.connect("holdfast://127.0.0.1:1", listen=listen)


def test_an_address_that_is_taken_is_told_before_anything_is_dialled() -> None:
    async def scene() -> None:
        async with Served("tree") as broker:
            taken = broker.url[11:]
            with pytest.raises(ListenFailed, match="another process listens there"):
                async with holdfast.connect(broker.url, listen=taken):
                    pass
            assert broker.runner.measure()["connections_opened_total"] == 0

    run(scene)


@pytest.mark.usefixtures("taking")
def test_of_two_buses_that_take_an_address_at_the_same_time_one_is_told_that_the_other_has_it() -> None:
    async def scene() -> None:
        async with Served(KIND) as broker:
            listen = f"127.0.0.1:{free_port()}"
            buses = [holdfast.connect(broker.url, name=name, listen=listen) for name in ("one", "other")]
            came = await asyncio.gather(*(bus.open() for bus in buses), return_exceptions=True)
            for bus in buses:
                await bus.close()
            (problem,) = [each for each in came if each is not None]
            assert isinstance(problem, ListenFailed)
            assert "another process listens there" in str(problem)

    run(scene)


def test_a_bus_that_is_closed_stays_closed() -> None:
    async def scene() -> None:
        bus = holdfast.connect("holdfast://127.0.0.1:1")
        for report in (requests.SchemeChanged("a:1", "paxos", "tree"), requests.Disconnected("gone")):
            bus.on_complete(requests.UNSOLICITED, report)
        assert bus.state is State.CLOSED

    run(scene)
