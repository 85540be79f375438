"""The sets of values that one attribute may have in each of many rows, found by how they stand to another set."""

from __future__ import annotations

from holdfast.matching.line import Line, number_line, string_line
from holdfast.matching.ordered import Found
from holdfast.model import domain as d
from holdfast.model.domain import Domain


class Axis:
    """One attribute's domains, by rows."""

    __slots__ = ("_booleans", "_missing", "_numbers", "_strings")

    def __init__(self) -> None:
        self._numbers: Line | None = None
        self._strings: Line | None = None
        self._booleans: dict[int, dict[int, None]] = {d.FALSE_BIT: {}, d.TRUE_BIT: {}}
        self._missing: dict[int, None] = {}

    def add(self, domain: Domain, row: int) -> None:
        if domain.numbers:
            line = self._numbers = self._numbers or number_line()
            for low, high in domain.numbers:
                line.add(low, high, row)
        if domain.strings:
            line = self._strings = self._strings or string_line()
            for low, high in domain.strings:
                line.add(low, high, row)
        for bit, rows in self._booleans.items():
            if domain.booleans & bit:
                rows[row] = None
        if domain.missing:
            self._missing[row] = None

    def remove(self, domain: Domain, row: int) -> None:
        for line, intervals in ((self._numbers, domain.numbers), (self._strings, domain.strings)):
            if line is not None:
                for low, high in intervals:
                    line.remove(low, high, row)
        for bit, rows in self._booleans.items():
            if domain.booleans & bit:
                del rows[row]
        if domain.missing:
            del self._missing[row]

    def meeting(self, domain: Domain) -> Found:
        """The rows whose sets share a value with this one; exactly those."""
        found = Found()
        for line, intervals in ((self._numbers, domain.numbers), (self._strings, domain.strings)):
            if line is not None:
                for low, high in intervals:
                    line.find_meeting(low, high, found)
        self._find_others(domain, found)
        return found

    def within(self, domain: Domain) -> Found:
        """At least the rows whose sets are parts of this one."""
        found = Found()
        for line, intervals in ((self._numbers, domain.numbers), (self._strings, domain.strings)):
            if line is not None:
                for low, high in intervals:
                    line.find_within(low, high, found)
        self._find_others(domain, found)
        return found

    def _find_others(self, domain: Domain, found: Found) -> None:
        for bit, rows in self._booleans.items():
            if domain.booleans & bit:
                found.add_rows(rows)
        if domain.missing:
            found.add_rows(self._missing)

    def holding(self, domain: Domain) -> Found:
        """At least the rows whose sets this one, which is not empty, is a part of: those that hold some part of it."""
        found = Found()
        if domain.missing:
            found.add_rows(self._missing)
        elif domain.booleans:
            found.add_rows(self._booleans[d.TRUE_BIT if domain.booleans & d.TRUE_BIT else d.FALSE_BIT])
        elif domain.strings:
            if self._strings is not None:
                self._strings.find_holding(*domain.strings[0], found)
        elif self._numbers is not None:
            self._numbers.find_holding(*domain.numbers[0], found)
        return found
