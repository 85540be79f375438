"""What operators ask of a group becomes a change of it, or a text that says why it is none."""

from collections.abc import Mapping

import pytest

from holdfast.kernel.outbox import Outbox, RecordingOutbox
from holdfast.schemes.paxos.membership import AddLearner, Cancel, Change, ChangeProtocol, Leave, Remove, changed
from holdfast.schemes.paxos.operations import GroupOperations
from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import Member, PaxosSettings, Protocol

MEMBERS = tuple(Member(name, f"{name}:1", f"{name}:2") for name in ("r1", "r2", "r3"))


class Asked:
    """In the place of the leader and of elections."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    def change(self, change: Change, out: Outbox) -> str:
        self.changes.append(change)
        return ""

    def transfer(self, to: str, out: Outbox) -> tuple[str, str]:
        return to, ""


def asked(action: str, told: Mapping[str, str]) -> tuple[str, list[Change]]:
    leader = Asked()
    roster = Roster(PaxosSettings("r1", MEMBERS))
    problem = GroupOperations(roster, leader, leader).change(action, told, RecordingOutbox(tracing=False))
    return problem, leader.changes


@pytest.mark.parametrize(
    ("action", "told", "change"),
    [
        ("add", {"id": "r4", "address": "c:1", "peer_address": "p:1"}, AddLearner("r4", "p:1", "c:1", "")),
        ("replace", {"id": "r4", "peer_address": "p:1", "replaces": "r2"}, AddLearner("r4", "p:1", "", "", "r2")),
        ("remove", {"id": "r2"}, Leave("r2")),
        ("cancel", {}, Cancel()),
        ("protocol", {"protocol": "fast"}, ChangeProtocol(Protocol.FAST)),
    ],
)
def test_what_is_asked_for_becomes_a_change(action: str, told: dict[str, str], change: Change) -> None:
    assert asked(action, told) == ("", [change])


def test_what_no_group_knows_is_refused_in_words_and_nothing_is_changed() -> None:
    known = "there is add, replace, remove, cancel, protocol"
    assert asked("add-broker", {}) == (f"there is no change 'add-broker'; {known}", [])
    assert asked("x" * 100_000, {}) == (f"there is no change {'x' * 64 + '…'!r}; {known}", [])
    assert asked("remove", {"id": "r1", "lost": "yes"}) == ("nothing is known of 'lost' in a change 'remove'", [])
    problem = "there is no protocol 'slow'; there is multi, batch, fast"
    assert asked("protocol", {"protocol": "slow"}) == (problem, [])


def test_a_replica_that_does_not_vote_is_removed_at_once_and_need_not_leave_first() -> None:
    roster = Roster(PaxosSettings("r1", MEMBERS))
    roster.set(changed(roster.membership, AddLearner("r4", "p:1", "c:1", "disk")))
    leader = Asked()
    out = RecordingOutbox(tracing=False)
    assert GroupOperations(roster, leader, leader).change("remove", {"id": "r4"}, out) == ""
    assert leader.changes == [Remove("r4")]
