"""`holdfast predict`: how likely each subscriber of a site gets an event on time, at each level; what would help."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.broker.quality import seconds_of
from holdfast.broker.scheme import Prediction
from holdfast.broker.site import Site
from holdfast.cli.main import OK, UsageError
from holdfast.cli.terminal import duration, table
from holdfast.errors import HoldfastError
from holdfast.kernel.settings import written
from holdfast.protocols.routing.settings import Reliability
from holdfast.runtime.site_file import read_beside, read_site

if TYPE_CHECKING:
    from holdfast.qos.interest import Subscriber
    from holdfast.qos.prediction import Predicted
    from holdfast.qos.site_model import SiteModel

NEEDED = ("numpy", "scipy")
HELPS_SHOWN = 5
PERCENTILES = (0.5, 0.9, 0.99, 0.999)


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
        "--delays", action="store_true", help="also how long events are under way, at levels that store them"
    )
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
    if site.scheme.prediction is None:
        raise UsageError(f"there are no predictions for the scheme {site.scheme.kind!r}")
    return _PREDICTED[site.scheme.prediction](site, lifetime, arguments)


def _predict_group(site: Site, lifetime: float | None, arguments: argparse.Namespace) -> int:
    from holdfast.qos.site_model import group_wait

    if arguments.level or arguments.csv or arguments.plot:
        raise UsageError("--level, --csv and --plot are of networks; this site is a group of replicas")
    lifetime = site.quality.lifetime_s if lifetime is None else lifetime
    wait = group_wait(site, read_beside(arguments.site))
    facts: dict[str, Any] = {
        "majority_is_on": wait.at_once,
        "in_time": wait.within(lifetime),
        "lifetime_s": lifetime,
        "mean_wait_s": wait.mean,
    }
    if arguments.delays:
        facts["percentiles_s"] = {f"{share:g}": wait.percentile(share) for share in PERCENTILES}
    if arguments.json:
        print(msgspec.json.encode(facts).decode())
        return OK
    print(f"a majority of the {len(site.members)} replicas is on: {_shown(wait.at_once)}")
    print(
        f"a publication is accepted within {_told(lifetime)}: {_shown(facts['in_time'])} (its client waits and repeats)"
    )
    for share, seconds in facts.get("percentiles_s", {}).items():
        print(f"{float(share):g} of all publications are accepted within {_told(seconds)}")
    return OK


def _predict_network(site: Site, lifetime: float | None, arguments: argparse.Namespace) -> int:
    from holdfast.qos.contributions import contributions
    from holdfast.qos.site_model import model_of

    found = model_of(site, lifetime, read_beside(arguments.site))
    levels = [Reliability(level) for level in arguments.level or [level.value for level in Reliability]]
    if not site.links:
        if arguments.level or arguments.delays:
            raise UsageError("--level and --delays are of networks; this site has one broker")
        levels = [Reliability.PERIODIC]  # one broker is as reliable at one level as at another
    predicted = found.model.predict(found.publishers, found.subscribers, levels)
    # By the level that the site has; at `none` all are alike.
    own = Reliability(written(site.settings).get("reliability", Reliability.NONE.value))
    order = own if own in levels and own is not Reliability.NONE else levels[-1]
    predicted.sort(key=lambda one: _weakest_first(one, order))
    helps = contributions(found.model, found.publishers, found.subscribers, order)
    delays = _delays(found, predicted, levels) if arguments.delays else []
    if arguments.plot:
        _plot(found, predicted, order, arguments.plot)
    if arguments.json:
        print(_as_json(found, predicted, helps, order, delays))
    elif arguments.csv:
        _write_csv(predicted, levels, delays)
    else:
        _show(found, predicted, levels, order)
        if arguments.delays:
            _show_delays(predicted, delays)
        _show_helps(helps, order, bool(site.links))
        if arguments.plot:
            print(f"\ndrawn: {arguments.plot}")
    return OK


_PREDICTED: dict[Prediction, Callable[[Site, float | None, argparse.Namespace], int]] = {
    Prediction.WAYS: _predict_network,
    Prediction.MAJORITY: _predict_group,
}


def _delays(found: SiteModel, predicted: list[Predicted], levels: list[Reliability]) -> list[dict[Reliability, Any]]:
    """By subscriber and level: the share that is accepted, and percentiles of the rest in seconds."""
    from holdfast.qos.delays import delay_of
    from holdfast.qos.interest import Interests

    storing = [level for level in levels if level.buffers]
    if not storing:
        raise UsageError("--delays is of levels that store events: buffered and bypass+buffered")
    interests = Interests(found.publishers, found.subscribers)
    known: dict[Any, dict[Reliability, Any]] = {}
    result = []
    for one in predicted:
        key = (one.subscriber.home, one.subscriber.interest, one.subscriber.local)
        if key not in known:
            its = known[key] = {}
            for level in storing:
                delay = delay_of(found.model, level, interests.flows(one.subscriber), one.subscriber)
                if delay is not None:
                    times = {f"{share:g}": delay.percentile(share) for share in PERCENTILES}
                    its[level] = {"accepted": delay.accepted, "at_once": delay.within(0), "percentiles_s": times}
        result.append(known[key])
    return result


def _show_delays(predicted: list[Predicted], delays: list[dict[Reliability, Any]]) -> None:
    print("\nhow long events are under way that their brokers accept\n")
    rows = [["home", "topic", "level", "accepted", "at once", *(f"{share:.4g}%" for share in _in_percent())]]
    for one, its in zip(predicted, delays, strict=True):
        for level, facts in its.items():
            times = [_told(seconds) if seconds else "0" for seconds in facts["percentiles_s"].values()]
            head = [_home(one.subscriber), _interest(one.subscriber), level.value]
            rows.append([*head, _shown(facts["accepted"]), _shown(facts["at_once"]), *times])
    print(table(rows))


def _in_percent() -> list[float]:
    return [share * 100 for share in PERCENTILES]


def _weakest_first(one: Predicted, level: Reliability) -> tuple[float, str, str]:
    value = one.reliability[level]
    return (2.0 if value is None else value, one.subscriber.home, one.subscriber.topic)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.6f}"


def _told(seconds: float) -> str:
    return duration(round(seconds * 10**9)) if seconds >= 1 else f"{seconds:g} s"


def _home(subscriber: Subscriber) -> str:
    return f"{subscriber.name} at {subscriber.home}" if subscriber.name else subscriber.home


def _interest(subscriber: Subscriber) -> str:
    return " and ".join(text for text in (subscriber.topic, subscriber.filter) if text) or "-"


def _show(found: SiteModel, predicted: list[Predicted], levels: list[Reliability], order: Reliability) -> None:
    from holdfast.qos.prediction import EXACT_BROKERS_MAX

    is_network = len(found.model.graph.brokers) > 1
    first = f"weakest first, by {order.value}" if is_network else "weakest first"
    print(f"how likely an event is delivered within {_told(found.model.lifetime)}; {first}\n")
    names = [level.value for level in levels] if is_network else ["reliability"]
    rows = [["home", "topic", "subscribers", *names]]
    for one in predicted:
        values = [_shown(one.reliability[level]) for level in levels]
        rows.append([_home(one.subscriber), _interest(one.subscriber), f"{one.subscriber.count:,}", *values])
    print(table(rows))
    if len(found.model.graph.brokers) > EXACT_BROKERS_MAX and any(level.detours for level in levels):
        print(f"\nwith detours: a lower bound (disjoint paths); exact up to {EXACT_BROKERS_MAX} brokers")


def _show_helps(helps: list[Any], order: Reliability, is_network: bool) -> None:
    helps = [one for one in helps if one.gain > 5e-10]
    if helps:
        at = f" at {order.value}" if is_network else ""
        print(f"\nwhat would help most{at}: the mean over all subscribers, if this never failed\n")
        print(table([["part", "gain"], *([one.part, f"+{one.gain:.6f}"] for one in helps[:HELPS_SHOWN])]))


def _as_json(
    found: SiteModel, predicted: list[Predicted], helps: list[Any], order: Reliability, delays: list[Any]
) -> str:
    document = {
        "lifetime_s": found.model.lifetime,
        "subscribers": [
            {
                "home": one.subscriber.home,
                "topic": one.subscriber.topic,
                "filter": one.subscriber.filter,
                "name": one.subscriber.name,
                "count": one.subscriber.count,
                "reliability": {level.value: value for level, value in one.reliability.items()},
                **({"delays": {level.value: facts for level, facts in its.items()}} if its else {}),
            }
            for one, its in zip_longest(predicted, delays)
        ],
        "helps": {"level": order.value, "parts": helps},
    }
    return msgspec.json.encode(document).decode()


def _write_csv(predicted: list[Predicted], levels: list[Reliability], delays: list[dict[Reliability, Any]]) -> None:
    writer = csv.writer(sys.stdout)
    more = ["accepted", "at_once", *(f"p{share:.4g}_s" for share in _in_percent())] if delays else []
    writer.writerow(["home", "topic", "filter", "name", "count", "level", "reliability", *more])
    for one, its in zip_longest(predicted, delays):
        who = one.subscriber
        for level in levels:
            value = one.reliability[level]
            row = [who.home, who.topic, who.filter, who.name, who.count, level.value]
            row.append("" if value is None else repr(value))
            if its and level in its:
                facts = its[level]
                row += [facts["accepted"], facts["at_once"], *facts["percentiles_s"].values()]
            writer.writerow([*row, *[""] * (7 + len(more) - len(row))])


def _plot(found: SiteModel, predicted: list[Predicted], level: Reliability, path: Path) -> None:
    from holdfast.qos.picture import FORMS, draw_network

    if path.suffix.lower() not in FORMS:
        raise UsageError(f"--plot is {str(path)!r}, and has to end in one of {', '.join(FORMS)}")
    try:
        draw_network(found.model, predicted, level).savefig(path, dpi=150)
    except OSError as problem:
        raise HoldfastError(f"{path}: {problem.strerror}") from problem
