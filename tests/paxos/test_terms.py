"""Replicas with different site files do not listen to each other: ballots, majorities and results would differ."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.errors import LimitsChanged, NotAMember
from holdfast.schemes.paxos.formation import Standing
from holdfast.schemes.paxos.membership import founders
from holdfast.schemes.paxos.messages import Formed, Greeting, Prepare, Promise
from holdfast.schemes.paxos.settings import Member, Protocol
from holdfast.schemes.paxos.transfer import make_state
from tests.paxos.bench import DISK, Bench, messages
from tests.paxos.ledger import Ledger
from tests.paxos.test_formation import standing

BATCH = Protocol.BATCH
OTHERS: list[dict[str, str]] = [
    {
        "members": "r1, r0, r2",
        "protocol": "batch",
        "sessions": "5",
    },  # two replicas would have the same place, and the same ballots
    {"members": "r0, r1, r2, r3, r4", "protocol": "batch", "sessions": "5"},  # another majority
    {"members": "r0, r1, r2", "protocol": "batch", "sessions": "6"},  # the same command, another result
    {"members": "r0, r1, r2", "protocol": "batch"},
    {"members": "r0, r1, r2", "protocol": "multi", "sessions": "5"},
    {},
]


class RuledBench(Bench):
    def __init__(self, **options: Any) -> None:
        super().__init__(rules=(("sessions", 5),), **options)

    def greeting(self, formed: bool = True, hears: bool = False, confirmed: bool = False) -> Greeting:
        said = super().greeting(formed, hears, confirmed)
        return msgspec.structs.replace(said, terms={**said.terms, "sessions": "5"})

    def greeting_with(self, terms: dict[str, str]) -> Greeting:
        return msgspec.structs.replace(self.greeting(hears=True, confirmed=True), terms=terms)


@pytest.mark.parametrize("terms", OTHERS)
def test_no_group_is_formed_with_a_replica_that_has_another_site_file(terms: dict[str, str]) -> None:
    bench = RuledBench()
    bench.link()
    bench.say("r1", bench.greeting(hears=True))
    bench.say("r2", bench.greeting_with(terms))
    assert standing(bench) is Standing.UNKNOWN
    assert list(bench.parts.view.formation.disagreements) == ["r2"]
    assert "r2 has another site file: " in bench.parts.report.facts()["problem"]
    bench.say("r2", bench.greeting(hears=True))
    assert standing(bench) is Standing.FORMED
    assert "problem" not in bench.parts.report.facts()


@pytest.mark.parametrize("terms", OTHERS)
def test_a_member_that_comes_back_with_another_site_file_is_not_listened_to(terms: dict[str, str]) -> None:
    bench = RuledBench()
    bench.meet()
    assert messages(bench.say("r1", Prepare(65, 1)), Promise) == [Promise(65, 1, [], 0)]
    bench.link()  # anew
    bench.say("r1", bench.greeting_with(terms))
    assert bench.say("r1", Prepare(129, 1)) == []
    assert bench.parts.memory.acceptor.promised == 65


def test_what_is_different_is_said() -> None:
    bench = RuledBench()
    bench.link()
    bench.say("r1", bench.greeting_with(OTHERS[0]))
    bench.say("r2", bench.greeting_with(OTHERS[2]))
    assert bench.parts.report.facts()["problem"] == (
        "r1 has another site file: members is r1, r0, r2, here r0, r1, r2; "
        "r2 has another site file: sessions is 6, here 5"
    )


def test_what_the_group_wrote_down_counts_and_not_a_site_file_that_came_later() -> None:
    bench = Bench()
    bench.meet()
    later = Bench(members=5, streams=bench.streams)
    assert later.parts.view.roster.voters == ("r0", "r1", "r2")
    assert later.parts.view.roster.quorum == 2
    assert later.parts.report.facts()["problem"] == "the site file lists r3, r4, no member of the group"
    assert later.parts.view.formation.greeting(False).terms == bench.settings.terms()


def test_a_replica_that_its_group_has_removed_does_not_start() -> None:
    others = founders([Member(name, name, name) for name in ("r1", "r2", "r4")], dict.fromkeys("124", DISK), BATCH)
    formed = Formed(dict.fromkeys(["r0", "r1", "r2"], DISK), True, ("r0", "r1", "r2"))
    with pytest.raises(NotAMember, match="r0 is no member of the group, which is r1, r2, r4"):
        Bench(streams={"group": [formed], "state": [make_state(7, 0, Ledger().get_state(), others)]})


def test_a_replica_of_another_group_is_not_believed() -> None:
    """By its word we would be no member any more; but it speaks of others."""
    bench = Bench()
    bench.meet()
    others = founders([Member(name, name, name) for name in ("r1", "x", "y")], dict.fromkeys("1xy", DISK), BATCH)
    later = msgspec.structs.replace(others, number=9, epoch=4)
    said = msgspec.structs.replace(
        bench.greeting(confirmed=True), formed=dict.fromkeys(["r1", "x", "y"], DISK), membership=later
    )
    bench.say("r1", said)
    assert standing(bench) is Standing.FORMED
    assert bench.parts.report.facts()["problem"] == (
        "r1 has another site file: it belongs to another group, formed with other disks"
    )


def test_a_replica_keeps_the_limits_that_its_group_was_formed_with() -> None:
    """What it executes again since its snapshot would come out differently."""
    bench = RuledBench()
    bench.meet()
    with pytest.raises(LimitsChanged, match="sessions is 5, here 6"):
        Bench(streams=bench.streams, rules=(("sessions", 6),))
    RuledBench(streams=bench.streams)
