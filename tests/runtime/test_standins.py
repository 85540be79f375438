"""Seven processes under load, of which one is killed and replaced by `holdfast standin`: what each level and each
protocol promises is held (D0-C6 to C8)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from random import Random
from signal import SIGCONT, SIGSTOP

import pytest

import holdfast
from experiments.broker_network import BrokerNetwork
from experiments.processes import LOOK_EVERY_S
from holdfast.testing.fault_proxy import FaultProxy
from tests.runtime.network_load import NetworkLoad
from tests.runtime.standin_load import (
    BASIC,
    BUFFERED,
    EVENTS,
    HOMES,
    INCREM,
    INNER,
    NONE,
    ORDERED,
    SHARED,
    SPARE,
    SYNCH,
    Outcome,
    Replacements,
    relieve,
    seven,
    standin,
)

CAMPAIGN = 36  # replacements


def replaced(folder: Path, level: str, plan: Sequence[tuple[str, str]]) -> list[Outcome]:
    """Brokers that are replaced one after the other: which, and by which protocol."""

    async def scene(network: BrokerNetwork) -> list[Outcome]:
        await network.begin()
        await network.start_beside(SPARE)
        async with NetworkLoad(network, HOMES, HOMES) as load:
            replacements = Replacements(network, load)
            for faulty, protocol in plan:
                await replacements.replace(faulty, protocol)
            return replacements.outcomes

    with seven(folder, level) as network:
        return asyncio.run(asyncio.wait_for(scene(network), 60 + 30 * len(plan)))


def wrong(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.problems]


def test_a_broker_that_is_killed_is_replaced_and_what_was_published_meanwhile_arrives(tmp_path: Path) -> None:
    """D0-C7. Nothing comes twice, or out of order; then its place is handed back, by a stand-in that may come again."""
    outcomes = replaced(tmp_path, NONE, [("b3", SYNCH)])
    assert wrong(outcomes) == []


@pytest.mark.full
def test_where_events_are_stored_a_replacement_loses_doubles_and_disorders_nothing(tmp_path: Path) -> None:
    outcomes = replaced(tmp_path, BUFFERED, [("b3", SYNCH), ("b2", BASIC)])
    assert wrong(outcomes) == []


@pytest.mark.full
def test_basic_keeps_the_order_and_increm_loses_nothing(tmp_path: Path) -> None:
    """D0-C6, D0-C8."""
    outcomes = replaced(tmp_path, NONE, [("b3", BASIC), ("b4", INCREM)])
    assert wrong(outcomes) == []


def relieved(folder: Path, level: str, plan: Sequence[tuple[str, str, str]]) -> list[list[str]]:
    """Slow brokers whose work is shared, one after the other: which, by which protocol and mode; what went wrong."""

    async def scene(network: BrokerNetwork) -> list[list[str]]:
        await network.begin()
        await network.start_beside(SPARE)
        async with NetworkLoad(network, HOMES, HOMES) as load:
            await load.more(EVENTS)
            return [await relieve(network, load, *how) for how in plan]

    with seven(folder, level) as network:
        return asyncio.run(asyncio.wait_for(scene(network), 60 + 30 * len(plan)))


@pytest.mark.full
def test_a_slow_broker_is_relieved_and_nothing_is_lost_or_doubled_or_with_ro_out_of_order(tmp_path: Path) -> None:
    """D0-C10, D0-C13."""
    assert relieved(tmp_path, NONE, [("b3", SYNCH, SHARED), ("b3", SYNCH, ORDERED)]) == [[], []]


@pytest.mark.full
def test_what_only_the_faulty_broker_had_stored_comes_when_it_has_its_place_back(tmp_path: Path) -> None:
    """b3 takes in what b4 can't get, since the link between them is cut; and is killed with it."""

    async def scene(network: BrokerNetwork) -> None:
        async with network.proxy("b3", "b4") as proxy:
            network.lead_through(proxy, "b3", "b4")
            await network.begin()
            await network.start_beside(SPARE)
            async with NetworkLoad(network, ("b1",), ("b5",)) as load:
                await load.more(EVENTS)
                proxy.refuse = True
                proxy.reset()
                await load.more(EVENTS)
                await network.until("b3", lambda measures: measures["feeds_events"] >= EVENTS)
                load.stop()
                await network.until("b2", lambda measures: not measures["feeds_events"])
                await network.kill("b3")
                load.go_on()
                network.lead_directly("b3")
                await standin(network, "replace", "b3", "--by", SPARE)
                await load.more(EVENTS)
                await load.pause()
                [subscriber] = load.subscribers
                before = list(subscriber.got["b1"])
                assert len(before) < load.published["b1"]
                await network.start_beside("b3")
                await standin(network, "hand-back", "b3")
                await load.until_complete()
                assert subscriber.got["b1"][: len(before)] == before == sorted(before)
                assert sorted(subscriber.got["b1"]) == list(range(1, load.published["b1"] + 1))

    with seven(tmp_path, BUFFERED) as network:
        asyncio.run(asyncio.wait_for(scene(network), 120))


