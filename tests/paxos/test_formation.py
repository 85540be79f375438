"""How a group comes to be, and that a disk that was wiped never votes."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from holdfast.kernel.outbox import Outbox
from holdfast.schemes.paxos.formation import Formation, Standing
from holdfast.schemes.paxos.membership import founders
from holdfast.schemes.paxos.messages import Canvass, Formed, Prepare, Promise
from holdfast.schemes.paxos.parts import PaxosKit
from tests.paxos.bench import DISK, Bench, messages
from tests.paxos.group import Group
from tests.paxos.swarm import befall
from tests.paxos.violation import Violation

ONE_STEP = 100  # a seed that shows why one step is not enough


def standing(bench: Bench) -> Standing:
    return bench.parts.view.formation.standing


def standings(group: Group) -> set[Standing]:
    return {parts.view.formation.standing for parts in group.made.values()}


def test_a_replica_whose_disk_was_wiped_does_not_vote_and_is_not_listened_to() -> None:
    group = Group(1)
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 5)
    wiped, *others = group.hosts
    group.wipe(wiped)
    group.hosts[wiped].start()
    assert group.run(5_000, lambda: group.made[wiped].view.formation.standing is Standing.WIPED)
    group.hosts[others[0]].stop(power_cut=False)  # one that may vote is left, and one that may not: no majority
    group.run(2_000)
    chosen = len(group.watch.chosen)
    group.run(3_000)
    assert len(group.watch.chosen) == chosen
    group.hosts[others[0]].start()
    assert group.run(10_000, group.serves_again())


def test_a_group_is_formed_only_when_everyone_has_been_there() -> None:
    group = Group(3)
    for host in list(group.hosts.values())[:2]:
        host.start()
    group.run(3_000)
    assert standings(group) == {Standing.UNKNOWN}
    group.hosts["r2"].start()
    group.run(3_000)
    assert standings(group) == {Standing.FORMED}


def test_two_that_do_not_listen_to_each_other_do_not_greet_without_end() -> None:
    """Each answered the other's greeting at once, as fast as the network could carry it."""
    group = Group(1)
    group.start()
    assert group.run(5_000, lambda: group.watch.prefix > 0)
    group.wipe("r0")
    group.hosts["r0"].start()
    group.run(500)
    before = group.watch.greetings
    group.run(2_000)
    assert group.watch.greetings - before <= 4 * 2_000 // 100 + 4  # two links, both ways, ten a second


def test_nobody_votes_before_all_have_written_down_the_same_disks() -> None:
    bench = Bench()
    bench.link()
    bench.say("r1", bench.greeting(hears=True))
    bench.say("r2", bench.greeting(formed=False))
    assert standing(bench) is Standing.UNKNOWN
    assert messages(bench.fire("patience", 2_000), Canvass) == []
    assert bench.say("r1", Prepare(65, 1)) == []
    bench.say("r2", bench.greeting(hears=True))
    assert standing(bench) is Standing.FORMED
    settings = bench.settings
    formed = Formed(
        bench.disks, False, bench.members, settings.terms(), founders(settings.members, bench.disks, settings.protocol)
    )
    assert bench.streams["group"] == [formed, msgspec.structs.replace(formed, confirmed=True)]
    assert messages(bench.say("r1", Prepare(65, 1)), Promise) == [Promise(65, 1, [], 0)]


def test_a_replica_that_wrote_the_disks_down_and_crashed_joins_those_who_went_on() -> None:
    bench = Bench(streams={"group": [Formed(dict.fromkeys(["r0", "r1", "r2"], DISK))]})
    assert standing(bench) is Standing.UNKNOWN
    bench.link()
    bench.say("r1", bench.greeting(confirmed=True))
    assert standing(bench) is Standing.FORMED


def test_a_replica_that_lost_what_it_wrote_down_does_not_vote_though_its_disk_has_the_old_name() -> None:
    bench = Bench()
    bench.link()
    bench.say("r1", bench.greeting(confirmed=True))
    assert standing(bench) is Standing.WIPED


def wipe_while_it_is_formed(seed: int, **options: Any) -> Group:
    """It may never be formed; if it is, there is one, or the watch has something to say."""
    rng = Random(f"formation/{seed}")
    group = Group(seed, members=3, late_us=rng.choice([500, 20_000]), ask_ms=20, **options)
    for host in group.hosts.values():
        group.start_later(host, rng.randint(0, 60))
    group.start_clients()
    victim = rng.choice(list(group.hosts))
    for _ in range(8):
        group.run(rng.randint(1, 20))
        befall(group, rng, ["power", "cut", "one way", "pause", "one way"])
        if rng.random() < 0.3 and group.hosts[victim].running:
            group.wipe(victim, remember=False)
            group.start_later(group.hosts[victim], 20)
    group.heal()
    group.run(1_500)
    return group


def test_a_disk_that_is_wiped_while_the_group_is_formed_makes_no_second_group() -> None:
    formed = [all(disk.formed for disk in wipe_while_it_is_formed(seed).watch.disks.values()) for seed in range(60)]
    assert 5 < sum(formed) < 60  # the seeds have both


class FormsInOneStep(Formation):
    """r0 and r2 write down each other's disks, and decide. r2 is wiped, and is new to r1, which has heard from r0 and
    r2 when both were new and can't know better: they decide too."""

    def _write_down(self, disks: dict[str, str], out: Outbox) -> None:
        super()._write_down(disks, out)
        self._count(True, out)


def test_a_group_that_is_formed_in_one_step_is_caught() -> None:
    with pytest.raises(Violation, match="other disks"):
        wipe_while_it_is_formed(ONE_STEP, kit=PaxosKit(formation=FormsInOneStep))
    wipe_while_it_is_formed(ONE_STEP)
