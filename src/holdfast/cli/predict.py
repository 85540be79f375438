"""`holdfast predict`: how likely each subscriber of a site gets an event on time, at each level; what would help."""

from __future__ import annotations

import argparse
import csv
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.broker.quality import seconds_of
from holdfast.broker.site import Site
from holdfast.cli.main import OK, UsageError
from holdfast.cli.terminal import duration, table
from holdfast.errors import HoldfastError
from holdfast.protocols.routing.settings import Reliability
from holdfast.runtime.site_file import read_site

if TYPE_CHECKING:
    from holdfast.qos.prediction import Predicted
    from holdfast.qos.site_model import SiteModel

NEEDED = ("numpy", "scipy")
HELPS_SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("site", metavar="SITE", help="the site file; it says how brokers and links fail (docs/qos.md)")
    levels = [level.value for level in Reliability]
    parser.add_argument(
        "--level", action="append", choices=levels, help="only this one; may be given again (default: all)"
    )
    parser.add_argument(
        "--lifetime", metavar="TIME", help="of events, as 10min or 1h (default: what the site says, or 1h)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="everything, as JSON")
    form.add_argument("--csv", action="store_true", help="a line for each subscriber and level")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw the network, coloured by reliability: .svg, .png, .pdf"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    missing = [name for name in (*NEEDED, *(["matplotlib"] if arguments.plot else [])) if find_spec(name) is None]
    if missing:
        raise UsageError(f"predictions need {' and '.join(missing)}: pip install 'holdfast[qos]'")
    site = read_site(arguments.site)
    lifetime = None
    if arguments.lifetime is not None:
        lifetime = seconds_of(arguments.lifetime)
        if lifetime is None:
            raise UsageError(
                f"--lifetime is {arguments.lifetime!r}, and has to be a time with its unit, as 10min or 1h"
            )
    if site.is_group:
        return _predict_group(site, lifetime, arguments)
    return _predict_network(site, lifetime, arguments)


def _predict_group(site: Site, lifetime: float | None, arguments: argparse.Namespace) -> int:
    from holdfast.qos.site_model import group_wait

    if arguments.level or arguments.csv or arguments.plot:
        raise UsageError("--level, --csv and --plot are of networks; this site is a group of replicas")
    lifetime = site.quality.lifetime_s if lifetime is None else lifetime
    wait = group_wait(site)
    facts = {
        "majority_is_on": wait.at_once,
        "in_time": wait.within(lifetime),
        "lifetime_s": lifetime,
        "mean_wait_s": wait.mean,
    }
    if arguments.json:
        print(msgspec.json.encode(facts).decode())
        return OK
    print(f"a majority of the {len(site.members)} replicas is on: {_shown(wait.at_once)}")
    print(
        f"a publication is accepted within {_told(lifetime)}: {_shown(facts['in_time'])} (its client waits and repeats)"
    )
    return OK


def _predict_network(site: Site, lifetime: float | None, arguments: argparse.Namespace) -> int:
    from holdfast.qos.contributions import contributions
    from holdfast.qos.site_model import model_of

    found = model_of(site, lifetime)
    levels = [Reliability(level) for level in arguments.level or [level.value for level in Reliability]]
    predicted = found.model.predict(found.publishers, found.subscribers, levels)
    # By the level that the site has; at `none` all are alike.
    own = site.scheme.reliability
    order = own if own in levels and own is not Reliability.NONE else levels[-1]
    predicted.sort(key=lambda one: _weakest_first(one, order))
    helps = contributions(found.model, found.publishers, found.subscribers, order)
    if arguments.plot:
        _plot(found, predicted, order, arguments.plot)
    if arguments.json:
        print(_as_json(found, predicted, helps, order))
    elif arguments.csv:
        _write_csv(predicted, levels)
    else:
        _show(found, predicted, levels, order)
        _show_helps(helps, order)
        if arguments.plot:
            print(f"\ndrawn: {arguments.plot}")
    return OK


def _weakest_first(one: Predicted, level: Reliability) -> tuple[float, str, str]:
    value = one.reliability[level]
    return (2.0 if value is None else value, one.subscriber.home, one.subscriber.topic)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}"


def _told(seconds: float) -> str:
    return duration(round(seconds * 10**9)) if seconds >= 1 else f"{seconds:g} s"


def _show(found: SiteModel, predicted: list[Predicted], levels: list[Reliability], order: Reliability) -> None:
    from holdfast.qos.prediction import EXACT_BROKERS_MAX

    print(f"how likely an event is delivered within {_told(found.model.lifetime)}; weakest first, by {order.value}\n")
    rows = [["home", "topic", "subscribers", *(level.value for level in levels)]]
    for one in predicted:
        subscriber = one.subscriber
        name = f"{subscriber.name} at {subscriber.home}" if subscriber.name else subscriber.home
        values = [_shown(one.reliability[level]) for level in levels]
        rows.append([name, subscriber.topic or "-", f"{subscriber.count:,}", *values])
    print(table(rows))
    if len(found.model.graph.brokers) > EXACT_BROKERS_MAX and any(level.detours for level in levels):
        print(f"\nwith detours: a lower bound (disjoint paths); exact up to {EXACT_BROKERS_MAX} brokers")


def _show_helps(helps: list[Any], order: Reliability) -> None:
    helps = [one for one in helps if one.gain > 5e-10]
    if helps:
        print(f"\nwhat would help most at {order.value}: the mean over all subscribers, if this never failed\n")
        print(table([["part", "gain"], *([one.part, f"+{one.gain:.6f}"] for one in helps[:HELPS_SHOWN])]))


def _as_json(found: SiteModel, predicted: list[Predicted], helps: list[Any], order: Reliability) -> str:
    document = {
        "lifetime_s": found.model.lifetime,
        "subscribers": [
            {
                "home": one.subscriber.home,
                "topic": one.subscriber.topic,
                "name": one.subscriber.name,
                "count": one.subscriber.count,
                "reliability": {level.value: value for level, value in one.reliability.items()},
            }
            for one in predicted
        ],
        "helps": {"level": order.value, "parts": helps},
    }
    return msgspec.json.encode(document).decode()


def _write_csv(predicted: list[Predicted], levels: list[Reliability]) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(["home", "topic", "name", "count", "level", "reliability"])
    for one in predicted:
        who = one.subscriber
        for level in levels:
            value = one.reliability[level]
            writer.writerow(
                [who.home, who.topic, who.name, who.count, level.value, "" if value is None else repr(value)]
            )


def _plot(found: SiteModel, predicted: list[Predicted], level: Reliability, path: Path) -> None:
    from holdfast.qos.picture import FORMS, draw_network

    if path.suffix.lower() not in FORMS:
        raise UsageError(f"--plot is {str(path)!r}, and has to end in one of {', '.join(FORMS)}")
    try:
        draw_network(found.model, predicted, level, str(path))
    except OSError as problem:
        raise HoldfastError(f"{path}: {problem.strerror}") from problem
