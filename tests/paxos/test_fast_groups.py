"""Whole groups with fast rounds: what they gain, and what they do where fast rounds do not pay off."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.kernel.time import MICROSECOND, MILLISECOND
from holdfast.schemes.paxos.fallback import COLLISIONS_MAX, LOOKED_AT, Fallback
from holdfast.schemes.paxos.messages import SnapshotPart
from holdfast.schemes.paxos.settings import Member, PaxosSettings, Protocol
from holdfast.schemes.paxos.transfer import IncomingSnapshot, make_state, pack
from tests.paxos.fast_swarm import is_open
from tests.paxos.group import Group
from tests.paxos.ledger import DIRECT, Asked

HOP = 5_000  # microseconds; the disk takes a fiftieth of it


def settled(members: int, protocol: Protocol) -> Group:
    """A group whose messages all take the same time, and that nobody asks for anything yet."""
    group = Group(1, members, protocol, late_us=HOP, early_us=HOP, sync_us=100)
    for host in group.hosts.values():
        host.start()
    assert group.run(5_000, lambda: bool(group.leader()))
    group.run(500)
    return group


def hops_until_executed(group: Group) -> int:
    """How many messages follow each other from when a client's command comes until the leader, who answers, has
    executed it."""
    leader = group.leader()
    command = ("a", 1)
    group.watch.asked.add(command)
    begun = group.simulation.now
    if group.made[leader].replica.takes_direct:
        for host in group.hosts.values():
            host.request(0, Asked((DIRECT, command)))
    else:
        group.hosts[leader].request(0, Asked(command))
    while not group.ledgers[leader].last:
        group.simulation.run(group.simulation.now + HOP * MICROSECOND // 10)
        assert group.simulation.now < begun + 10 * HOP * MICROSECOND
    return (group.simulation.now - begun) // (HOP * MICROSECOND)


@pytest.mark.parametrize("members", [3, 4, 5, 7, 9])
def test_the_fast_way_is_a_message_shorter(members: int) -> None:
    """D4-B4: votes follow the client's message, and need not wait for the leader's."""
    assert hops_until_executed(settled(members, Protocol.BATCH)) == 2
    assert hops_until_executed(settled(members, Protocol.FAST)) == 1


def test_three_replicas_fall_back_when_one_is_down_and_come_back_with_it() -> None:
    """D4-B4: all three are needed for a fast quorum."""
    group = Group(3, 3, Protocol.FAST, directly=0.5, options={"fast_pause": 200 * MILLISECOND})
    group.start()
    assert group.run(5_000, lambda: is_open(group) and group.watch.fast.chosen > 10)
    spare = next(name for name in group.hosts if name != group.leader())
    group.hosts[spare].stop(power_cut=True)
    assert group.run(1_000, lambda: not is_open(group))
    fast, slots, elections = (
        group.watch.fast.chosen,
        group.watch.prefix,
        group.made[group.leader()].memory.proposer.elections_won,
    )
    assert group.run(5_000, lambda: group.watch.prefix > slots + 30)
    assert group.watch.fast.chosen == fast
    assert group.made[group.leader()].memory.proposer.elections_won == elections, "its clients stay"
    group.hosts[spare].start()
    assert group.run(5_000, lambda: is_open(group) and group.watch.fast.chosen > fast + 10)


def test_four_replicas_go_on_in_fast_rounds_when_one_is_down() -> None:
    group = Group(4, 4, Protocol.FAST, directly=0.5)
    group.start()
    assert group.run(5_000, lambda: is_open(group) and group.watch.fast.chosen > 10)
    ballot = group.made[group.leader()].memory.proposer.ballot
    spare = next(name for name in group.hosts if name != group.leader())
    group.hosts[spare].stop(power_cut=True)
    fast = group.watch.fast.chosen
    assert group.run(5_000, lambda: group.watch.fast.chosen > fast + 30)
    assert group.made[group.leader()].memory.proposer.ballot == ballot


def test_a_group_whose_clients_collide_goes_classic() -> None:
    group = Group(5, 5, Protocol.FAST, directly=1.0, ask_ms=2, late_direct_us=20_000)
    group.start()
    assert group.run(20_000, lambda: any(parts.coordinator.given_up for parts in group.made.values()))
    leader = group.made[group.leader()]
    assert leader.coordinator.measure()["replica_fast_given_up_total"] == 1
    assert leader.coordinator.measure()["replica_fast_recovered_total"] > COLLISIONS_MAX
    assert group.run(5_000, group.serves_again())


def test_a_replica_alone_has_fast_rounds_too() -> None:
    group = Group(6, 1, Protocol.FAST, directly=1.0)
    group.start()
    assert group.run(5_000, group.serves_again())
    assert group.watch.fast.chosen > 0


# ------------------------------------------------------------------------------------------------------------ fallback
SETTINGS = PaxosSettings("r0", (Member("r0", "r0", "r0"),))


def test_fast_rounds_are_given_up_when_more_than_half_of_the_last_slots_needed_recovery() -> None:
    fallback = Fallback(SETTINGS)
    fallback.opened(0)
    for number in range(200):
        fallback.decided(number % 2 == 0)
    assert fallback.reason_to_close(3, 3) == ""
    for _ in range(2):
        fallback.decided(True)
    assert fallback.reason_to_close(3, 3) == f"{COLLISIONS_MAX + 1} of {LOOKED_AT} slots needed recovery"
    fallback.opened(1)
    assert fallback.reason_to_close(3, 3) == ""
    assert fallback.reason_to_close(2, 3) == "2 replicas answer, and 3 would have to"


def test_pauses_double_while_fast_rounds_do_not_last_and_are_short_again_when_they_did() -> None:
    fallback = Fallback(SETTINGS)
    now, pauses = 0, []
    for _ in range(8):
        fallback.opened(now)
        fallback.closed(now + 1)
        later = next(n for n in range(60) if fallback.may_open(3, 3, now + 1 + n * 1_000 * MILLISECOND))
        pauses.append(later)
        now += 1 + later * 1_000 * MILLISECOND
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    fallback.opened(now)
    fallback.closed(now + 31_000 * MILLISECOND)
    assert fallback.may_open(3, 3, now + 32_000 * MILLISECOND)
    assert not fallback.may_open(2, 3, now + 32_000 * MILLISECOND)


# ----------------------------------------------------------------------------------------------------------- snapshots
def test_the_hash_of_a_snapshot_covers_its_time() -> None:
    state = make_state(4, 9, b"state", wall=77)
    for wall, whole in ((77, state), (78, None), (0, None)):
        data = pack(msgspec.structs.replace(state, wall=wall))
        assert IncomingSnapshot().add(SnapshotPart(4, len(data), state.digest, 0, data)) == whole
