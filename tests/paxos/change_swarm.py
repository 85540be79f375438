"""Runs drawn from seeds in which groups change while misfortunes happen: replicas are added, replaced and removed.

`python -m tests.paxos.change_swarm 17` plays one seed and says what came of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from holdfast.kernel.time import MILLISECOND
from holdfast.schemes.paxos.membership import Cancel, ChangeProtocol, Leave
from holdfast.schemes.paxos.settings import Protocol
from holdfast.sim.network import Adversary
from tests.paxos.group import Group
from tests.paxos.swarm import PEACE_MS, befall
from tests.paxos.violation import hold

MISFORTUNES = ["kill", "power", "power", "blackout", "pause", "cut", "one way", "slow", "full"]
SPARES = 5


def draw(seed: int, **options: Any) -> Group:
    rng = Random(f"changes/{seed}")
    adversary = Adversary(loss=0.05, duplication=0.05, reordering=0.1) if rng.random() < 0.4 else None
    settings = {
        "trim_every": rng.choice([3, 30, 2_000]),
        "trim_keep": rng.choice([1, 20]),
        "pipeline": rng.choice([1, 3, 10, 10]),
        "part_bytes": rng.choice([40, 256 * 1024]),
        "patience": rng.choice([150, 300]) * MILLISECOND,
        "caught_up_slots": rng.choice([1, 64]),
        "invited_within": 2_000 * MILLISECOND,
        "fast_pause": 100 * MILLISECOND,
        "fast_pause_max": 600 * MILLISECOND,
    }
    return Group(
        seed,
        rng.choice([1, 2, 3, 3, 3, 3, 3, 4, 5, 5]),
        rng.choice(list(Protocol)),
        adversary=adversary,
        late_us=rng.choice([500, 3_000, 20_000]),
        sync_us=rng.choice([500, 5_000, 30_000] if settings["pipeline"] == 10 else [500, 3_000]),
        ask_ms=rng.choice([20, 40, 100]),  # more than one request a slot could be decided, and old ones would wait
        spares=SPARES,
        options=settings,
        directly=rng.choice([0.0, 0.9]),
        **options,
    )


def change(group: Group, rng: Random) -> None:
    """An operator asks for something, sensible or not."""
    membership = group.watch.membership
    fresh = [name for name in group.hosts if name not in membership.former and membership.find(name) is None]
    lost = [name for name in membership.voters if name in group.watch.wiped]
    victim = lost[0] if lost else rng.choice(membership.voters)
    match rng.choice(["add", "replace", "replace", "replace", "leave", "cancel", "protocol"]):
        case "add" if fresh and len(membership.voters) < 6:
            group.add(fresh[0])
        case "replace" if fresh:
            group.add(fresh[0], victim)
        case "leave" if len(membership.voters) > 2:
            group.change(Leave(victim))
        case "cancel":
            group.change(Cancel())
        case "protocol":
            group.change(ChangeProtocol(rng.choice(list(Protocol))))


def lose_a_disk(group: Group, rng: Random) -> None:
    """For good; never so many that no majority of the voters is left, now or after a change that an operator has asked
    for and that the leader may propose before it misses the one that is lost. Nor the disk of a founder that was alone:
    it needs nobody's word to found another group (docs/groups.md)."""
    membership = group.watch.membership
    if group.members == 1:
        return
    formed = all(group.watch.disks[name].formed for name in membership.voters)
    if formed and not group.watch.wiped and len(membership.voters) > 3 and not membership.under_way:
        name = rng.choice(membership.voters)
        group.wipe(name)
        group.start_later(group.hosts[name], rng.randint(20, 500))


def play(seed: int, **options: Any) -> Group:
    """One run; raises what is wrong in the step in which it goes wrong."""
    rng = Random(f"play changes/{seed}")
    group = draw(seed, **options)
    group.start()
    hold(group.run(10_000, lambda: group.watch.prefix > 2), "a group in peace does not begin")
    for _ in range(rng.randint(8, 20)):
        change(group, rng)
        group.run(rng.randint(1, 10) * 20)
        if rng.random() < 0.6:
            befall(group, rng, MISFORTUNES)
        if rng.random() < 0.05:
            lose_a_disk(group, rng)
        group.run(rng.randint(1, 20) * 20)
    settle(group)
    return group


def settle(group: Group) -> None:
    """Peace: what was begun is finished, or given up by an operator, and all members serve."""
    group.heal()
    for _ in range(10):
        group.run(PEACE_MS // 10, lambda: not group.watch.membership.under_way)
        if not group.watch.membership.under_way:
            break
        group.change(Cancel())
    hold(not group.watch.membership.under_way, "a change is never done", group.watch.membership)
    executed = group.executed()
    hold(group.run(PEACE_MS, group.serves_again()), "peace does not help", executed, group.executed(), group.answered)


def problem(seed: int, see: Callable[[Group], None] = lambda group: None, **options: Any) -> str:
    """What is wrong with a run; empty if nothing is, and then `see` is shown it."""
    try:
        see(play(seed, **options))
    except AssertionError as error:  # the watch's, or a broken invariant of the package
        return f"seed {seed}: {str(error) or 'an assertion'} (python -m tests.paxos.change_swarm {seed})"
    return ""


def problems(seeds: Iterable[int], see: Callable[[Group], None] = lambda group: None) -> list[str]:
    return [found for seed in seeds if (found := problem(seed, see))]


def main(arguments: list[str]) -> None:
    for argument in arguments:
        group = play(int(argument))
        membership = group.watch.membership
        print(
            f"seed {argument}: {group.members} replicas, {membership.number} changes, {membership.epoch} epochs, now"
            f" {', '.join(membership.voters)}; {group.simulation.steps:,} turns, slots {group.executed()}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
