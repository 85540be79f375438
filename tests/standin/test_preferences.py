"""In which order subscriptions come to a stand-in: by the table, by what waits first, or by how much waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import pytest
from msgspec.structs import replace

from experiments.standin.protocols import CASES, Case
from experiments.standin.runs import play as play_world
from experiments.standin.schedules import AFTERWARDS, ALWAYS, FAILS_MS, FAULTY, PENDING, REPLACED_MS, STAND_IN, star
from experiments.standin.watched import Watched, circular, doubled
from holdfast.errors import ProtocolError
from holdfast.kernel.outbox import Outbox, RecordingOutbox
from holdfast.model import Filter
from holdfast.protocols.routing.network_map import StandInMode, StandInProtocol
from holdfast.protocols.routing.settings import StandInSettings, SubscriptionOrder
from holdfast.protocols.routing.targets import Targets
from holdfast.schemes.tree.kit import NetworkKit
from holdfast.schemes.tree.standin.messages import StandInPreferred, StandInSubscribed
from holdfast.schemes.tree.standin.preferences import PREFERRED_BYTES, Preferences, check, that_fit
from holdfast.schemes.tree.standin.teaching import Teaching
from holdfast.schemes.tree.standin.wait_ready import WaitReady
from holdfast.sim.scenario import Action, Cut, Fault, Publish, Reset, ScenarioEvent
from tests.standin.test_wait_ready import events
from tests.tiers import blocks

TABLE, PENDING_FIRST, GENERAL = SubscriptionOrder
BASIC, SYNCH, INCREM = (Case(protocol, StandInMode.FAILOVER) for protocol in StandInProtocol)

# Of a neighbour's five clients, as they subscribed. Ten events wait, whose `n` are 2 to 11.
NARROW, LATE, NONE, EARLY, ALL = "n > 4 AND n < 8", "n > 8 AND n < 11", "n = 99", "n < 4", "topic = 't'"
WANTED: Final = {"s1-n2": NARROW, "s2-n2": LATE, "s3-n2": NONE, "s4-n2": EARLY, "s5-n2": ALL}
PROMISED: Final = {
    TABLE: [NARROW, LATE, NONE, EARLY, ALL],
    PENDING_FIRST: [
        ALL,
        EARLY,
        NARROW,
        LATE,
        NONE,
    ],  # from 2, 2, 5, 9 on; of two, the one for which more wait
    GENERAL: [ALL, NARROW, EARLY, LATE, NONE],  # 10, 3, 2, 2, none; of two, the one for which something waits longer
}


def run(
    order: SubscriptionOrder,
    case: Case = INCREM,
    wanted: Mapping[str, str] = WANTED,
    *,
    faults: Sequence[Fault] = (),
    moments: Sequence[int] = (3_000, *PENDING, *AFTERWARDS),
    covering: bool = False,
    slow_ms: Mapping[str, int] | None = None,
    more: Sequence[Action] = (),
) -> Watched:
    scenario = star(case, 3, wanted, moments, slow_ms=slow_ms, more=more, homes={"q": "n3"})
    settings = {**scenario.settings, "order": order.value, "covering": covering, "patience_ms": 5_000}
    watched = Watched()
    checkers = [*ALWAYS, f"weak-complete:{FAULTY}"]
    watched.play(replace(scenario, settings=settings, faults=[*scenario.faults, *faults], checkers=checkers))
    assert watched.outcome is not None
    assert (watched.outcome.broken, watched.outcome.violations) == ("", [])
    assert len(watched.happened("stand-in-done")) == 1
    return watched


def told(watched: Watched, source: str, target: str) -> list[str]:
    """The filters of the subscriptions that one told the other in the conversation, as they came."""
    said = [said for said in watched.conversation(StandInSubscribed) if (said.source, said.target) == (source, target)]
    return [str(Filter(text)) for each in said for _, text in each.message.subscriptions]  # type: ignore[attr-defined]


def as_told(filters: Sequence[str]) -> list[str]:
    return [str(Filter(text)) for text in filters]


# ------------------------------------------------------------------------------------------------------- the sequence
@pytest.mark.parametrize("order", SubscriptionOrder)
def test_subscriptions_come_to_the_stand_in_in_the_order_that_is_asked_for(order: SubscriptionOrder) -> None:
    """D0-F2: and go on to where the events wait in the same."""
    watched = run(order)
    assert told(watched, "n2", STAND_IN) == as_told(PROMISED[order])
    assert told(watched, STAND_IN, "n1") == as_told(PROMISED[order])
    preferred = watched.conversation(StandInPreferred)
    pairs = [(said.source, said.target) for said in preferred]
    assert sorted(pairs) == ([] if order is TABLE else [("n1", STAND_IN), (STAND_IN, "n2"), (STAND_IN, "n3")])


def test_events_leave_in_their_order_where_what_everything_waits_for_comes_first() -> None:
    """D0-F2: the neighbour's ready queues are served in turn, those that came first at first. One neighbour is slow, so
    that the stand-in is not done yet."""
    numbers = {order: run(order, slow_ms={"n3": 200}).delivered("s5-n2") for order in SubscriptionOrder}
    assert [sorted(each) for each in numbers.values()] == [list(range(1, 14))] * 3
    swapped = {order: sum(a > b for a, b in combinations(each, 2)) for order, each in numbers.items()}
    assert swapped == {TABLE: 13, PENDING_FIRST: 7, GENERAL: 8}  # as ADR 22 has it


@pytest.mark.parametrize("covering", [False, True])
def test_the_same_comes_in_every_order(covering: bool) -> None:
    """D0-C8: the same entries in all tables, the same events at each subscriber; with links that break, too."""
    wanted = {**WANTED, "t1-n3": LATE, "t2-n3": "topic = 't'", "t3-n3": EARLY}
    faults = [Reset(at_ms=REPLACED_MS + 4, source=STAND_IN, target=name) for name in ("n1", "n2")]
    came = {}
    for order in SubscriptionOrder:
        for broken in ((), faults):
            watched = run(order, wanted=wanted, covering=covering, faults=broken)
            tables = watched.tables()
            assert doubled(tables) == circular(tables) == []
            entries = {node: sorted(table) for node, table in tables.items() if node != "f"}
            got = {name: sorted(watched.delivered(name)) for name in wanted}
            assert got["s5-n2"] == got["t2-n3"] == list(range(1, 14))
            came[order, bool(broken)] = (entries, got)
    assert all(each == came[TABLE, False] for each in came.values())


@pytest.mark.parametrize("seeds", blocks(20, size=5))
@pytest.mark.parametrize("case", [case for case in CASES if case.protocol is StandInProtocol.INCREM], ids=str)
@pytest.mark.parametrize("order", [PENDING_FIRST, GENERAL])
def test_what_table_1_promises_holds_in_every_order(order: SubscriptionOrder, case: Case, seeds: range) -> None:
    """D0-C8, D0-C11, D0-C14: in the worlds that are drawn for it."""
    named: Counter[str] = Counter()

    class Ordered(Teaching):
        def __init__(self, settings: StandInSettings, *parts: Any) -> None:
            super().__init__(replace(settings, order=order), *parts)

        def on_stand_in_preferred(self, peer: str, message: StandInPreferred, out: Outbox) -> None:
            super().on_stand_in_preferred(peer, message, out)
            named[peer] += 1

    results = [play_world(case, seed, NetworkKit(teaching=Ordered)) for seed in seeds]
    assert [result.problem for result in results if result.problem] == []
    assert named.total() > 0 or not case.is_permanent  # where work is shared, hardly anything waits when it begins


def test_a_neighbour_that_comes_later_hears_of_the_order_before_it_hears_what_is_advertised() -> None:
    """What the stand-in has heard it says to each, on whatever link."""
    cut = Cut(at_ms=FAILS_MS + 700, for_ms=800, source=STAND_IN, target="n3")
    watched = run(PENDING_FIRST, wanted={name.replace("n2", "n3"): text for name, text in WANTED.items()}, faults=[cut])
    assert told(watched, "n3", STAND_IN) == as_told(PROMISED[PENDING_FIRST])
    (named,) = [said.t for said in watched.conversation(StandInPreferred) if said.target == STAND_IN]
    (heard,) = [said.t for said in watched.conversation(StandInPreferred) if said.target == "n3"]
    assert heard - named > 200 * 1_000_000


def test_what_is_known_already_goes_in_that_order_too() -> None:
    """D0-B3.2, D0-F2: a neighbour that advertises the same has pulled it, before the one spoke where events wait."""
    more = [Publish(at_ms=2_500, client="q", events=[ScenarioEvent(topic="u", attributes={"n": 0})])]
    wanted = {name: text.replace(ALL, "n > 0") for name, text in WANTED.items()}
    watched = run(PENDING_FIRST, wanted=wanted, slow_ms={"n1": 100}, more=more)
    promised = [text.replace(ALL, "n > 0") for text in PROMISED[PENDING_FIRST]]
    assert told(watched, "n2", STAND_IN) != as_told(promised)
    assert told(watched, STAND_IN, "n1") == as_told(promised)


# ---------------------------------------------------------------------------------------------------- it costs nothing
@pytest.mark.parametrize("order", SubscriptionOrder)
@pytest.mark.parametrize("case", [BASIC, SYNCH], ids=str)
def test_nothing_is_said_of_it_where_no_event_waits_for_a_subscription(case: Case, order: SubscriptionOrder) -> None:
    """D0-C17"""
    watched = run(order, case)
    assert watched.conversation(StandInPreferred) == []
    assert told(watched, "n2", STAND_IN) == as_told(PROMISED[TABLE])


def test_nothing_is_said_of_it_where_nothing_waits_and_nothing_of_it_is_left() -> None:
    """D0-C17"""
    watched = run(GENERAL, moments=(3_000, *AFTERWARDS))
    assert watched.conversation(StandInPreferred) == []
    watched = run(GENERAL)
    assert watched.conversation(StandInPreferred) != []
    for broker in ("n1", "n2", "n3", STAND_IN):
        assert (watched.part(broker, "learning")._preferred, watched.part(broker, "teaching")._pupil) == ({}, None)
    assert all(said.t < watched.happened("stand-in-done")[0].t for said in watched.conversation(StandInPreferred))


# ------------------------------------------------------------------------------------------------- what is wanted first
def queue_with(*numbers: int) -> WaitReady:
    targets = Targets()
    for entry, text in {"narrow": NARROW, "late": LATE, "none": NONE, "early": EARLY, "all": ALL}.items():
        targets.add(STAND_IN, entry, Filter(text.replace("topic = 't'", "")))
    queue = WaitReady(targets, STAND_IN)
    queue.put(events(*numbers))
    return queue


def test_only_subscriptions_are_named_for_which_something_waits() -> None:
    """D0-F2: an event that may leave already needs no other one."""
    queue = queue_with(9, 10, 5, 1)
    assert queue.preferred(TABLE) == []
    assert queue.preferred(PENDING_FIRST) == ["all", "late", "narrow", "early"]
    assert queue.preferred(GENERAL) == ["all", "late", "narrow", "early"]
    queue.arrived(["late"])
    assert queue.preferred(PENDING_FIRST) == ["all", "narrow", "early"]
    queue.arrived(["all"])
    assert queue.preferred(PENDING_FIRST) == []


def test_of_several_who_want_a_subscription_the_one_counts_that_wants_it_soonest() -> None:
    preferences = Preferences()
    preferences.hear(["c", "b", "unknown"], "abcd".__contains__)
    preferences.hear(["b", "a"], "abcd".__contains__)
    assert list(preferences.in_order(dict.fromkeys("dabc"))) == ["b", "c", "a", "d"]
    assert preferences._places.keys() == set("abc"), "nobody can fill it with what is not in the tables"
    assert list(Preferences().in_order(dict.fromkeys("dabc"))) == list("dabc")


# ------------------------------------------------------------------------------------------------- what may not be said
HOSTILE: Final = {
    "too many": [f"b1.7.{number}" for number in range(PREFERRED_BYTES // 12)],
    "twice": ["b1.7.1", "b1.7.2", "b1.7.1"],
    "none": [],
    "an empty one": ["b1.7.1", ""],
    "a long one": ["b" * 513],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=HOSTILE)
def test_what_no_neighbour_says_ends_the_link(entries: list[str]) -> None:
    watched = run(GENERAL)
    said = StandInPreferred(7, entries)
    for broker, peer in (("n2", STAND_IN), (STAND_IN, "n1")):
        with pytest.raises(ProtocolError, match="in StandInPreferred"):
            watched.part(broker, "teaching").on_stand_in_preferred(peer, said, RecordingOutbox())


def test_what_finds_no_room_is_not_named() -> None:
    """The first ones are; and what is named is never refused."""
    many = [f"b1.7.{number}" for number in range(PREFERRED_BYTES // 8)]
    fitting = that_fit(many)
    assert fitting == many[: len(fitting)]
    assert 3_000 < len(fitting) < len(many)
    check(StandInPreferred(7, fitting))
    with pytest.raises(ProtocolError):
        check(StandInPreferred(7, many[: len(fitting) + 1]))
    assert that_fit(["a", "b"]) == ["a", "b"]
