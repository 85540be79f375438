"""All agree that a broker is replaced: never two maps that follow one, whatever is lost, repeated or started again.

Thousands of drawn histories of a few members; and mistakes in `Agreement`, each of which they see.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from holdfast.kernel.outbox import NOW, Outbox
from holdfast.protocols.routing.network_map import NetworkMap
from holdfast.schemes.tree.standin.cycle.agreement import Agreement, Asking, Wish
from holdfast.schemes.tree.standin.cycle.memory import Memory
from holdfast.schemes.tree.standin.cycle.messages import AskConsent, Consented, ConsentReturned, Promised
from tests.standin.cycle.agreeing import AgreeingWorld

HISTORIES = 2_000
STEPS = 220
SEEN_WITHIN = 300  # histories


def history(
    seed: int,
    agreement: type[Agreement] = Agreement,
    memory: type[Memory] = Memory,
    sizes: Sequence[int] = (2, 3, 3, 3, 4, 5, 6),
) -> AgreeingWorld:
    rng = Random(f"agreement {seed}")
    world = AgreeingWorld(rng, rng.choice(sizes), agreement, memory)
    for _ in range(STEPS):
        world.step()
        if world.wrong:
            break
    return world


def test_never_two_maps_follow_one() -> None:
    """D0-A10. That something is agreed to is counted, too."""
    made = consents = 0
    for seed in range(1, HISTORIES + 1):
        world = history(seed)
        assert world.wrong == "", f"seed {seed}"
        made += len(world.follows)
        consents += world.consents
    assert made > HISTORIES // 4
    assert consents > 2 * HISTORIES


# ---------------------------------------------------------------------------------------------- what they have to see
class Forgets(Memory):
    """A promise is not kept over a restart."""

    def promise(self, promised: Promised | None, out: Outbox) -> None:
        self.promised = promised


class CountsLateAnswers(Agreement):
    """An answer to an earlier time of asking is as good as any."""

    def on_consented(self, peer: str, said: Consented, out: Outbox) -> None:
        asking = self._asking
        if asking is not None and not said.problem:
            asking.waiting.pop(peer, None)


class AnswersAtOnce(Agreement):
    """It is said before the disk has it."""

    def on_ask_consent(self, peer: str, asked: AskConsent, out: Outbox) -> None:
        problem = self._against(peer, asked)
        if not problem and self._calls.reach(asked.faulty, out):
            problem = "hears from it"
        problem = problem or self._promise(asked.number, peer, asked.after, out)
        out.send(peer, Consented(asked.number, asked.after, asked.round, problem), after=NOW)


class PromisesToAll(Agreement):
    """Who asks last is agreed to."""

    def _promise(self, number: int, maker: str, after: str, out: Outbox) -> str:
        self._memory.promise(Promised(number, maker, after), out)
        return ""


class HoldsNothingOfItsOwn(Agreement):
    """What it asks for itself keeps it from nothing."""

    def _holds(self, promised: Promised) -> bool:
        return promised.maker != self._roster.name


class TwoMayAgree(Agreement):
    """One of two brokers says that the other has failed."""

    def begin(self, before: NetworkMap, change: Wish, after: NetworkMap, out: Outbox) -> str:
        others = [name for name in before.names if name not in (change.name, self._roster.name)]
        if problem := self._promise(before.number, self._roster.name, after.digest, out):
            return problem
        self._asking = Asking(before, change, after, others, out.now)
        return ""


class MostAreEnough(Agreement):
    """One of those who were asked need not have answered."""

    def on_consented(self, peer: str, said: Consented, out: Outbox) -> None:
        super().on_consented(peer, said, out)
        if self._asking is not None and len(self._asking.waiting) == 1:
            self._asking.waiting.clear()


class TakesTheNumberForTheMap(Agreement):
    """What is returned of another wish frees it of this one."""

    def on_consent_returned(self, peer: str, returned: ConsentReturned, out: Outbox) -> None:
        self._memory.promise(None, out)


MUTANTS = [
    (Agreement, Forgets),
    (CountsLateAnswers, Memory),
    (AnswersAtOnce, Memory),
    (PromisesToAll, Memory),
    (HoldsNothingOfItsOwn, Memory),
    (TwoMayAgree, Memory),
    (MostAreEnough, Memory),
    (TakesTheNumberForTheMap, Memory),
]


@pytest.mark.parametrize(("agreement", "memory"), MUTANTS)
def test_a_mistake_is_seen(agreement: type[Agreement], memory: type[Memory]) -> None:
    """In networks of two and three, in which most happens."""
    assert any(history(seed, agreement, memory, (2, 3, 3, 3)).wrong for seed in range(1, SEEN_WITHIN + 1))


# ------------------------------------------------------------------------------------------------------- that it ends
@pytest.mark.parametrize("members", [3, 4, 5, 6])
def test_one_that_asks_while_nothing_is_lost_is_answered(members: int) -> None:
    for seed in range(1, 31):
        world = AgreeingWorld(Random(seed), members)
        maker, faulty = world.rng.sample(world.names, 2)
        world.fail(faulty)
        assert world.ask_in_peace(maker, faulty, "s1") == ""
        assert [sorted(by.values()) for by in world.follows.values()] == [[maker]]


def test_what_was_agreed_to_in_trouble_is_in_the_way_of_nothing() -> None:
    """Makers have been started again, and their wishes were given up, or forgotten; what they were promised is given
    back when another one asks. Who was promised something and is gone itself can give nothing back: below."""
    made = 0
    for seed in range(1, 301):
        world = history(seed)
        world.settle()
        for member in world.members.values():
            member.give_up()
        world.settle()
        newest = max((member.roster.map for member in world.members.values()), key=lambda network: network.number)
        if len(newest.names) < 3 or newest.steps:
            continue
        world.tell_all(newest)
        held = [member.memory.promised for member in world.members.values()]
        makers = {promised.maker for promised in held if promised is not None and promised.number == newest.number}
        free = [name for name in newest.names if name not in makers]
        if not free:
            continue
        faulty = world.rng.choice(free)
        maker = world.rng.choice([name for name in newest.names if name != faulty])
        world.fail(faulty)
        spare = next(name for name in (*world.members,) if newest.find(name) is None and name not in newest.former)
        problems = [world.ask_in_peace(maker, faulty, spare) for _ in range(3)]
        assert "" in problems, f"seed {seed}: {problems}"
        made += 1
    assert made > 50


@pytest.mark.parametrize("members", [3, 4, 5, 6])
def test_who_hears_the_broker_does_not_agree(members: int) -> None:
    """D0-A8: one neighbour that hears it is enough."""
    for seed in range(1, 21):
        world = AgreeingWorld(Random(seed), members)
        hub = max(world.names, key=lambda name: len(world.members[name].roster.linked))
        world.fail(hub)
        world.down = {}
        near = world.members[hub].roster.linked
        world.members[near[-1]].deaf_to.clear()
        problem = world.ask_in_peace(near[0], hub, "s1")
        assert problem == f"{near[-1]} does not agree: hears from {hub}"
        assert world.follows == {}


def test_who_is_no_neighbour_calls_the_broker_before_it_agrees() -> None:
    """A link that is cut between two replaces neither: others reach both."""
    world = AgreeingWorld(Random(1), 4)
    leaf = next(name for name in world.names if len(world.members[name].roster.linked) == 1)
    (hub,) = world.members[leaf].roster.linked
    world.fail(leaf)
    world.down = {}
    others = [name for name in world.names if name not in (leaf, hub)]
    world.members[others[-1]].deaf_to = {}
    assert world.ask_in_peace(hub, leaf, "s1") == f"{others[-1]} does not agree: hears from {leaf}"
    assert world.follows == {}


def test_of_two_brokers_none_says_that_the_other_failed() -> None:
    world = AgreeingWorld(Random(1), 2)
    world.fail("b2")
    assert "of two brokers nobody can tell" in world.ask_in_peace("b1", "b2", "s1")


def test_when_two_are_down_all_can_t_agree() -> None:
    world = AgreeingWorld(Random(1), 4)
    world.fail("b2")
    world.down["b3"] = None
    assert world.ask_in_peace("b1", "b2", "s1") == (
        "b3 can't be asked: more than one broker is down, or the network is split"
    )


def test_what_was_promised_to_one_that_fails_waits_for_it() -> None:
    """It may have made a map of it, that nobody has heard of. When it is back, it says that nothing came of it."""
    world = AgreeingWorld(Random(1), 4)
    world.fail("b2")
    world.cut = {frozenset(("b1", "b4"))}
    assert world.members["b1"].begin("b2", "s1") == ""
    assert world.members["b1"].look() == ""
    world.settle()
    world.cut = set()
    world.fail("b1")
    world.restart("b1")
    refused = "b3 does not agree: has agreed to something else that b1 asked for"
    assert world.ask_in_peace("b4", "b1", "s1") == refused
    world.fail("b2")
    assert world.ask_in_peace("b4", "b2", "s1") == refused
    assert world.ask_in_peace("b4", "b2", "s1") == ""
