"""The promise of the scheme's answers: an event that is acknowledged is stored at all neighbours of its broker."""

from __future__ import annotations

from holdfast.trace.checkers.checker import Checker
from holdfast.trace.schema import Accepted, Acknowledged, Control, Header

STORED = "stored"  # what brokers note of events that came


class StoredBeside(Checker):
    def __init__(self) -> None:
        super().__init__(
            "stored-beside",
            {Control: self._on_control, Accepted: self._on_accepted, Acknowledged: self._on_acknowledged},
        )
        self._near: dict[str, set[str]] = {}
        self._home: dict[str, str] = {}  # event → the broker that took it in
        self._stored: dict[str, set[str]] = {}  # event → where it came

    def begin(self, header: Header) -> None:
        for one, other in header.settings["links"]:
            self._near.setdefault(one, set()).add(other)
            self._near.setdefault(other, set()).add(one)

    def _on_accepted(self, row: Accepted) -> None:
        self._home |= dict.fromkeys(row.events, row.node)

    def _on_control(self, row: Control) -> None:
        if row.what == STORED:
            for event in row.detail["events"]:
                self._stored.setdefault(event, set()).add(row.node)

    def _on_acknowledged(self, row: Acknowledged) -> None:
        home = self._home.get(row.event, "")
        missing = sorted(self._near.get(home, set()) - self._stored.get(row.event, set()))
        if missing:
            self.violate(row.t, f"{row.event} is acknowledged, and not stored at {', '.join(missing)}", (row.event,))
