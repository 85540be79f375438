"""What `holdfast status` shows of a group: its replicas, and how it stands as the one sees it that leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.broker.status import Remark, Section, Tone
from holdfast.schemes.paxos.ballots import readable

Row = Mapping[str, Any]

_HEADINGS = ["replica", "role", "ballot", "slots", "behind", "undecided", "hears", "elections"]
_NUMBERS = ("slots_executed", "slots_behind", "slots_undecided", "peers", "elections_total")
_WAITING = ("spare", "removed", "wiped")  # roles of those who know that they are outside


def group_sections(rows: Sequence[Row]) -> list[Section]:
    """None if no replica is among those who answered."""
    replicas = [row for row in rows if "role" in row]
    if not replicas:
        return []
    lines = [_HEADINGS]
    for row in replicas:
        measures = row["measures"]
        ballot = readable(measures["replica_ballot"])
        lines.append([row["broker"], row["role"], ballot, *(f"{measures[f'replica_{name}']:,}" for name in _NUMBERS)])
    leader = leader_of(replicas)
    remarks = [_without_leader(replicas)] if leader is None else _with_leader(leader)
    wiped = ", ".join(row["broker"] for row in replicas if row["role"] == "wiped")
    if wiped:
        remarks.append(Remark(f"{wiped}: its disk is not the one that it voted with; it takes no part", Tone.ALARM))
    if leader is not None:
        outside = [row["broker"] for row in replicas if is_outside(row["broker"], replicas)]
        unaware = [row["broker"] for row in replicas if row["role"] not in _WAITING and row["broker"] in outside]
        if unaware:
            problem = f"{', '.join(unaware)}: no member any more, and has not heard of it: stop it"
            remarks.append(Remark(problem, Tone.ALARM))
        if "change" in leader:
            remarks.append(Remark(leader["change"]))
    problems: dict[str, list[str]] = {}
    for row in replicas:
        if "problem" in row:
            problems.setdefault(row["problem"], []).append(row["broker"])
    remarks += [Remark(f"{', '.join(brokers)}: {problem}", Tone.ALARM) for problem, brokers in problems.items()]
    return [Section(lines, remarks)]


def leader_of(rows: Sequence[Row]) -> Row | None:
    """One that stood still for a while may think that it leads too, in an older ballot."""
    leading = [row for row in rows if row.get("measures", {}).get("replica_is_leading")]
    return max(leading, key=lambda row: int(row["measures"]["replica_ballot"]), default=None)


def is_outside(broker: str, rows: Sequence[Row]) -> bool:
    """Whether the group goes on without it: a spare, or one that was removed, need not run."""
    leader = leader_of(rows)
    return leader is not None and broker != "" and broker not in _members(leader)


def _members(leader: Row) -> list[str]:
    return [name.removesuffix(" (learner)") for name in leader["members"].split(", ")]


def _with_leader(leader: Row) -> list[Remark]:
    more, at_best = (leader["measures"][f"replica_{name}"] for name in ("survives", "tolerates"))
    text = f"{leader['broker']} leads; the group survives {more} more failure{'' if more == 1 else 's'}"
    remarks = [Remark(text) if more == at_best else Remark(f"{text}, of {at_best} if all were there", Tone.WARNING)]
    if "rounds" in leader:
        remarks.append(Remark(f"protocol: {leader['protocol']}, in {leader['rounds']} rounds now"))
    return remarks


def _without_leader(rows: Sequence[Row]) -> Remark:
    roles = {row["role"] for row in rows}
    if "unknown" in roles and roles <= {"unknown", "spare"}:
        problem = "the group is not formed yet: for its first start all replicas must hear each other at the same time"
        return Remark(problem, Tone.ALARM)
    followed = next((row for row in rows if row.get("leader")), None)
    if followed is not None:
        return Remark(f"{followed['broker']} follows {followed['leader']}, which is not among those who answered")
    return Remark("nobody leads: too few replicas can hear each other, or an election is under way", Tone.ALARM)