async def _with_several_addresses(network: BrokerNetwork, level: str) -> None:
    """b5, at an end, is killed: clients that were given the spare's address besides go on there."""
    await network.begin()
    await network.start_beside(SPARE)
    both = f"holdfast://{network.addresses['b5']},{network.addresses[SPARE]}"
    got: list[int] = []
    async with AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(holdfast.connect(network.url("b1")))
        moving = await stack.enter_async_context(holdfast.connect(both))
        events = aiter(await stack.enter_async_context(moving.subscribe("topic = 'load'")))
        away = await stack.enter_async_context(holdfast.connect(network.url("b7")))
        seen = aiter(await stack.enter_async_context(away.subscribe("topic = 'reply'")))
        await publisher.publish({"n": 1}, topic="load")
        got.append(int((await anext(events)).attributes["n"]))
        await moving.publish({"n": 1}, topic="reply")
        assert (await anext(seen)).attributes["n"] == 1
        await network.kill("b5")
        replies = asyncio.ensure_future(moving.publish({"n": 2}, topic="reply"))  # waits for a broker
        await standin(network, "replace", "b5", "--by", SPARE)
        await replies
        assert (await anext(seen)).attributes["n"] == 2
        number = 1
        while got[-1] == 1:  # it subscribes there anew, and gets what is published when that has got around
            number += 1
            await publisher.publish({"n": number}, topic="load")
            with suppress(TimeoutError):
                got.append(int((await asyncio.wait_for(anext(events), 0.2)).attributes["n"]))
        for more in range(number + 1, number + 11):
            await publisher.publish({"n": more}, topic="load")
        while got[-1] < number + 10:
            got.append(int((await anext(events)).attributes["n"]))
        assert got[1:] == list(range(got[1], number + 11)), "from the first one on, all, once, in order"


@pytest.mark.full
@pytest.mark.parametrize("level", [NONE, BUFFERED])
def test_clients_with_the_spare_s_address_go_on_there_with_a_gap_and_nothing_twice(tmp_path: Path, level: str) -> None:
    with seven(tmp_path, level) as network:
        asyncio.run(asyncio.wait_for(_with_several_addresses(network, level), 120))


async def _with_a_name(network: BrokerNetwork) -> None:
    """b5, at an end, is killed: what belongs to its log and to its clients there waits for it."""
    await network.begin()
    await network.start_beside(SPARE)
    both = f"holdfast://{network.addresses['b5']},{network.addresses[SPARE]}"
    async with AsyncExitStack() as stack, FaultProxy(network.addresses["b5"]) as way:
        publisher = await stack.enter_async_context(holdfast.connect(network.url("b1")))
        moving = await stack.enter_async_context(holdfast.connect(both))
        staying = await stack.enter_async_context(holdfast.connect(f"holdfast://{way.address}"))
        kept = await stack.enter_async_context(staying.subscribe("topic = 'load'", name="kept"))
        named = await stack.enter_async_context(moving.subscribe("topic = 'load'", name="desk"))
        plain = await stack.enter_async_context(staying.subscribe("topic = 'load'"))
        await publisher.publish({"n": 1}, topic="load")
        named_events = aiter(named)
        await named.ack(await anext(named_events))
        assert (await plain.next()).attributes["n"] == 1
        way.refuse = True  # it comes back when its broker has its place, and not before
        await network.kill("b5")
        await standin(network, "replace", "b5", "--by", SPARE)
        with pytest.raises(holdfast.PositionGone):
            await anext(named_events)
        await publisher.publish({"n": 2}, topic="load")  # for nobody
        await network.start_beside("b5")
        await standin(network, "hand-back", "b5")
        assert (plain.gaps, kept.gaps) == (0, 0)
        way.refuse = False
        number, first = 2, 0
        while not first:
            number += 1
            await publisher.publish({"n": number}, topic="load")
            with suppress(TimeoutError):
                first = int((await asyncio.wait_for(plain.next(), 0.2)).attributes["n"])
        assert first > 2, "the session goes on, and lacks what was for nobody"
        assert (plain.gaps, kept.gaps) == (1, 1), "and it is told so"
        assert [(await kept.next()).attributes["n"] for _ in range(2)] == [1, first]
        back = await stack.enter_async_context(holdfast.connect(network.url("b5")))
        again = aiter(await stack.enter_async_context(back.subscribe("topic = 'load'", name="desk")))
        assert (await anext(again)).attributes["n"] == first


@pytest.mark.full
def test_a_name_of_a_replaced_broker_is_not_begun_anew_and_goes_on_when_it_has_its_place_back(tmp_path: Path) -> None:
    with seven(tmp_path, BUFFERED) as network:
        asyncio.run(asyncio.wait_for(_with_a_name(network), 120))


