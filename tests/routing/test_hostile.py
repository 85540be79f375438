"""Whatever a neighbour says, its broker goes on: at worst the neighbour's own link is closed, and nobody else's side of
the tables is touched (D0-A3, D0-A4)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Disconnect
from holdfast.protocols.failure.messages import Alive
from holdfast.protocols.routing import words as limits
from holdfast.protocols.routing.messages import (
    ENTRY_BYTES_MAX,
    NUMBER_MAX,
    AcknowledgeEvents,
    Forward,
    Introduction,
    Routes,
    Settled,
)
from holdfast.protocols.routing.settings import Reliability
from holdfast.schemes.catalogue import MESSAGES
from holdfast.schemes.tree.bypass.database import COUNT_MAX
from holdfast.schemes.tree.bypass.messages import Detour, LinkState, LinkStates
from tests.routing.bench import NetworkBench
from tests.sessions.bench import batch

LEVELS = [level.value for level in Reliability]
BUFFERING = [level.value for level in Reliability if level.buffers]
DETOURING = [level.value for level in Reliability if level.detours]
NO_EVENTS = msgspec.Raw(b"\x93\x01\x02\x03")

Tables = dict[str, dict[str, str]]


def met(level: str) -> NetworkBench:
    bench = NetworkBench(level)
    bench.meet("left", "right")
    bench.say("right", Routes([("right.1.1", "topic = 't'")], [("right.1.2", "topic = 't'")], full=True))
    return bench


def tables(bench: NetworkBench) -> list[Tables]:
    router = bench.neighbours.router
    return [
        {source: {entry: str(filter) for entry, filter in entries.items()} for source, entries in table.items()}
        for table in (router.subscriptions.by_source, router.advertisements.by_source)
    ]


def detour(message: Message, **fields: object) -> Detour:
    kind, body = MESSAGES.encode(message)
    known = {"target": "middle", "sender": "left", "hops": 2, "kind": kind, "body": body}
    return Detour(**{**known, **fields})  # type: ignore[arg-type]


BREACHES: dict[str, Callable[[NetworkBench], Message]] = {
    "a second introduction": lambda bench: bench.introduction("left"),
    "no events": lambda bench: Forward(1, NO_EVENTS),
    "an empty list of events": lambda bench: Forward(2, msgspec.Raw(b"\x90")),
    "events from number 0 on": lambda bench: Forward(0, batch(1)),
    "events from a number below 0 on": lambda bench: Forward(-1, batch(1)),
    "events with numbers that can't be": lambda bench: Forward(NUMBER_MAX, batch(1, 2)),
    "an acknowledgement of what was never sent": lambda bench: AcknowledgeEvents(1),
    "a filter that is none": lambda bench: Routes([("left.1.1", "price > ")]),
    "a subscription that is none": lambda bench: Routes([], [("left.1.1", "((((")]),
    "an entry without an id": lambda bench: Routes([("", "")]),
    "an entry with too long an id": lambda bench: Routes([("left.1." + "1" * ENTRY_BYTES_MAX, "")]),
    "an entry of nobody": lambda bench: Routes([], [("nobody.1.1", "")]),
    "an entry of the other side": lambda bench: Routes([], [("right.1.2", "price > 1")]),
    "an entry of our own": lambda bench: Routes([("middle.1.1", "")]),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("what", BREACHES)
def test_a_breach_of_protocol_ends_the_link_that_it_came_by_and_changes_nothing_else(what: str, level: str) -> None:
    if (what, level) == ("events from number 0 on", "bypass+buffered"):
        pytest.skip("what came around a failure has no number there")
    bench = met(level)
    before = tables(bench)
    assert "protocol error" in bench.closed("left", BREACHES[what](bench))
    assert tables(bench) == before
    assert bench.is_linked("right")
    bench.meet("left")
    assert bench.is_linked("left"), "it may come again"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("message", [Forward(1, batch(1)), Routes(full=True)], ids=["events", "routes"])
def test_nothing_is_heard_before_an_introduction(message: Message, level: str) -> None:
    bench = met(level)
    bench.up("left")
    assert "behind an introduction" in bench.closed("left", message)


@pytest.mark.parametrize("level", DETOURING)
@pytest.mark.parametrize(
    "message", [LinkStates((LinkState("right", 5, 5),)), detour(Forward(0, batch(1)))], ids=["news", "detour"]
)
def test_nothing_of_links_and_detours_is_heard_before_an_introduction(message: Message, level: str) -> None:
    bench = met(level)
    bench.up("left")
    assert "behind an introduction" in bench.closed("left", message)


@pytest.mark.parametrize("level", BUFFERING)
def test_a_neighbour_that_stores_events_has_to_name_its_log(level: str) -> None:
    """D1-B4: what it sends again is told by that name and its numbers."""
    bench = NetworkBench(level)
    bench.up("left")
    assert "does not name its log" in bench.closed("left", bench.introduction("left", feed=""), Forward(1, batch(1)))


@pytest.mark.parametrize("level", BUFFERING)
def test_a_neighbour_can_not_have_stored_more_than_there_is(level: str) -> None:
    bench = NetworkBench(level)
    bench.up("left")
    assert "has stored 9" in bench.closed("left", bench.introduction("left", stored_feed="disk", stored=9))


@pytest.mark.parametrize("level", LEVELS)
def test_a_broker_of_another_network_is_sent_away_and_counts_as_up_for_nobody(level: str) -> None:
    """D1-A13: others would send detours by way of it."""
    bench = NetworkBench(level)
    bench.meet("right")
    bench.up("left")
    effects = bench.say("left", Introduction("another", "disk of left"), Routes(full=True))
    assert {effect.link for effect in effects if isinstance(effect, Disconnect)} == {bench.links["left"]}
    news = [state for message in bench.told(effects, "right") for state in getattr(message, "states", ())]
    assert not any("left" in state.up for state in news)
    assert not bench.is_linked("left")


@pytest.mark.parametrize("level", LEVELS)
def test_a_broker_that_the_map_does_not_join_with_this_one_is_sent_away(level: str) -> None:
    """Behind its introduction: it might have another map, of the same network."""
    bench = met(level)
    bench.up("stranger")
    effects = bench.say("stranger", bench.introduction("stranger"))
    assert [effect.link for effect in effects if isinstance(effect, Disconnect)] == [bench.links["stranger"]]


@pytest.mark.parametrize("level", LEVELS)
def test_a_neighbour_that_never_introduces_itself_is_told_and_forwarded_nothing(level: str) -> None:
    bench = met(level)
    bench.up("left")
    bench.say("left", Alive())
    effects = bench.say("right", Routes([], [("right.1.3", "price > 3")]), Forward(1, batch(1)))
    assert not [message for message in bench.told(effects, "left") if isinstance(message, Routes | Forward)]


def test_a_neighbour_can_not_tell_more_entries_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ENTRIES_MAX", 50)
    bench = met("periodic")
    for start in range(0, 100, 10):
        bench.say("left", Routes([], [(f"left.1.{n}", "") for n in range(start, start + 10)], full=True, last=False))
    assert "more than 50 entries" in bench.closed("left", Routes([], [("left.1.200", "")], full=True, last=False))
    assert tables(bench)[0]["left"] == {}, "what was told in part is forgotten with the link"


def test_tickets_that_nobody_answers_cost_little_each() -> None:
    """The right one answers nothing: everything that is asked waits for it, and is counted once."""
    bench = met("none")
    for number in range(300):
        bench.say("left", Routes([(f"left.1.{number}", f"price > {number}")], ticket=number + 1))
    settling = bench.neighbours.settling
    assert len(settling) == 300
    assert sum(len(waits) for waits in settling._waiting.values()) == 300
    bench.down("right")
    assert len(settling) == 0


@pytest.mark.parametrize("level", LEVELS)
def test_answers_to_tickets_that_were_never_given_are_ignored(level: str) -> None:
    bench = met(level)
    assert bench.say("left", Settled(7), Settled(0), Settled(-1)) == []


DETOUR_BREACHES = {
    "to its sender": detour(Forward(0, batch(1)), target="left"),
    "too many hops": detour(Forward(0, batch(1)), hops=5),
    "carries what may not travel so": detour(Alive()),
    "carries garbage": detour(Forward(0, batch(1)), body=b"\xc1"),
    "carries no events": detour(Forward(0, NO_EVENTS)),
    "carries a filter that is none": detour(Routes([("left.1.1", "((")])),
    "carries another side's entry": detour(Routes([("right.1.1", "")])),
    "news of links that are none": LinkStates((LinkState("left", 1, 1, ("left",)),)),
    "news with a number that can't be": LinkStates((LinkState("left", 1, COUNT_MAX),)),
    "news of a life that can't be": LinkStates((LinkState("left", COUNT_MAX, 1),)),
}


@pytest.mark.parametrize("level", DETOURING)
@pytest.mark.parametrize("what", DETOUR_BREACHES)
def test_a_breach_in_a_detour_or_in_news_ends_the_link_that_it_came_by(what: str, level: str) -> None:
    """D1-B5: also if it is about others, so that it is not told on."""
    bench = met(level)
    before = tables(bench)
    assert "protocol error" in bench.closed("right", DETOUR_BREACHES[what])
    assert tables(bench) == before
    assert bench.is_linked("left")


@pytest.mark.parametrize("level", DETOURING)
def test_a_number_made_up_for_this_broker_does_not_make_it_say_what_others_refuse(level: str) -> None:
    bench = met(level)
    effects = bench.say("left", LinkStates((LinkState("middle", 7, COUNT_MAX - 1),)))
    said = [state for message in bench.told(effects, "right") for state in getattr(message, "states", ())]
    assert [state.version for state in said if state.origin == "middle"] == [(8, 1)]


# ------------------------------------------------------------------------------------------------------------ anything
NUMBERS = st.sampled_from([-(2**63), -1, 0, 1, 2, 3, NUMBER_MAX, 2**63, 2**64 - 1])
NAMES = st.sampled_from(["left", "right", "middle", "nobody", ""])
ENTRIES = st.lists(
    st.tuples(st.builds("{}.1.{}".format, NAMES, NUMBERS), st.sampled_from(["", "topic = 't'", "price > 3", "(("])),
    max_size=3,
)
IDS = st.lists(st.builds("{}.1.{}".format, NAMES, NUMBERS), max_size=2)
EVENTS = st.sampled_from([batch(1), batch(1, 2, topic="t"), msgspec.Raw(b"\x90"), NO_EVENTS])
ROUTES = st.builds(Routes, ENTRIES, ENTRIES, IDS, IDS, st.booleans(), st.booleans(), st.booleans(), NUMBERS)
FORWARDS = st.builds(Forward, NUMBERS, EVENTS)
COUNTS = st.sampled_from([0, 1, 2, COUNT_MAX - 1, COUNT_MAX])
STATES = st.builds(LinkState, NAMES, COUNTS, COUNTS, st.lists(NAMES, max_size=2).map(tuple), st.booleans())


def _detours(carried: Message, target: str, sender: str, hops: int, is_user: bool) -> Detour:
    return detour(carried, target=target, sender=sender, hops=hops, is_user=is_user)


SAID = st.one_of(
    st.builds(Introduction, st.sampled_from(["", "other"]), NAMES, NAMES, NUMBERS),
    ROUTES,
    FORWARDS,
    st.builds(AcknowledgeEvents, NUMBERS),
    st.builds(Settled, NUMBERS),
    st.builds(LinkStates, st.lists(STATES, max_size=3).map(tuple)),
    st.builds(_detours, st.one_of(ROUTES, FORWARDS), NAMES, NAMES, st.integers(1, 4), st.booleans()),
)


@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), SAID), max_size=8))
def test_anything_may_be_said_and_the_broker_goes_on(level: str, said: list[tuple[bool, Message]]) -> None:
    bench = met(level)
    for introduces, message in said:
        gone = [one for one in bench.say("left", message) if isinstance(one, Disconnect)]
        assert all(one.link == bench.links["left"] for one in gone)
        if gone:
            bench.down("left")
            bench.up("left")
            if introduces:
                bench.say("left", bench.introduction("left"))
    assert bench.is_linked("right")
    bench.advance(30_000_000_000)


def test_a_neighbour_whose_introduction_is_refused_is_not_said_to_be_up() -> None:
    """It comes again with every dial: all of the network would hear of a link that comes and goes."""
    bench = NetworkBench("bypass+buffered")
    bench.meet("right")
    bench.up("left")
    effects = bench.say("left", bench.introduction("left", feed=""))
    assert [effect.link for effect in effects if isinstance(effect, Disconnect)] == [bench.links["left"]]
    assert not [message for message in bench.told(effects, "right") if isinstance(message, LinkStates)]
