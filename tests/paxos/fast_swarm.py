"""Runs of groups with fast rounds, drawn from seeds of their own: under misfortunes, and in peace.

`python -m tests.paxos.fast_swarm 17` plays one seed and says what came of it, `… peace 17` one of the peaceful ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from holdfast.kernel.time import MILLISECOND
from holdfast.schemes.paxos.membership import ChangeProtocol
from holdfast.schemes.paxos.settings import Protocol
from holdfast.sim.network import Adversary
from tests.paxos.group import Group
from tests.paxos.swarm import play
from tests.paxos.violation import hold

MEMBERS = [*[3] * 7, *[4] * 6, *[5] * 5, *[7] * 2, 9]
Play = Callable[..., Group]


def draw_fast(seed: int, **options: Any) -> Group:
    """A group with fast rounds, as the seed wants it; some give them up soon, and open them again soon."""
    rng = Random(f"fast/{seed}")
    settings = {
        "trim_every": rng.choice([3, 5, 30, 2_000]),
        "trim_keep": rng.choice([1, 20]),
        "pipeline": rng.choice([1, 3, 10]),
        "part_bytes": rng.choice([40, 256 * 1024]),
        "patience": rng.choice([150, 300]) * MILLISECOND,
        "recover_after": rng.choice([5, 20, 60]) * MILLISECOND,
        "fast_pause": rng.choice([20, 100, 300]) * MILLISECOND,
        "fast_pause_max": 600 * MILLISECOND,
        "direct_max": rng.choice([1, 1_024]),
    }
    return Group(
        seed,
        rng.choice(MEMBERS),
        Protocol.FAST,
        adversary=Adversary(loss=0.05, duplication=0.05, reordering=0.1) if rng.random() < 0.4 else None,
        late_us=rng.choice([500, 3_000, 20_000]),
        sync_us=rng.choice([500, 5_000, 30_000]),
        ask_ms=rng.choice([10, 40]),
        options=settings,
        directly=rng.choice([0.0, 0.5, 0.9, 1.0]),
        late_direct_us=rng.choice([500, 5_000, 30_000]),
        **options,
    )


def play_fast(seed: int, **options: Any) -> Group:
    """Misfortunes, then peace."""
    return play(seed, draw_fast, **options)


def play_changing(seed: int, **options: Any) -> Group:
    """The same, and an operator can't make up his mind about the protocol."""

    def draw(seed: int, **options: Any) -> Group:
        group = draw_fast(seed, **options)
        _change_protocol(group)
        return group

    return play(seed, draw, **options)


def _change_protocol(group: Group) -> None:
    if group.leader():
        is_fast = group.made[group.leader()].view.roster.membership.protocol is Protocol.FAST
        group.change(ChangeProtocol(Protocol.BATCH if is_fast else Protocol.FAST))
    group.simulation.after(group.rng.randint(1, 300) * MILLISECOND, _change_protocol, group)


def play_in_peace(seed: int, **options: Any) -> Group:
    """Nothing is lost, and nobody asks twice: everything that a client asks is answered. One replica stops and comes
    back: where fast rounds can't do without it, they are given up, and opened again."""
    rng = Random(f"peace/{seed}")
    members = rng.choice([3, 4, 5])
    settings = {"recover_after": rng.choice([5, 20]) * MILLISECOND, "fast_pause": 200 * MILLISECOND}
    settings |= {"pipeline": rng.choice([2, 10]), "fast_pause_max": 800 * MILLISECOND}
    group = Group(
        seed,
        members,
        Protocol.FAST,
        ask_ms=rng.choice([3, 10]),
        options=settings,
        directly=rng.choice([0.3, 0.7]),
        late_direct_us=rng.choice([500, 4_000]),
        patient=True,
        **options,
    )
    for host in group.hosts.values():
        host.start()
    hold(group.run(10_000, lambda: is_open(group)), "fast rounds are not opened in peace")
    group.run(1_000)  # who leads is settled
    group.start_clients()
    hold(group.run(10_000, group.serves_again()), "a question is not answered", group.answered)
    spare = next(name for name in reversed(group.hosts) if name != group.leader())
    group.hosts[spare].stop(power_cut=False)
    if members - 1 < -(-3 * members // 4):
        hold(group.run(2_000, lambda: not is_open(group)), "fast rounds go on with too few")
    for _ in range(3):
        hold(group.run(10_000, served_again(group)), "a question is not answered", group.answered)
    group.hosts[spare].start()
    hold(group.run(10_000, lambda: is_open(group)), "fast rounds are not opened again")
    hold(group.run(10_000, group.serves_again()), "a question is not answered", group.answered)
    return group


def is_open(group: Group) -> bool:
    leader = group.leader()
    return bool(leader) and group.made[leader].replica.takes_direct


def served_again(group: Group) -> Callable[[], bool]:
    """A condition: every client has had an answer since now."""
    answered = dict(group.answered)
    return lambda: all(number > answered[who] for who, number in group.answered.items())


def problem(
    seed: int, play: Play = play_fast, see: Callable[[Group], None] = lambda group: None, **options: Any
) -> str:
    """What is wrong with a run; empty if nothing is, and then `see` is shown it."""
    try:
        see(play(seed, **options))
    except AssertionError as error:  # the watch's, or a broken invariant of the package
        how = "peace " if play is play_in_peace else ""
        return f"seed {seed}: {str(error) or 'an assertion'} (python -m tests.paxos.fast_swarm {how}{seed})"
    return ""


def problems(
    seeds: Iterable[int], play: Play = play_fast, see: Callable[[Group], None] = lambda group: None
) -> list[str]:
    return [found for seed in seeds if (found := problem(seed, play, see))]


def main(arguments: list[str]) -> None:
    played: Play = play_in_peace if arguments[:1] == ["peace"] else play_fast
    for argument in arguments[played is play_in_peace :]:
        group = played(int(argument))
        fast = group.watch.fast
        print(f"seed {argument}: {group.members} replicas, {group.simulation.steps:,} turns, slots {group.executed()}")
        print(f"  {len(fast.opened)} ballots with fast rounds: {fast.chosen} values chosen, {fast.split} rounds split")


if __name__ == "__main__":
    main(sys.argv[1:])
