"""A client that has one address hears once that its broker was not in the network for a while; others hear nothing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from holdfast.schemes.tree.network_checker import Network
from holdfast.sim.scenario import Client, Cut, Fault, Kill, Operate, Pause, Reset, Subscribe
from holdfast.trace import schema
from tests.standin.star import CHECKERS, NEAR, F, Played, R, hand_back, play, relieve, replace
from tests.tiers import blocks

ALL = (*CHECKERS, "network", "liveness")
GAP = ("apart", None)
FORGOTTEN = ("forgotten", None)


def at_f(
    operations: Sequence[Operate],
    faults: Sequence[Fault],
    light: bool = False,
    level: str = "buffered",
    every_ms: int = 50,
    until_ms: int = 20_000,
) -> Played:
    """With a client that knows one broker, the one in the middle."""
    wanted = Subscribe(at_ms=500, client="c", name="c", filter="topic = 't'")
    client = Client(id="c", brokers=(F,), light=light)
    return play(
        operations,
        faults,
        level=level,
        more=[wanted],
        clients=[client],
        checkers=checked_at(level),
        every_ms=every_ms,
        until_ms=until_ms,
    )


def checked_at(level: str) -> tuple[str, ...]:
    """What is stored on the way is lost to nobody but those who are told so."""
    return (*ALL, "no-loss") if level == "buffered" else ALL


def told(played: Played, subscriber: str = "c") -> list[tuple[str, int | None]]:
    return [
        (row.reason, row.count)
        for row in played.rows
        if isinstance(row, schema.Missed) and row.subscriber == subscriber
    ]


def gap(played: Played) -> tuple[list[int], list[int]]:
    """What did not come, and all between the first and the last of it."""
    missing = played.missing("c")
    return missing, list(range(missing[0], missing[-1] + 1)) if missing else []


# The broker fails, another one has its place, and it has it back before its client comes again.
DEAD: list[Fault] = [Kill(at_ms=4_000, for_ms=4_000, host=F), Pause(at_ms=3_900, for_ms=8_000, host="c")]
CHANGES = [replace(4_500), hand_back(9_000)]


@pytest.mark.parametrize("level", ["none", "buffered"])
@pytest.mark.parametrize("light", [False, True])
def test_a_broker_that_has_its_place_back_tells_its_clients_of_one_gap(light: bool, level: str) -> None:
    played = at_f(CHANGES, DEAD, light, level)
    assert played.wrong == []
    assert told(played) == [GAP]
    missing, between = gap(played)
    assert missing == between, "what came before and what came after is there"
    assert 80 < len(missing) < 120, "an event each 50 ms, from 4.5 s to 9 s, and what was under way"
    assert told(played, "s2") == told(played, "s3") == []


@pytest.mark.parametrize("light", [False, True])
def test_it_tells_them_though_it_never_heard_that_it_was_replaced(light: bool) -> None:
    """It is handed back while it is down, and its client comes before it hears of that."""
    played = at_f([replace(4_500), hand_back(6_800)], [Kill(at_ms=4_000, for_ms=3_000, host=F)], light)
    assert played.wrong == []
    assert told(played) == [GAP]


@pytest.mark.parametrize("light", [False, True])
def test_it_tells_those_who_came_to_it_before_it_heard_that_it_was_replaced_and_is_back(light: bool) -> None:
    faults: list[Fault] = [Kill(at_ms=4_000, for_ms=2_000, host=F)]
    faults += [Cut(at_ms=4_000, for_ms=8_000, source=F, target=other, both=True) for other in (*NEAR, R)]
    played = at_f([replace(4_500), hand_back(7_000)], faults, light, "none")
    assert played.wrong == []
    resumed = [row for row in played.rows if isinstance(row, schema.Hop) and row.source == F and row.target == "c"]
    assert any(6_000 < row.t / 1_000_000 < 11_500 for row in resumed), "it came, and went on with its session"
    assert told(played) == [GAP]


@pytest.mark.parametrize("light", [False, True])
def test_a_broker_that_stood_still_while_it_was_replaced_tells_them(light: bool) -> None:
    played = at_f(CHANGES, [Pause(at_ms=4_000, for_ms=4_000, host=F), *DEAD[1:]], light)
    assert played.wrong == []
    assert told(played) == [GAP]


def checked(played: Played, *, without: type[schema.Row]) -> list[str]:
    """What the checker `network` says of a run, without some of its rows."""
    checker = Network()
    checker.begin(played.header)
    for row in played.rows:
        if not isinstance(row, without):
            checker.see(row)
    checker.finish()
    return [str(violation) for violation in checker.violations]


def test_the_checker_sees_that_nobody_was_told() -> None:
    played = at_f(CHANGES, DEAD)
    assert checked(played, without=schema.Refused) == []
    (wrong,) = checked(played, without=schema.Missed)
    assert wrong.endswith("when f was not in the network, and nobody told the owner of c/1/1 that it missed something")


@pytest.mark.parametrize("first", [True, False])
def test_that_its_broker_was_away_excuses_nothing_of_long_before_and_long_after(first: bool) -> None:
    late = [replace(16_500), hand_back(21_000)]
    away: list[Fault] = [Kill(at_ms=16_000, for_ms=4_000, host=F), Pause(at_ms=15_900, for_ms=8_000, host="c")]
    played = at_f(late, away, every_ms=250, until_ms=50_000)
    assert (played.wrong, told(played)) == ([], [GAP])
    got = [row for row in played.rows if isinstance(row, schema.Delivered) and row.subscriber == "c"]
    lost = got[0 if first else -1]
    kept = [row for row in played.rows if row is not lost]
    (wrong,) = checked(Played(kept, [], played.header), without=schema.Refused)
    assert wrong.split(": ")[1].startswith(f"{lost.event} was accepted at n1")


def test_a_broker_that_is_relieved_tells_them() -> None:
    played = at_f([relieve(4_500), hand_back(9_000)], DEAD[1:])
    assert played.wrong == []
    assert told(played) == [GAP]


def test_each_time_is_a_gap_of_its_own() -> None:
    faults: list[Fault] = [Pause(at_ms=3_900, for_ms=3_000, host="c"), Pause(at_ms=8_900, for_ms=3_000, host="c")]
    faults += [Kill(at_ms=4_000, for_ms=1_000, host=F), Kill(at_ms=9_000, for_ms=1_000, host=F)]
    played = at_f([replace(4_300), hand_back(5_500), replace(9_300), hand_back(10_500)], faults)
    assert played.wrong == []
    assert told(played) == [GAP, GAP]


def test_two_times_while_a_client_is_away_are_one_gap() -> None:
    faults: list[Fault] = [Pause(at_ms=3_900, for_ms=9_000, host="c")]
    faults += [Kill(at_ms=4_000, for_ms=1_000, host=F), Kill(at_ms=9_000, for_ms=1_000, host=F)]
    played = at_f([replace(4_300), hand_back(5_500), replace(9_300), hand_back(10_500)], faults)
    assert played.wrong == []
    assert told(played) == [GAP]


@pytest.mark.parametrize("light", [False, True])
def test_a_broker_that_was_only_started_again_tells_of_no_gap(light: bool) -> None:
    played = at_f([], DEAD[:1], light)
    assert played.wrong == []
    assert told(played) == []
    assert played.missing("c") == []


@pytest.mark.parametrize("light", [False, True])
def test_a_client_that_is_sent_elsewhere_hears_that_it_is_forgotten_and_no_more(light: bool) -> None:
    played = at_f([replace(4_500), hand_back(13_500)], DEAD[:1], light, "none")
    assert played.wrong == []
    assert set(told(played)) == {FORGOTTEN}  # once more where the stand-in goes again


@pytest.mark.parametrize("light", [False, True])
def test_a_client_that_comes_first_when_the_broker_is_back_hears_of_no_gap(light: bool) -> None:
    wanted = Subscribe(at_ms=13_000, client="c", name="c", filter="topic = 't'")
    again = Reset(at_ms=14_000, for_ms=0, source=F, target="c")
    client = Client(id="c", brokers=(F,), light=light)
    played = play(CHANGES, [*DEAD, again], more=[wanted], clients=[client], checkers=ALL)
    assert played.wrong == []
    opened = [row for row in played.rows if isinstance(row, schema.Hop) and row.what == "SessionOpened"]
    assert [row.t > 14_000_000_000 for row in opened if row.target == "c"][-2:] == [False, True]
    assert told(played) == []


def drawn(seed: int) -> tuple[Played, bool]:
    """A broker fails in some way, and has its place back or not, while its client is there or not; whether it had."""
    rng = Random(seed)
    fails, lasts = rng.randint(4_000, 6_000), rng.randint(1_000, 6_000)
    taken = fails + rng.randint(300, 900)
    back = max(taken + 300, fails + lasts + rng.randint(-1_000, 3_000))
    failure: Fault = rng.choice([Kill, Pause])(at_ms=fails, for_ms=lasts, host=F)
    replaced = rng.random() < 0.8
    changes = [relieve(taken) if rng.random() < 0.2 else replace(taken), hand_back(back)] if replaced else []
    asleep = Pause(at_ms=rng.randint(3_000, fails), for_ms=rng.randint(500, 9_000), host="c")
    wanted = Subscribe(at_ms=500, client="c", name="c", filter="topic = 't'")
    client = Client(id="c", brokers=(F,), light=rng.random() < 0.3, pause_ms_max=rng.choice((200, 5_000)))
    checkers = ["at-most-once-at-home" if name == "at-most-once" else name for name in ALL]  # it may be sent elsewhere
    played = play(
        changes,
        [failure, asleep],
        level=rng.choice(("none", "buffered")),
        more=[wanted],
        clients=[client],
        checkers=checkers,
        every_ms=200,
        seed=seed,
    )
    return played, replaced


@pytest.mark.parametrize("seeds", blocks(80, size=20))
def test_nobody_lacks_anything_untold_whenever_a_broker_fails_and_comes_back(seeds: range) -> None:
    gaps = 0
    for seed in seeds:
        played, replaced = drawn(seed)
        assert played.wrong == [], seed
        gaps += GAP in told(played)
        assert replaced or told(played) == [], seed
    assert gaps >= len(seeds) // 5
