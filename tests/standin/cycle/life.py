"""What happens in runs of networks that see to their stand-ins by themselves: counted, so that runs in which nothing
happens prove nothing; and that no broker is replaced twice for one failure."""

from __future__ import annotations

from collections import Counter

from holdfast.schemes.tree.timeline import ADOPTED, is_failure
from holdfast.trace.schema import Control, Fault, Row

WORDS = {
    "needs a stand-in (crash)": "cases of crashes",
    "needs a stand-in (congestion)": "cases of congestion",
    " stands in for ": "replaced",
    " shares the work of ": "shared",
    " gets its place back": "place back",
    " gets its work back": "work back",
    " gets no stand-in: ": "given up",
    " is well again, and gets no stand-in": "well before",
    "does not agree": "refused by a member",
    "can't be asked": "more than one down",
    "is kept for": "asked for one spare",
}


class Life:
    """Of many runs, one after the other."""

    def __init__(self) -> None:
        self.what: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._t = -1
        self._cases: dict[str, str] = {}  # who sees to what
        self._members: dict[int, tuple[str, ...]] = {}  # by the map's number

    def see(self, row: Row) -> None:
        if row.t < self._t:  # another run
            self._cases, self._members = {}, {}
        self._t = row.t
        match row:
            case Fault() if is_failure(row.state) and row.component in self._cases:
                self.what["who saw to it failed"] += 1
                del self._cases[row.component]
            case Control(what="standin", node=node, detail=detail):
                self._tell(node, detail["what"])
            case Control(what="complaint"):
                self.what["complaints"] += 1
            case Control(what=what, detail=detail) if what == ADOPTED:
                self._adopt(detail["number"], tuple(detail["members"]))
            case _:
                pass

    def _tell(self, node: str, text: str) -> None:
        for words, what in WORDS.items():
            self.what[what] += words in text
        if "needs a stand-in" in text:
            self._cases[node] = text
        elif ": done with map" in text or "no stand-in" in text:
            self._cases.pop(node, None)

    def _adopt(self, number: int, members: tuple[str, ...]) -> None:
        """Two maps of one number would be two stand-ins for one failure."""
        known = self._members.setdefault(number, members)
        if set(known) != set(members):
            self.wrong.append(f"map {number} has {members}, and {known}")
