"""A node that is broken is stopped with all its links; others go on."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.registry import SCHEMES
from holdfast.client import connect
from holdfast.errors import HandshakeRefused
from holdfast.kernel.inputs import Input, Requested
from holdfast.kernel.links import Role
from holdfast.kernel.node import broken
from holdfast.kernel.outbox import Outbox
from holdfast.protocols.client_catalogue import PROTOCOL_VERSIONS
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.tree.parts import make_broker
from holdfast.wire.handshake import Dialling
from holdfast.wire.limits import WireLimits
from tests.runtime.test_bus import run

SPOKEN = SCHEMES["tree"].catalogue


class Brittle:
    """Does what it is asked for, which is to break."""

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        for event in inputs:
            if isinstance(event, Requested):
                event.command(out)

    def check_invariants(self) -> None:
        pass


def _divide(out: Outbox) -> None:
    _ = 1 // 0


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        (lambda out: broken("a claim", n=1), "a claim (n=1)"),
        (_divide, "ZeroDivisionError: integer division or modulo by zero"),
        (lambda out: out.stop("the disk is full"), "the disk is full"),
    ],
    ids=["finds itself broken", "raises", "asks to be stopped"],
)
def test_a_broken_node_is_stopped(command: Any, failure: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "holdfast")

    async def scene() -> str:
        runner = NodeRunner("b1", Role.BROKER, lambda rng, streams: Brittle(), SPOKEN)
        runner.start()
        await runner.listen((Role.CLIENT,), "127.0.0.1", 0)
        runner.request(1, command)
        await runner.stopped.wait()
        await runner.stop()
        return runner.failure

    assert run(scene) == failure


def test_a_stopped_broker_closes_what_it_accepted() -> None:
    async def scene() -> None:
        settings = BrokerSettings("b1")
        runner = NodeRunner("b1", Role.BROKER, lambda rng, streams: make_broker(settings, rng, streams), SPOKEN)
        runner.start()
        port = await runner.listen((Role.CLIENT,), "127.0.0.1", 0)
        gone = asyncio.Event()
        async with connect(
            f"holdfast://127.0.0.1:{port}", on_state=lambda state, _: gone.set() if "dis" in state.value else None
        ) as bus:
            await bus.publish({"n": 1})
            await runner.stop()
            await gone.wait()

    run(scene)


def test_a_client_beyond_the_limit_of_connections_is_told_so() -> None:
    async def scene() -> None:
        settings, limits = BrokerSettings("b1"), WireLimits(connections=1)
        runner = NodeRunner(
            "b1",
            Role.BROKER,
            lambda rng, streams: make_broker(settings, rng, streams),
            SPOKEN,
            limits=limits,
        )
        runner.start()
        port = await runner.listen((Role.CLIENT,), "127.0.0.1", 0)
        async with connect(f"holdfast://127.0.0.1:{port}") as bus:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            late = Dialling(Role.CLIENT, "late", 1, limits, PROTOCOL_VERSIONS)
            writer.write(late.opening)
            with pytest.raises(HandshakeRefused) as refused:
                late.feed(await reader.read())
            assert refused.value.reason == "limit"
            writer.close()
            await writer.wait_closed()
            await bus.publish({"n": 1})
        await runner.stop()

    run(scene)
