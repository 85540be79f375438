"""Finding who leads a group, and waiting for one that has just been started to have a leader."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.cli.main import CHECK_FAILED
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.messages import Inspected
from holdfast.protocols.operating.operator import Unreachable

LEADER_WITHIN_S = 10.0
LOOK_EVERY_S = 0.1
_NO_GROUP = "is no member of a group"


class Leader(NamedTuple):
    name: str
    address: str
    desk: BrokerDesk
    facts: dict[str, str]


def is_led(answer: Inspected) -> bool:
    """Whether a broker is one of several of which one leads."""
    return "replica_is_leading" in answer.measures


async def await_leader(desks: list[BrokerDesk], wait_s: float) -> tuple[Leader | None, list[str]]:
    """As `find_leader`, again and again for so long: replicas that were just started have not elected one yet. Where
    brokers that are no replicas answer, no waiting helps."""
    clock = asyncio.get_running_loop().time
    deadline, said = clock() + wait_s, False
    while True:
        leader, problems = await find_leader(desks)
        if leader is not None or clock() >= deadline or all(each.endswith(_NO_GROUP) for each in problems):
            return leader, problems
        if not said:
            print(f"nobody leads yet: waiting for up to {wait_s:g} s", file=sys.stderr, flush=True)
            said = True
        await asyncio.sleep(LOOK_EVERY_S)


async def find_leader(desks: list[BrokerDesk]) -> tuple[Leader | None, list[str]]:
    """The leader of the highest ballot among those who think that they lead; and what is to be said if there is none.
    One that stood still for a while may think so too, in an older ballot. If those who are asked follow another one,
    which a site file or a URL need not name, it is asked too, and is among `desks` from then on."""
    leader, answers, problems = await _ask(desks)
    if leader is None:
        asked = {desk.address for desk in desks}
        said = (answer.facts.get("leader_address", "") for answer in answers)
        more = [BrokerDesk(address) for address in dict.fromkeys(said) if address and address not in asked]
        leader, _, unfound = await _ask(more)
        problems += unfound
        desks += more
    return leader, problems


async def _ask(desks: Sequence[BrokerDesk]) -> tuple[Leader | None, list[Inspected], list[str]]:
    answers = await asyncio.gather(*(desk.inspect(0) for desk in desks))
    found: list[tuple[int, Leader]] = []
    members, problems = [], []
    for desk, answer in zip(desks, answers, strict=True):
        if isinstance(answer, Unreachable):
            problems.append(f"{desk.address}: {answer.reason}")
        elif not is_led(answer):
            problems.append(f"{desk.address}: {answer.broker} {_NO_GROUP}")
        elif answer.measures["replica_is_leading"]:
            found.append((answer.measures["replica_ballot"], Leader(answer.broker, desk.address, desk, answer.facts)))
        else:
            members.append(answer)
            problems.append(f"{desk.address}: {answer.broker} does not lead{_follows(answer)}")
    return max(found, key=lambda each: each[0])[1] if found else None, members, problems


def _follows(answer: Inspected) -> str:
    leader = answer.facts.get("leader", "")
    standing = {
        "unknown": "its group is not formed yet",
        "wiped": "it takes no part: its disk is another one",
        "spare": "it is a spare, and no member yet",
        "removed": "it is no member any more",
        "learning": "it is being taken in, and does not vote yet",
        "following": f"it hears {answer.measures['replica_peers']} of the others, and knows no leader",
    }
    role = answer.facts["role"]
    return f", it follows {leader}" if leader else f": {standing.get(role, f'it is {role}')}"


def nobody(problems: Sequence[str]) -> int:
    print("no leader was found", file=sys.stderr)
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    return CHECK_FAILED
