"""`understood`: no broker of a network takes what another one says for a mistake, or for that of another network.

Brokers of one run are all sound and of one site: what they say to each other is never against the rules, whatever
fails and whatever is changed. A link that is closed for such a reason is made again, which hides the mistake, but for
what was on its way.
"""

from __future__ import annotations

from typing import Final

from holdfast.trace.checkers.checker import Checker
from holdfast.trace.schema import Control, Header

REFUSALS: Final = ("protocol-error", "other-map", "other-network")


class Understood(Checker):
    def __init__(self, name: str = "understood") -> None:
        super().__init__(name, {Control: self._on_control})
        self._brokers: frozenset[str] = frozenset()

    def begin(self, header: Header) -> None:
        said = header.settings
        self._brokers = frozenset((*said.get("brokers", ()), *said.get("spares", ())))

    def _on_control(self, row: Control) -> None:
        peer = row.detail.get("peer", "")
        if row.what in REFUSALS and peer in self._brokers:
            problem = row.detail.get("problem", row.what)
            self.violate(row.t, f"{row.node} ends its link with {peer}: {problem}")
