"""Events that come by two ways are handed on in the order of each publisher, and as soon as that can be known."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, encode_event
from holdfast.schemes.tree.standin.order import Order

F, R = "f", "r"


def batch(*sequences: int, publisher: str = "p", life: int = 1) -> EventBatch:
    return EventBatch.of([encode_event(Event(publisher, life, sequence, "t", {})) for sequence in sequences])


def numbers(batches: Iterable[EventBatch]) -> list[int]:
    return [event.sequence for each in batches for event in each.events]


def begun() -> Order:
    """One through whose broker a signal has come."""
    order = Order(F, R)
    assert order.signalled(F, {}) == []
    return order


def test_what_the_broker_brings_before_the_first_signal_is_handed_on_at_once() -> None:
    order = Order(F, R)
    assert numbers(order.came(F, batch(1, 2))) == [1, 2]


def test_what_the_stand_in_brings_waits_until_the_broker_is_as_far() -> None:
    """D0-B14: p5 is still in the broker's queue when p6 has come through the stand-in (Fig. 4(b))."""
    order = Order(F, R)
    order.signalled(R, {})
    assert order.came(R, batch(6)) == []
    assert numbers(order.came(F, batch(5))) == [5]  # from before the work was shared
    assert numbers(order.signalled(F, {"p": (1, 6)})) == [6]


def test_numbers_are_compared_and_not_waited_for() -> None:
    """D0-B14.1: a filter leaves gaps."""
    order = begun()
    order.signalled(R, {})
    assert order.came(F, batch(2)) == []
    assert numbers(order.came(R, batch(9))) == [2]
    assert numbers(order.came(F, batch(20))) == [9]


def test_an_idle_publisher_holds_up_nobody_else() -> None:
    """D0-B14.2"""
    order = begun()
    order.signalled(R, {})
    assert order.came(F, batch(1, publisher="idle")) == []
    assert order.came(F, batch(1, publisher="busy")) == []
    assert numbers(order.came(R, batch(2, publisher="busy"))) == [1]
    assert len(order) == 2


def test_a_signal_frees_what_an_idle_publisher_said_last() -> None:
    """D0-C23"""
    order = begun()
    assert order.came(F, batch(1)) == []
    assert numbers(order.signalled(R, {"p": (1, 1)})) == [1]


def test_what_the_stand_in_brings_out_of_order_says_nothing_of_how_far_it_is() -> None:
    """D0-B14.3: until a signal has come through it."""
    order = begun()
    assert order.came(R, batch(9)) == []
    assert order.came(F, batch(10)) == []
    assert order.came(R, batch(5)) == []
    assert numbers(order.signalled(R, {"p": (1, 9)})) == [5, 9]


def test_a_later_life_of_a_publisher_comes_behind_the_one_before() -> None:
    order = begun()
    order.signalled(R, {})
    assert order.came(F, batch(1, life=2)) == []
    assert numbers(order.came(R, batch(7))) == [7]  # the broker is beyond that life
    assert numbers(order.signalled(R, {"p": (2, 1)})) == [1]


def test_nobody_waits_for_a_way_that_is_closed() -> None:
    order = begun()
    assert order.came(F, batch(1)) == []
    assert numbers(order.close(R)) == [1]
    order.open(R)
    assert order.came(F, batch(2)) == []


def test_it_is_over_when_all_have_ended_and_nothing_is_held_back() -> None:
    order = begun()
    order.signalled(R, {})
    order.came(R, batch(3))
    assert order.ended("n1", ["n1", "n3"]) == []
    assert not order.is_over
    order.ended("n3", ["n1", "n3"])
    assert not order.is_over  # what the stand-in brought waits for the broker
    assert numbers(order.came(F, batch(4))) == [3, 4]
    assert order.is_over


@pytest.mark.parametrize("seed", range(200))
def test_however_events_and_signals_come_each_publishers_are_in_order_and_none_is_lost(seed: int) -> None:
    rng = Random(seed)
    ways: dict[str, list[tuple[str, EventBatch | dict[str, tuple[int, int]]]]] = {F: [], R: []}
    last: dict[str, tuple[int, int]] = {}
    published: dict[str, list[int]] = {"p": [], "q": []}
    shared = False
    for _ in range(rng.randint(5, 60)):
        if rng.random() < 0.25:
            shared = True
            ways[F].append(("signal", dict(last)))
            ways[R].append(("signal", dict(last)))
            continue
        publisher = rng.choice(("p", "q"))
        number = (published[publisher] or [0])[-1] + rng.randint(1, 3)
        published[publisher].append(number)
        last[publisher] = (1, number)
        ways[rng.choice((F, R)) if shared else F].append(("events", batch(number, publisher=publisher)))
    for way in ways.values():
        way.append(("signal", dict(last)))
    order, got = Order(F, R), dict[str, list[int]](p=[], q=[])
    while ways[F] or ways[R]:
        name = rng.choice([name for name, waiting in ways.items() if waiting])
        what = ways[name].pop(0)[1]
        released = order.came(name, what) if isinstance(what, EventBatch) else order.signalled(name, what)
        for each in released:
            for event in each.events:
                got[event.publisher].append(event.sequence)
    assert got == published
    assert len(order) == 0
