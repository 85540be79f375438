"""What other sites ask of this one, as operators: to lend a spare, and to take it back (D0-A9). The program beside the
broker does it; here requests become errands, and what came of them is told among the broker's facts, by ticket.

It does not outlive the broker: the program knows what is lent, and gives the same broker for the same ticket again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from holdfast.protocols.operating.changes import misunderstood, shown
from holdfast.protocols.routing.network_map import NetworkMember
from holdfast.schemes.tree.standin.cycle.errands import Failed, Lend, Lent, Outcome, TakeBack

LEND, GIVE_BACK = "lend", "give-back"
LENDING: Final = "lending"  # the fact
# What is told of each: `to` is the site that borrows, by its name; `id` the broker that goes back.
ACTIONS: Final = {LEND: ("to", "ticket", "wish"), GIVE_BACK: ("to", "id")}
WISH_BYTES_MAX: Final = 12 * 1024  # with the rest of the request it fits into a message that has no events
TEXT_BYTES_MAX: Final = 128
UNDER_WAY_MAX: Final = 4
REMEMBERED_MAX: Final = 8
_PROBLEM_MAX: Final = 500


class _Ended(msgspec.Struct, frozen=True, array_like=True):
    """What came of a request: a broker, or a problem."""

    ticket: str
    problem: str
    member: NetworkMember | None = None
    until_s: int = 0


_decode = msgspec.json.Decoder(tuple[_Ended, ...]).decode
Asked: TypeAlias = Lend | TakeBack


class Lending:
    """At one broker."""

    def __init__(self) -> None:
        self._under_way: list[Asked] = []
        self._ended: dict[str, _Ended] = {}  # by ticket, the newest last

    def begin(self, action: str, told: Mapping[str, str], taken: Sequence[str]) -> Asked | str:
        """The errand that a request is; or what is against it; or an empty text, if there is nothing to do for it any
        more. `taken` are brokers of this network that are not free."""
        if problem := misunderstood(action, told, ACTIONS):
            return problem
        for name in ACTIONS[action]:
            most = WISH_BYTES_MAX if name == "wish" else TEXT_BYTES_MAX
            if not told.get(name) or len(told[name].encode()) > most or not told[name].isprintable():
                return f"a change {action!r} has to say {name!r}, in {most} bytes, and not {shown(told.get(name, ''))}"
        if action == GIVE_BACK:
            return self._errand(TakeBack(told["to"], told["id"]))
        if told["ticket"] in self._ended:
            return ""
        lend = Lend(told["to"], told["ticket"], told["wish"], tuple(taken))
        if any(isinstance(each, Lend) and each.ticket == lend.ticket for each in self._under_way):
            return ""
        return self._errand(lend)

    def _errand(self, asked: Asked) -> Asked | str:
        if asked in self._under_way:
            return ""
        if len(self._under_way) >= UNDER_WAY_MAX:
            return f"{len(self._under_way)} requests of other sites are under way: ask again"
        self._under_way.append(asked)
        return asked

    def ended(self, asked: Asked, outcome: Outcome) -> None:
        """What came of an errand; also if the program has not said so in time."""
        self._under_way.remove(asked)
        if isinstance(asked, TakeBack):
            return
        match outcome:
            case Lent(member=member, until_s=until):
                self._ended[asked.ticket] = _Ended(asked.ticket, "", member, until)
            case Failed(problem=problem):
                self._ended[asked.ticket] = _Ended(asked.ticket, problem[:_PROBLEM_MAX])
            case _:
                self._ended[asked.ticket] = _Ended(asked.ticket, "the program beside the broker did something else")
        while len(self._ended) > REMEMBERED_MAX:
            del self._ended[next(iter(self._ended))]

    def facts(self) -> dict[str, str]:
        """For those who asked."""
        if not self._ended:
            return {}
        return {LENDING: msgspec.json.encode(tuple(self._ended.values())).decode()}


def outcome_of(fact: str, ticket: str) -> Lent | Failed | None:
    """What a broker tells of a request; None as long as it tells nothing."""
    try:
        told = _decode(fact) if fact else ()
    except msgspec.DecodeError:
        return Failed("the broker that was asked tells something else of what it lends")
    found = next((ended for ended in told if ended.ticket == ticket), None)
    if found is None:
        return None
    return Failed(found.problem) if found.member is None else Lent(found.member, found.until_s)
