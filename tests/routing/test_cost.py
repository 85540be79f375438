"""Tables cost what they find, and say the same as tables that are compared entry by entry."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model import Filter
from holdfast.protocols.routing.covered import Outlet
from holdfast.protocols.routing.router import LOCAL, Router
from holdfast.protocols.routing.settling import Settling
from tests.filters.strategies import Choices, conjunction, filter_text
from tests.routing.plain import PlainRouter
from tests.routing.test_tables import TEXTS

SOURCES = (LOCAL, "left", "right", "third")


def drawn_filter(choices: Choices) -> Filter:
    match choices.below(5):
        case 0 | 1:
            return Filter(choices.of(TEXTS))
        case 2 | 3:
            return Filter(conjunction(choices, ("price", "symbol", "topic")))
        case _:
            return Filter(filter_text(choices))


def said_by(router: Router) -> list[Any]:
    """All that can be seen of a router, order included."""
    tables = (router.subscriptions, router.advertisements, router.expected)
    return [
        [[(source, list(entries)) for source, entries in table.by_source.items()] for table in tables],
        [[list(told) for changes in router.take(neighbour) for told in changes] for neighbour in router.neighbours],
        [
            [(list(outlet.wanted), list(outlet.told()), outlet.hidden) for outlet in outlets.values()]
            for outlets in (router.subscription_outlets, router.advertisement_outlets)
        ],
        router.take_changed(),
    ]


def play(source: bytes, advertised: bool, covering: bool) -> None:
    choices = Choices(source)
    router, plain = Router(SOURCES[1:], advertised, covering), PlainRouter(SOURCES[1:], advertised, covering)
    entries: list[tuple[str, str, str]] = []  # kind, source, entry
    for number in range(8 + choices.below(50)):
        kind = choices.of(("subscribe", "subscribe", "advertise", "advertise", "expect", "go", "go"))
        if kind != "go":
            near = choices.of(SOURCES[1:] if kind == "expect" else SOURCES)
            filter = drawn_filter(choices)
            entries.append((kind, near, f"e{number}"))
            for one in (router, plain):
                getattr(one, kind)(near, f"e{number}", filter)
        elif entries:
            kind, near, entry = entries.pop(choices.below(len(entries)))
            undone = {"subscribe": "unsubscribe", "advertise": "unadvertise", "expect": "forget_expected"}[kind]
            for one in (router, plain):
                getattr(one, undone)(near, entry)
        if choices.below(3) == 0:
            assert said_by(router) == said_by(plain)
            router.check_invariants()
    assert said_by(router) == said_by(plain)


@pytest.mark.parametrize("covering", [True, False])
@settings(max_examples=400)
@given(source=st.binary(min_size=200, max_size=3_000))
def test_a_router_says_what_one_does_that_compares_with_every_entry(covering: bool, source: bytes) -> None:
    play(source, True, covering)


@settings(max_examples=100)
@given(source=st.binary(min_size=200, max_size=2_000))
def test_so_it_does_where_nothing_is_advertised(source: bytes) -> None:
    play(source, False, True)


# ---------------------------------------------------------------------------------------------------------------- work
def compared(router: Router) -> int:
    return router.subscriptions.compared() + router.advertisements.compared() + router.expected.compared()


def of_topics(count: int) -> Router:
    """Topics that are advertised on the left, with a subscription to each on the right."""
    router = Router(["left", "right"])
    for number in range(count):
        router.advertise("left", f"a{number}", Filter(f"topic = 't{number}'"))
        router.subscribe("right", f"s{number}", Filter(f"topic = 't{number}' AND price > 100"))
    return router


@pytest.mark.parametrize("count", [100, 3_000])
def test_what_comes_and_goes_is_compared_with_what_it_concerns_however_much_there_is(count: int) -> None:
    router = of_topics(count)
    before = compared(router)
    router.subscribe("right", "new", Filter("topic = 't7' AND price > 50"))
    assert "new" in router.subscription_outlets["left"].wanted
    router.subscribe("right", "in vain", Filter("topic = 'u'"))
    router.advertise("left", "another", Filter("topic = 'u'"))
    assert "in vain" in router.subscription_outlets["left"].wanted
    router.unadvertise("left", "another")
    router.unadvertise("left", "a8")
    router.unsubscribe("right", "new")
    assert "in vain" not in router.subscription_outlets["left"].wanted
    assert "s8" not in router.subscription_outlets["left"].wanted
    assert compared(router) - before <= 12


def test_a_subscription_to_everything_is_compared_with_one_advertisement() -> None:
    router = of_topics(3_000)
    before = compared(router)
    router.subscribe("right", "all", Filter("price > 100"))
    assert "all" in router.subscription_outlets["left"].wanted
    assert compared(router) - before == 1


def test_who_publishes_what_others_publish_already_pulls_nothing_anew() -> None:
    """Publishers of one topic come and go; thousands want it."""
    router = Router(["left", "right"])
    router.advertise("left", "first", Filter("topic = 't'"))
    for number in range(2_000):
        router.subscribe("right", f"s{number}", Filter(f"topic = 't' AND price > {number}"))
    before = compared(router)
    for number in range(50):
        router.advertise("left", f"a{number}", Filter("topic = 't'"))
        if number:
            router.unadvertise("left", f"a{number - 1}")
    assert compared(router) - before <= 150
    assert len(router.subscription_outlets["left"].wanted) == 2_000


def test_what_hid_thousands_of_others_is_taken_back_without_comparing_them_with_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outlet = Outlet(covering=True)
    outlet.add("everything", Filter(""))
    for number in range(1_000):
        outlet.add(f"s{number}", Filter(f"topic = 't{number % 500}' AND price > {number}"))
    outlet.take()
    covers, counted = Filter.covers, Counter[str]()

    def counting(self: Filter, other: Filter) -> bool:
        counted["compared"] += 1
        return covers(self, other)

    monkeypatch.setattr(Filter, "covers", counting)
    outlet.remove("everything")
    monkeypatch.undo()
    assert (len(outlet), outlet.hidden) == (500, 500)
    assert counted["compared"] <= 3_000
    outlet.check_invariants()


def test_ever_broader_ones_that_were_hidden_are_handed_on_as_a_whole() -> None:
    """Each covers all before it; the last, all of them, in the order in which they came."""
    outlet = Outlet(covering=True)
    outlet.add("everything", Filter(""))
    for number in range(500):
        outlet.add(f"s{number}", Filter(f"price > {-number}"))
    outlet.take()
    outlet.remove("everything")
    assert list(outlet.take().told) == ["s499"]
    outlet.remove("s499")
    assert list(outlet.take().told) == ["s498"]
    outlet.check_invariants()


def test_questions_that_wait_are_answered_in_the_order_in_which_they_were_asked() -> None:
    settling = Settling()
    ours = []
    for ticket in (5, 6, 7):
        settling.ask("left", ticket)
        ours.append(settling.tell("right"))
        settling.tell("third")
        assert settling.finish() == []
    settling.ask("left", 6)  # again: it waits as long as the last
    assert settling.finish() == []
    assert [settling.answered("right", ticket) for ticket in ours] == [[], [], []]
    assert settling.lost("third") == [("left", 5), ("left", 7), ("left", 6)]
    assert len(settling) == 0
