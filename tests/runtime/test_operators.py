"""Who may be an operator: whoever is on the broker's machine, and others only if the site file says so."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.registry import SCHEMES
from holdfast.client.operator import BrokerDesk
from holdfast.kernel.links import Role
from holdfast.protocols.operating.messages import Inspected
from holdfast.protocols.operating.operator import Unreachable
from holdfast.runtime.connection import Connection
from holdfast.runtime.runner import NodeRunner
from holdfast.schemes.tree.parts import make_broker

SPOKEN = SCHEMES["tree"].catalogue


async def inspect(remote_operators: bool) -> Inspected | Unreachable:
    make = lambda rng, streams: make_broker(BrokerSettings("b1"), rng, streams)  # noqa: E731
    runner = NodeRunner("b1", Role.BROKER, make, SPOKEN, remote_operators=remote_operators)
    runner.start()
    port = await runner.listen((Role.CLIENT, Role.OPERATOR), "127.0.0.1", 0)
    try:
        async with BrokerDesk(f"127.0.0.1:{port}") as desk:
            return await desk.inspect()
    finally:
        await runner.stop()


def test_an_operator_of_another_machine_is_refused_unless_the_site_file_accepts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(asyncio.run(inspect(remote_operators=False)), Inspected)
    monkeypatch.setattr(Connection, "is_local", property(lambda self: False))
    refused = asyncio.run(inspect(remote_operators=False))
    assert isinstance(refused, Unreachable)
    assert "only if the site file says [security] remote_operators" in refused.reason
    assert isinstance(asyncio.run(inspect(remote_operators=True)), Inspected)


@pytest.mark.parametrize(
    ("theirs", "ours", "is_local"),
    [
        (("127.0.0.1", 5), ("127.0.0.1", 7411), True),
        (("10.0.0.7", 5), ("10.0.0.7", 7411), True),  # over the machine's own address
        (("10.0.0.8", 5), ("10.0.0.7", 7411), False),
        (("::1", 5, 0, 0), ("::1", 7411, 0, 0), True),
        (None, ("10.0.0.7", 7411), False),
    ],
)
def test_the_same_machine_is_known_by_its_address(theirs: Any, ours: Any, is_local: bool) -> None:
    told = {"peername": theirs, "sockname": ours}
    connection = SimpleNamespace(_transport=SimpleNamespace(get_extra_info=told.get))
    assert Connection.is_local.fget(cast(Any, connection)) is is_local  # type: ignore[attr-defined]
