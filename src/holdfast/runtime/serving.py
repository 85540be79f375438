"""Runs a site's brokers in this process until they are told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
from collections.abc import Callable, Sequence

from holdfast.broker.assembly import BrokerSettings, make_broker
from holdfast.broker.site import BrokerEntry, Site
from holdfast.errors import SiteError
from holdfast.kernel.links import Role
from holdfast.runtime.runner import NodeRunner

log = logging.getLogger("holdfast")


def check_servable(site: Site, where: str) -> None:
    """Refuses what the runtime can't keep a promise about yet, before anything is started."""
    for entry in site.brokers:
        if entry.durable:
            problem = f"broker {entry.id!r} has 'data', and there is no durable log yet: leave 'data' out to run it"
            raise SiteError(problem, where)
        host = entry.address.rpartition(":")[0].strip("[]")
        if not _is_loopback(host):
            problem = f"broker {entry.id!r} would listen on {host!r} without TLS; only loopback addresses are served"
            raise SiteError(problem, where)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def serve(site: Site, entries: Sequence[BrokerEntry], ready: Callable[[BrokerEntry, int], None]) -> str:
    """Serves clients until SIGTERM or SIGINT, or until a broker fails. Gives the failure, or nothing."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    runners: list[NodeRunner] = []
    try:
        for entry in entries:
            settings = BrokerSettings(entry.id, limits=site.limits)
            runner = NodeRunner(
                entry.id,
                Role.BROKER,
                lambda rng, streams, own=settings: make_broker(own, rng, streams),  # type: ignore[misc]
            )
            runners.append(runner)
            runner.start()
            host, _, port = entry.address.rpartition(":")
            ready(entry, await runner.listen(Role.CLIENT, host.strip("[]"), int(port)))
        waiting = [asyncio.ensure_future(event.wait()) for event in (stopping, *(r.stopped for r in runners))]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    finally:
        for runner in runners:
            await runner.stop("the broker is stopping")
    return next((f"{runner.name}: {runner.failure}" for runner in runners if runner.failure), "")
