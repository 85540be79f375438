"""What people are told of brokers that work together, as values: `holdfast status` draws them."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Tone(enum.Enum):
    PLAIN = "plain"
    WARNING = "warning"
    ALARM = "alarm"


class Remark(NamedTuple):
    """A line of text."""

    text: str
    tone: Tone = Tone.PLAIN


class Section(NamedTuple):
    """A table, headings first, and what is to be said about it."""

    table: list[list[str]]
    remarks: list[Remark]
