"""Runs drawn from seeds: a group, misfortunes, then peace, in which everyone has to be alive and equal.

`python -m tests.paxos.swarm 17` plays one seed and says what came of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from holdfast.kernel.time import MILLISECOND
from holdfast.schemes.paxos.settings import CLASSIC
from holdfast.sim.network import Adversary
from tests.paxos.group import Group
from tests.paxos.violation import hold

MEMBERS = [1, *[3] * 11, *[5] * 5, *[7] * 3]
PEACE_MS = 10_000  # 200 heartbeats; a dial that was under way when peace came takes 60 of them
MISFORTUNES = ["kill", "power", "power", "blackout", "pause", "cut", "one way", "slow", "full", "wipe"]


def draw(seed: int, **options: Any) -> Group:
    """A group as the seed wants it."""
    rng = Random(f"draw/{seed}")
    adversary = Adversary(loss=0.05, duplication=0.05, reordering=0.1) if rng.random() < 0.4 else None
    settings = {
        "trim_every": rng.choice([3, 5, 30, 2_000]),
        "trim_keep": rng.choice([1, 20]),
        "pipeline": rng.choice([1, 3, 10]),
        "part_bytes": rng.choice([40, 256 * 1024]),
        "patience": rng.choice([150, 300]) * MILLISECOND,
    }
    return Group(
        seed,
        rng.choice(MEMBERS),
        rng.choice(CLASSIC),
        adversary=adversary,
        late_us=rng.choice([500, 3_000, 20_000]),
        sync_us=rng.choice([500, 5_000, 30_000]),
        ask_ms=rng.choice([10, 40, 100]),
        options=settings,
        **options,
    )


def befall(group: Group, rng: Random, kinds: list[str]) -> None:
    """Something happens to someone, and ends after a while."""
    names = list(group.hosts)
    name = group.leader() if rng.random() < 0.4 and group.leader() else rng.choice(names)
    host, lasts = group.hosts[name], rng.randint(20, 1_000)

    def end(happen: Any) -> None:
        group.simulation.after(lasts * MILLISECOND, lambda _: happen(), None)

    match rng.choice(kinds):
        case "blackout":
            for each in group.hosts.values():
                if each.running:
                    each.stop(power_cut=True)
                    group.start_later(each, rng.randint(20, 300))
        case "kill" | "power" as how if host.running:
            host.stop(power_cut=how == "power")
            group.start_later(host, lasts)
        case "pause" if host.running:
            host.pause()
            end(host.resume)
        case "cut" | "one way" as how:
            others = [other for other in names if other != name]
            for other in others if rng.random() < 0.5 else rng.sample(others, min(1, len(others))):
                group.cut(name, other, both=how == "cut")
                end(lambda other=other: group.mend(name, other))
        case "slow":
            group.slow(name, rng.choice([5, 50]))
            end(lambda: group.slow(name, 1))
        case "full":
            group.fill(name, True)
            end(lambda: group.fill(name, False))
        case "wipe" if all(disk.formed for disk in group.watch.disks.values() if disk is not group.watch.disks[name]):
            # Never so many that no majority with its own disks is left.
            if len(group.watch.wiped | {name}) <= len(names) - group.watch.quorum and group.watch.disks[name].formed:
                group.wipe(name)
                group.start_later(host, lasts)


def play(seed: int, draw: Callable[..., Group] = draw, **options: Any) -> Group:
    """One run; raises what is wrong in the step in which it goes wrong."""
    rng = Random(f"play/{seed}")
    group = draw(seed, **options)
    early = rng.random() < 0.3
    for host in group.hosts.values():
        group.start_later(host, rng.randint(0, 100) if early else 0)
    group.start_clients()
    if early:  # while the group is being formed
        for _ in range(rng.randint(1, 4)):
            group.run(rng.randint(1, 40))
            befall(group, rng, ["kill", "power", "blackout", "pause", "cut"])
    else:
        hold(group.run(10_000, lambda: group.watch.prefix > 2), "a group in peace does not begin")
    for _ in range(rng.randint(4, 13)):
        befall(group, rng, MISFORTUNES)
        group.run(rng.randint(1, 15) * 20)
    group.heal()
    executed = group.executed()
    hold(group.run(PEACE_MS, group.serves_again()), "peace does not help", executed, group.executed(), group.answered)
    return group


def problem(seed: int, see: Callable[[Group], None] = lambda group: None, **options: Any) -> str:
    """What is wrong with a run; empty if nothing is, and then `see` is shown it."""
    try:
        see(play(seed, **options))
    except AssertionError as error:  # the watch's, or a broken invariant of the package
        return f"seed {seed}: {str(error) or 'an assertion'} (python -m tests.paxos.swarm {seed})"
    return ""


def problems(seeds: Iterable[int], see: Callable[[Group], None] = lambda group: None) -> list[str]:
    return [found for seed in seeds if (found := problem(seed, see))]


def main(arguments: list[str]) -> None:
    for argument in arguments:
        group = play(int(argument))
        print(f"seed {argument}: {group.members} replicas, {group.simulation.steps:,} turns, slots {group.executed()}")


if __name__ == "__main__":
    main(sys.argv[1:])