async def _starts_again(network: BrokerNetwork) -> None:
    """The stand-in is killed while it learns, since b6 stands still."""
    await network.begin()
    await network.start_beside(SPARE)
    async with NetworkLoad(network, ("b1", "b7"), ("b1", "b7")) as load:
        await network.kill("b3")
        noticed = {home: count + 1 for home, count in load.published.items()}
        network.send("b6", SIGSTOP)
        replacing = asyncio.ensure_future(standin(network, "replace", "b3", "--by", SPARE))
        await _is_told(network, SPARE)
        assert "it waits: b8 has no link with b6" in await standin(network, "show")
        network.stop(SPARE)
        await network.start_beside(SPARE)
        network.send("b6", SIGCONT)
        assert (await replacing)[-1].startswith("done: members b1, b2, b8, b4, b5, b6, b7;")
        await load.more(EVENTS)
        await load.pause()
        _check_what_came(load, noticed)


async def _is_told(network: BrokerNetwork, name: str) -> None:
    """Returns when a broker has heard of a change."""
    while (answer := await network.inspect(name)) is None or "change" not in answer.facts:
        await asyncio.sleep(LOOK_EVERY_S)


def _check_what_came(load: NetworkLoad, noticed: dict[str, int]) -> None:
    for subscriber in load.subscribers:
        for home, got in subscriber.got.items():
            assert got == sorted(set(got))
            assert set(range(noticed[home] + 1, load.published[home] + 1)) <= set(got)


@pytest.mark.full
@pytest.mark.parametrize("level", [NONE, BUFFERED])
def test_a_stand_in_that_is_started_again_in_the_middle_begins_anew(tmp_path: Path, level: str) -> None:
    with seven(tmp_path, level) as network:
        asyncio.run(asyncio.wait_for(_starts_again(network), 120))


async def _one_after_the_other(network: BrokerNetwork) -> None:
    """b3 and b4 are killed, and the stand-in of b3 in the middle; and b3 comes back by itself."""
    await network.begin()
    await network.start_beside(*network.spares)
    async with NetworkLoad(network, ("b1", "b7"), ("b1", "b7")) as load:
        await network.kill("b3", "b4")
        noticed = {home: count + 1 for home, count in load.published.items()}
        network.send("b6", SIGSTOP)  # so that the stand-in is not done
        replacing = asyncio.ensure_future(standin(network, "replace", "b3", "--by", SPARE, may_fail=True))
        await _is_told(network, SPARE)
        network.stop(SPARE)
        network.send("b6", SIGCONT)
        await standin(network, "replace", SPARE, "--by", "b9")
        await replacing
        await network.start_beside("b3")
        await standin(network, "replace", "b4", "--by", "b10")
        await load.more(EVENTS)
        await load.pause()
        _check_what_came(load, noticed)
        shown = await standin(network, "show")
        assert shown[:2] == [
            "b9 stands in for b3, which runs again: `hand-back` gives it its place",
            "b9 stands in for b8, which does not answer",
        ]
        assert "b10 stands in for b4, which does not answer" in shown
        load.go_on()
        await standin(network, "hand-back", "b3")
        await load.more(EVENTS)
        await load.pause()
        assert "spares: b9" in await standin(network, "show")


@pytest.mark.full
def test_neighbours_that_fail_at_once_and_a_stand_in_that_dies_in_the_middle_are_replaced_one_by_one(
    tmp_path: Path,
) -> None:
    with seven(tmp_path, NONE, "b9", "b10", patience_ms=1_500) as network:
        asyncio.run(asyncio.wait_for(_one_after_the_other(network), 120))


@pytest.mark.long
@pytest.mark.parametrize(("level", "protocols"), [(NONE, (BASIC, SYNCH, INCREM)), (BUFFERED, (BASIC, SYNCH))])
def test_brokers_are_replaced_and_handed_back_again_and_again(
    tmp_path: Path, level: str, protocols: tuple[str, ...]
) -> None:
    rng = Random(level)
    planned = itertools.islice(itertools.cycle(protocols), CAMPAIGN // 2)
    outcomes = replaced(tmp_path, level, [(rng.choice(INNER), protocol) for protocol in planned])
    for protocol in protocols:
        theirs = [outcome for outcome in outcomes if outcome.protocol == protocol]
        lost, late = sum(one.lost for one in theirs), sum(one.late for one in theirs)
        print(f"{level}, {protocol}: {len(theirs)} replacements, {len(wrong(theirs))} wrong; {lost} lost, {late} late")
    assert wrong(outcomes) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("level", "ways"),
    [
        (NONE, [(protocol, mode) for protocol in (SYNCH, INCREM) for mode in (SHARED, ORDERED)]),
        (BUFFERED, [(protocol, SHARED) for protocol in (BASIC, SYNCH)]),
    ],
)
def test_slow_brokers_are_relieved_again_and_again(tmp_path: Path, level: str, ways: list[tuple[str, str]]) -> None:
    rng = Random(level)
    plan = [(rng.choice(INNER), *way) for way in ways * 2]
    problems = relieved(tmp_path, level, plan)
    print(f"{level}: {len(plan)} slow brokers were relieved; {sum(map(bool, problems))} times something was wrong")
    assert dict(zip(map(str, plan), problems, strict=True)) == {str(each): [] for each in plan}
