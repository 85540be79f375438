"""Runs a site's brokers in this process until they are told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.broker.site import PLAINTEXT_ACCEPTED, BrokerEntry, Site
from holdfast.broker.site_node import site_node
from holdfast.errors import SiteError
from holdfast.kernel.application import Hosted
from holdfast.kernel.carrier import Program
from holdfast.kernel.links import Role
from holdfast.runtime.beside import Companion, Companions
from holdfast.runtime.descriptors import fitted
from holdfast.runtime.listening import listening
from holdfast.runtime.live_trace import LiveTrace, TraceSettings
from holdfast.runtime.metrics import MetricsServer
from holdfast.runtime.runner import NodeRunner
from holdfast.runtime.segment_storage import SegmentStorage
from holdfast.runtime.signals import stop_by_signals
from holdfast.wire.addresses import is_loopback, split_address
from holdfast.wire.limits import WireLimits

log = logging.getLogger("holdfast")

Ready = Callable[[BrokerEntry, int], None]
# Makes what a broker hosts: a new one for each broker.
MakeApplication = Callable[[], Hosted]


def check_servable(site: Site, where: str, metrics: str = "") -> None:
    """Refuses what the runtime can't keep a promise about, before anything is started."""
    for owner, address in _addresses(site, metrics):
        if not is_loopback(split_address(address)[0]) and not site.plaintext:
            problem = (
                f"{owner} would listen on {address} without TLS, for anyone to read and to write; use a loopback"
                f' address, or write [security] plaintext = "{PLAINTEXT_ACCEPTED}"'
            )
            raise SiteError(problem, where)


def _addresses(site: Site, metrics: str) -> list[tuple[str, str]]:
    entries = [(f"broker {entry.id!r}", entry) for entry in site.brokers]
    listed = [(owner, a) for owner, entry in entries for a in (entry.address, entry.peer_address) if a]
    return [*listed, ("/metrics", metrics)] if metrics else listed


class Failure(NamedTuple):
    """Why a broker stopped by itself; `storage`: it was its disk."""

    reason: str
    storage: bool


async def serve(
    site: Site,
    entries: Sequence[BrokerEntry],
    ready: Ready,
    metrics: str = "",
    make_application: MakeApplication | None = None,
    trace: TraceSettings | None = None,
    companion: Companion | None = None,
) -> Failure | None:
    """Serves until SIGTERM or SIGINT, or until a broker fails. LogError if a broker's log can't be used,
    ListenFailed if an address can't. `companion` is what runs beside each broker."""
    stopping = asyncio.Event()
    stop_by_signals(stopping)
    return await serve_until(stopping, site, entries, ready, metrics, make_application, trace, companion)


async def serve_until(
    stopping: asyncio.Event,
    site: Site,
    entries: Sequence[BrokerEntry],
    ready: Ready,
    metrics: str = "",
    make_application: MakeApplication | None = None,
    trace: TraceSettings | None = None,
    companion: Companion | None = None,
) -> Failure | None:
    """The same until the event is set."""
    for owner, address in _addresses(site, metrics):
        if not is_loopback(split_address(address)[0]):
            log.warning("%s listens on %s WITHOUT TLS: anyone who reaches it can read and publish", owner, address)
    runners: list[NodeRunner] = []
    exporter = MetricsServer(runners, site.scheme.measures, site.scheme.measures_by_name)
    companions = Companions(companion)
    limits = fitted(WireLimits(), len(entries))
    try:
        if metrics:
            with listening("/metrics", metrics):
                await exporter.listen(*split_address(metrics))
        for entry in entries:
            asker = companions.asker()
            runners.append(await _start(site, entry, limits, ready, make_application, trace, asker))
            companions.begin(site, entry, runners[-1], asker)
        waiting = [asyncio.ensure_future(event.wait()) for event in (stopping, *(r.stopped for r in runners))]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    finally:
        await companions.stop()
        for runner in runners:
            await runner.stop("the broker is stopping")
        await exporter.close()
    failed = next((runner for runner in runners if runner.failure), None)
    return None if failed is None else Failure(f"{failed.name}: {failed.failure}", failed.storage_failed)


async def _start(
    site: Site,
    entry: BrokerEntry,
    limits: WireLimits,
    ready: Ready,
    make_application: MakeApplication | None,
    trace: TraceSettings | None,
    program: Program | None,
) -> NodeRunner:
    node = site_node(site, entry, None if make_application is None else make_application())
    storage = SegmentStorage(entry.data, node.catalogue.records, owner=node.owner) if entry.durable else None
    runner = NodeRunner(
        entry.id,
        Role.BROKER,
        node.make,
        node.catalogue,
        program,
        storage=storage,
        limits=limits,
        remote_operators=site.remote_operators,
        make_trace=None if trace is None else lambda: LiveTrace(trace, entry.id, site.name, site.scheme.kind),
    )
    try:
        # The addresses first: a second process of a broker that runs must not dial others in its name.
        runner.open()
        with listening(f"broker {entry.id!r}", entry.address):
            port = await runner.listen((Role.CLIENT, Role.OPERATOR), *split_address(entry.address), at_once=False)
        if entry.peer_address:
            with listening(f"broker {entry.id!r}", entry.peer_address):
                await runner.listen((Role.BROKER,), *split_address(entry.peer_address), at_once=False)
        runner.begin()
        with listening(f"broker {entry.id!r}", entry.address):
            await runner.accept()
    except BaseException:
        await runner.stop()
        raise
    ready(entry, port)
    return runner
