"""Finding who leads a group."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.cli.main import CHECK_FAILED
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.messages import Inspected
from holdfast.protocols.operating.operator import Unreachable


class Leader(NamedTuple):
    name: str
    address: str
    desk: BrokerDesk
    facts: dict[str, str]


async def find_leader(desks: Sequence[BrokerDesk]) -> tuple[Leader | None, list[str]]:
    """The leader of the highest ballot among those who think that they lead; and what is to be said if there is none.
    One that stood still for a while may think so too, in an older ballot."""
    answers = await asyncio.gather(*(desk.inspect(0) for desk in desks))
    found: list[tuple[int, Leader]] = []
    problems = []
    for desk, answer in zip(desks, answers, strict=True):
        if isinstance(answer, Unreachable):
            problems.append(f"{desk.address}: {answer.reason}")
        elif answer.facts.get("scheme") != "paxos":
            problems.append(f"{desk.address}: {answer.broker} is no member of a group")
        elif answer.measures["replica_is_leading"]:
            found.append((answer.measures["replica_ballot"], Leader(answer.broker, desk.address, desk, answer.facts)))
        else:
            problems.append(f"{desk.address}: {answer.broker} does not lead{_follows(answer)}")
    return max(found, key=lambda each: each[0])[1] if found else None, problems


def _follows(answer: Inspected) -> str:
    leader = answer.facts.get("leader", "")
    standing = {
        "unknown": "its group is not formed yet",
        "wiped": "it takes no part: its disk is another one",
        "spare": "it is a spare, and no member yet",
        "removed": "it is no member any more",
    }
    role = answer.facts["role"]
    return f", it follows {leader}" if leader else f": {standing.get(role, f'it is {role}')}"


def nobody(problems: Sequence[str]) -> int:
    print("nobody leads", file=sys.stderr)
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    return CHECK_FAILED
