"""The checkers by name, as headers of traces and the command line name them.

A name may carry an argument after a colon: `weak-ordered:b2` asks about the events that kept clear of broker b2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from holdfast.trace.checkers.at_most_once import AtMostOnce
from holdfast.trace.checkers.bounded_queues import BoundedQueues
from holdfast.trace.checkers.checker import Checker
from holdfast.trace.checkers.complete import Complete
from holdfast.trace.checkers.endings import Endings
from holdfast.trace.checkers.exactly_once import ExactlyOnce
from holdfast.trace.checkers.in_time import InTime
from holdfast.trace.checkers.liveness import Liveness
from holdfast.trace.checkers.no_forgetting import NoForgetting
from holdfast.trace.checkers.no_loss import NoLoss
from holdfast.trace.checkers.only_matching import OnlyMatching
from holdfast.trace.checkers.publisher_order import PublisherOrder
from holdfast.trace.checkers.restricted import Restricted
from holdfast.trace.checkers.total_order import TotalOrder
from holdfast.trace.errors import UnknownChecker
from holdfast.trace.schema import Header


class Known(msgspec.Struct, frozen=True):
    """How a checker is made, and what it promises. `argument` says what follows the colon; empty if nothing does."""

    make: Callable[[str], Checker]
    promise: str
    argument: str = ""


CHECKERS: dict[str, Known] = {
    "only-matching": Known(lambda _: OnlyMatching(), "only published events that match reach a subscription"),
    "at-most-once": Known(lambda _: AtMostOnce(), "no subscription gets an event twice"),
    "publisher-order": Known(lambda _: PublisherOrder(), "the events of one publisher arrive in their order"),
    "total-order": Known(lambda _: TotalOrder(), "any two subscriptions get their common events in one order"),
    "no-loss": Known(lambda _: NoLoss(), "every acknowledged event reaches every subscription that it is owed to"),
    "exactly-once": Known(lambda _: ExactlyOnce(), "at-most-once and no-loss"),
    "complete": Known(lambda _: Complete(), "subscriptions with the same filter have the same gaps"),
    "weak-complete": Known(
        lambda broker: Restricted(Complete(f"weak-complete:{broker}"), broker),
        "complete, for events that do not traverse BROKER",
        "BROKER",
    ),
    "weak-ordered": Known(
        lambda broker: Restricted(PublisherOrder(f"weak-ordered:{broker}"), broker),
        "publisher-order, for events that do not traverse BROKER",
        "BROKER",
    ),
    "no-forgetting": Known(lambda _: NoForgetting(), "no subscription is forgotten by its broker"),
    "endings": Known(lambda _: Endings(), "no subscription ends but as its owner asks, or for a reason in the run"),
    "bounded-queues": Known(lambda _: BoundedQueues(), "no queue passes the limit that is claimed for it"),
    "liveness": Known(lambda _: Liveness(), "every publication and every subscription gets its answer"),
    "in-time": Known(lambda _: InTime(), "no event is handed over after its deadline"),
}

# What every scheme promises, whatever its header says.
PROMISED_BY_ALL = ("only-matching", "at-most-once", "bounded-queues")

# What can be checked on the rows of brokers alone, one by one, so that a trace without its beginning or end will do.
CHECKED_LIVE = ("bounded-queues",)


def unchecked(header: Header, name: str) -> str:
    """Why a checker can say nothing about a trace that brokers wrote while they served; empty if it can, or if it is
    another one. What such a trace leaves out would be taken for what did not happen."""
    if not header.is_live:
        return ""
    if name not in CHECKED_LIVE:
        return "brokers' traces do not say what clients asked for and got"
    return "a sample leaves notes on queues out" if header.sampled else ""


def make_checker(name: str, of_scheme: Mapping[str, Known] | None = None) -> Checker:
    """The checker of this name, new; with its argument after a colon. `of_scheme` are those that a scheme brings."""
    plain, colon, argument = name.partition(":")
    known = {**CHECKERS, **(of_scheme or {})}
    entry = known.get(plain)
    if entry is None:
        raise UnknownChecker(name, f"there is no checker {plain!r}; there are {', '.join(known)}")
    if entry.argument and not argument:
        raise UnknownChecker(name, f"checker {plain!r} needs an argument: {plain}:{entry.argument}")
    if colon and not entry.argument:
        raise UnknownChecker(name, f"checker {plain!r} takes no argument, and was given {argument!r}")
    return entry.make(argument)
