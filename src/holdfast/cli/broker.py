"""`holdfast broker`: serves one broker of a site, or all of them, until it is told to stop."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

from holdfast.broker.registry import SCHEMES
from holdfast.broker.site import BrokerEntry, Site
from holdfast.broker.site_text import is_address
from holdfast.cli.applications import application_of
from holdfast.cli.logs import add_log_arguments, start_logging
from holdfast.cli.main import BROKER_FAILED, OK, STORAGE_FAILED
from holdfast.cli.trace_options import add_trace_arguments, trace_settings
from holdfast.cli.where import chosen
from holdfast.errors import LogError, SiteError
from holdfast.runtime import loop
from holdfast.runtime.beside import Companion
from holdfast.runtime.serving import check_servable, serve
from holdfast.runtime.site_file import read_site


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_serving_arguments(parser)
    parser.add_argument("--id", metavar="BROKER", help="only this broker (default: all of the site)")
    add_trace_arguments(parser, "FILE", "write a trace there, for `holdfast trace`; of several brokers, say --id")
    parser.set_defaults(run=run)


def add_serving_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "site", metavar="SITE", nargs="?", help="a site file, or - (default: one broker at 127.0.0.1:7411)"
    )
    add_log_arguments(parser)
    parser.add_argument(
        "--metrics", metavar="HOST:PORT", default="", help="serve /metrics and /healthz there, over HTTP"
    )


def default_site() -> Site:
    """One broker at the default address, with its data where the user's programs keep their state."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    data = str(Path(state) / "holdfast" / "b1")
    scheme = SCHEMES[SCHEMES.kinds[0]]
    return Site(name="default", scheme=scheme, settings=scheme.settings, brokers=(BrokerEntry(id="b1", data=data),))


def companion_of(site: Site, arguments: argparse.Namespace) -> Companion | None:
    """What runs beside each broker, if the site's scheme has such a program. It is told where the site file is."""
    module = site.scheme.beside(site)
    if not module:
        return None
    companion: Companion = import_module(module).program(arguments.site or "", arguments.log_level)
    return companion


def run(arguments: argparse.Namespace) -> int:
    site = default_site() if arguments.site is None else read_site(arguments.site)
    where = arguments.site or "the default site"
    entries = chosen(site, arguments.id, where)
    if arguments.metrics and not is_address(arguments.metrics):
        raise SiteError(f"--metrics is {arguments.metrics!r}; write host:port, for instance 127.0.0.1:9411", where)
    trace = trace_settings(arguments, len(entries))
    check_servable(site, where, arguments.metrics)
    make_application = application_of(site.application, where)
    start_logging(arguments)

    def ready(entry: BrokerEntry, port: int) -> None:
        elsewhere = "" if entry.advertised == entry.address else f", and listens on {entry.address}"
        print(f"broker {entry.id} serves holdfast://{entry.advertised}{elsewhere}", flush=True)
        kept = (
            f"it keeps its state and its events in {entry.data}" if entry.durable else "it keeps nothing over a restart"
        )
        print(kept, flush=True)
        if site.application is not None:
            print(f"it hosts the application {site.application.name}")
        if greeting := site.scheme.greeting(site, entry):
            print(greeting)

    try:
        companion = companion_of(site, arguments)
        failure = loop.run(serve(site, entries, ready, arguments.metrics, make_application, trace, companion))
    except LogError as error:
        print(f"holdfast: {error}", file=sys.stderr)
        return STORAGE_FAILED
    if failure is not None:
        print(f"holdfast: {failure.reason}", file=sys.stderr)
        return STORAGE_FAILED if failure.storage else BROKER_FAILED
    print("stopped")
    return OK
