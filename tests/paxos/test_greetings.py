"""Greetings of those who are no part of the group, or were: they change nothing, and leave nothing behind."""

from __future__ import annotations

import msgspec

from holdfast.kernel.inputs import LinkDown, LinkUp, Received
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import Disconnect
from holdfast.schemes.catalogue import MESSAGES
from holdfast.schemes.paxos.formation import Standing
from holdfast.schemes.paxos.membership import Leave, Membership, founders
from holdfast.schemes.paxos.messages import Greeting, Learn
from holdfast.wire.limits import WireLimits
from tests.paxos.bench import Bench


def standing(bench: Bench) -> Standing:
    return bench.parts.view.formation.standing


def formed() -> Bench:
    bench = Bench()
    bench.meet()
    assert bench.parts.view.peers.is_formed
    return bench


def later(bench: Bench, disks: dict[str, str]) -> Membership:
    """A group that has changed often, and in which nobody is called r0."""
    settings = bench.settings
    first = founders(settings.members, disks, settings.protocol)
    members = tuple(member for member in first.members if member.name != "r0")
    return Membership(members, epoch=5, number=9, former=("r0",))


def greeting(bench: Bench, disks: dict[str, str]) -> Greeting:
    return Greeting(disks["r1"], disks, False, True, bench.settings.terms(), later(bench, disks))


def test_a_replica_of_another_group_with_the_same_names_removes_nobody() -> None:
    """Two groups with the same site file, one of them a copy: the copy's log is not about the first one's replicas."""
    bench = formed()
    bench.say("r1", greeting(bench, dict.fromkeys(["r0", "r1", "r2"], "a disk of the copy")))
    assert standing(bench) is Standing.FORMED
    assert "another group" in bench.parts.report.facts()["problem"]
    bench.say("r1", greeting(bench, bench.disks))  # the same, of our own group
    assert standing(bench) is Standing.REMOVED


def test_a_founder_that_never_confirmed_is_not_removed_by_another_group_either() -> None:
    bench = Bench()
    bench.link()
    for peer in bench.peers:
        bench.say(peer, bench.greeting(formed=False))
    assert bench.parts.view.formation.disks == bench.disks
    bench.say("r1", greeting(bench, dict.fromkeys(["r0", "r1", "r2"], "a disk of the copy")))
    assert standing(bench) is Standing.UNKNOWN
    bench.say("r1", bench.greeting(confirmed=True))
    assert standing(bench) is Standing.FORMED


def test_a_greeting_does_not_grow_with_the_number_of_those_who_were_members() -> None:
    """It has to fit into a small frame: beyond that no two replicas would ever listen to each other again."""
    bench = formed()
    roster = bench.parts.view.roster
    roster.set(msgspec.structs.replace(roster.membership, former=tuple(f"replica-{n}" for n in range(10_000))))
    greeting = bench.parts.view.formation.greeting(True)
    assert len(MESSAGES.encoder(greeting)) < WireLimits().control_frame_bytes // 8
    assert greeting.membership is not None
    assert greeting.membership.members == roster.membership.members


def test_a_membership_that_can_not_be_ends_the_link() -> None:
    bench = formed()
    before = bench.parts.view.roster.membership
    twice = msgspec.structs.replace(before, members=(*before.members, before.members[0]), number=7)
    bench.out.actions.clear()
    bench.say("r1", msgspec.structs.replace(bench.greeting(confirmed=True), membership=twice))
    ended = [action.reason for action in bench.out.actions if isinstance(action, Disconnect)]
    assert ended == ["protocol error: in Greeting, a name or a place is there twice"]
    assert bench.parts.view.roster.membership is before


def test_strangers_leave_nothing_behind() -> None:
    bench = formed()
    formation = bench.parts.view.formation
    for n in range(100):
        link, name = 100 + n, f"stranger-{n}"
        other = msgspec.structs.replace(bench.greeting(formed=False), terms={"limits": "others"} if n % 2 else {})
        bench.handle(LinkUp(link, name, 1, Role.BROKER, False), Received(link, name, [other]))
        bench.handle(LinkDown(link, name, "gone"))
    assert set(formation._greeted) <= {"r0", "r1", "r2"}
    assert formation.disagreements == {}
    assert formation.candidates == {}


def test_a_peer_that_comes_back_is_not_listened_to_before_it_says_which_disk_it_has() -> None:
    """A change of the group looked at what the peer had said on its link before: it may have lost its disk since."""
    bench = formed()
    ballot = bench.lead()
    bench.handle(LinkDown(2, "r2", "gone"), LinkUp(9, "r2", 2, Role.BROKER, True))
    assert not bench.parts.view.peers.hears("r2")
    assert bench.parts.leader.change(Leave("r1"), bench.out) == ""
    bench.fire("beat")
    bench.say("r1", Learn(ballot, list(bench.parts.memory.proposer.undecided)))
    assert bench.parts.view.roster.membership.number == 1
    assert not bench.parts.view.peers.hears("r2")
    bench.handle(Received(9, "r2", [bench.greeting(hears=True, confirmed=True)]))
    assert bench.parts.view.peers.hears("r2")


def test_a_link_that_is_gone_later_than_another_took_its_place_takes_nothing_with_it() -> None:
    """The peer's greetings were not looked at any more, as long as its new link lasted."""
    bench = formed()
    bench.handle(LinkUp(9, "r2", 2, Role.BROKER, False))
    bench.handle(LinkDown(2, "r2", "superseded by a newer link"))
    bench.handle(Received(9, "r2", [bench.greeting(hears=True, confirmed=True)]))
    assert bench.parts.view.peers.hears("r2")
