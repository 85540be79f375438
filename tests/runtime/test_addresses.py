"""A broker takes its addresses before it speaks to anyone."""

from __future__ import annotations

import asyncio
import socket

import pytest

from holdfast.broker.site import site_from_toml
from holdfast.errors import ListenFailed
from holdfast.runtime.serving import serve_until
from tests.runtime.broker_process import free_port

SITE = """
[[broker]]
id = "b1"
address = "127.0.0.1:{clients}"
peer_address = "127.0.0.1:{peers}"
[[broker]]
id = "b2"
address = "127.0.0.1:{unused}"
peer_address = "127.0.0.1:{neighbour}"
[[link]]
between = ["b1", "b2"]
"""


@pytest.mark.parametrize("taken", ["clients", "peers"])
def test_a_broker_whose_address_is_taken_dials_nobody_in_its_name(taken: str) -> None:
    """Its neighbours would take it for the one that runs, started again, and drop their links to that."""
    with socket.create_server(("127.0.0.1", 0)) as neighbour, socket.create_server(("127.0.0.1", 0)) as other:
        ports = {name: free_port() for name in ("clients", "peers", "unused")}
        ports |= {"neighbour": neighbour.getsockname()[1], taken: other.getsockname()[1]}
        site = site_from_toml(SITE.format(**ports), "site.toml")
        with pytest.raises(ListenFailed, match=r"broker 'b1' can't listen on .*: another process listens there"):
            asyncio.run(serve_until(asyncio.Event(), site, site.brokers[:1], lambda entry, port: None))
        neighbour.setblocking(False)
        with pytest.raises(BlockingIOError):
            neighbour.accept()
