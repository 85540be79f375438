"""A connection to a broker that may be down for a while: it is waited for, and then things go on."""

from __future__ import annotations

import logging
import time

from holdfast.client.blocking import BlockingBus, connect
from holdfast.errors import NotConnected

ATTEMPT_S = 5.0

log = logging.getLogger("holdfast.spark")


def open_bus(url: str, wait_s: float) -> BlockingBus:
    """An open bus. What its calls find missing later, they wait for by themselves; the first connection is tried until
    `wait_s` are over, and then NotConnected is raised."""
    until = time.monotonic() + wait_s
    while True:
        left = until - time.monotonic()
        try:
            return connect(url, timeout_s=max(0.1, min(ATTEMPT_S, left))).__enter__()
        except NotConnected as error:
            if time.monotonic() >= until:
                raise NotConnected(
                    f"no broker of {url} answered within {wait_s:g} s (option 'wait_s' says how long to wait)",
                    error.reason,
                    error.refusal,
                ) from error
            log.warning("waiting for a broker of %s: %s", url, error)
