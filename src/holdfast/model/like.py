"""LIKE patterns, matched in time linear in the text, whatever the pattern.

A pattern is cut at its `%` into segments. Taking the leftmost place for each segment in turn is right
(a later place never helps what follows), so nothing is ever tried again. A plain segment is found by
`str.find`; a segment with `_` by Shift-And: one integer holds, as bits, all the prefixes of the segment that
end at the current character, so each character costs one step however many prefixes are alive.
"""

from __future__ import annotations

import msgspec


class Segment(msgspec.Struct, frozen=True, gc=False):
    """What stands between two `%`: characters, of which those at `holes` match any one character."""

    text: str
    holes: tuple[int, ...] = ()

    def is_at(self, text: str, start: int) -> bool:
        if not self.holes:
            return text.startswith(self.text, start)
        end = start + len(self.text)
        if start < 0 or end > len(text):
            return False
        piece_start = 0
        for hole in (*self.holes, len(self.text)):
            if not text.startswith(self.text[piece_start:hole], start + piece_start):
                return False
            piece_start = hole + 1
        return True

    def find(self, text: str, start: int, end: int) -> int:
        """The leftmost place of the segment within text[start:end], or -1."""
        if not self.holes:
            return text.find(self.text, start, end)
        any_character = sum(1 << hole for hole in self.holes)
        accepts: dict[str, int] = {}
        for place, character in enumerate(self.text):
            if place not in self.holes:
                accepts[character] = accepts.get(character, any_character) | 1 << place
        alive = 0
        found = 1 << (len(self.text) - 1)
        for place in range(start, end):
            alive = (alive << 1 | 1) & accepts.get(text[place], any_character)
            if alive & found:
                return place - len(self.text) + 1
        return -1


class LikePattern(msgspec.Struct, frozen=True, gc=False):
    """A parsed pattern: the segments between its `%`. One segment means that there is no `%`."""

    segments: tuple[Segment, ...]

    def matches(self, text: str) -> bool:
        segments = self.segments
        first, last = segments[0], segments[-1]
        if not (first.is_at(text, 0) if first.holes else text.startswith(first.text)):
            return False
        start = len(first.text)
        if len(segments) == 1:
            return len(text) == start
        end = len(text) - len(last.text)
        if end < start or not last.is_at(text, end):
            return False
        for segment in segments[1:-1]:
            place = segment.find(text, start, end)
            if place < 0:
                return False
            start = place + len(segment.text)
        return True

    @property
    def is_plain(self) -> bool:
        """Whether the pattern has no `_`."""
        return not any(segment.holes for segment in self.segments)

    @property
    def prefix(self) -> str:
        """The characters that every match begins with."""
        first = self.segments[0]
        return first.text[: first.holes[0]] if first.holes else first.text

    @property
    def is_exact(self) -> bool:
        """Whether one string alone matches."""
        return len(self.segments) == 1 and self.is_plain

    @property
    def is_prefix(self) -> bool:
        """Whether the pattern is `prefix%` and nothing else."""
        return len(self.segments) == 2 and not self.segments[1].text and self.is_plain


class PatternError(ValueError):
    """A pattern that can't be parsed; the parser of filters adds the place."""


def parse_like(pattern: str, escape: str, percents_max: int, underscores_max: int) -> LikePattern:
    """The pattern's segments, with adjacent `%` counted but folded into one."""
    segments: list[Segment] = []
    characters: list[str] = []
    holes: list[int] = []
    percents = underscores = 0
    iterator = iter(pattern)
    for character in iterator:
        if character == escape:
            escaped = next(iterator, "")
            if escaped not in ("%", "_", escape):
                raise PatternError(f"in a LIKE pattern, {escape!r} escapes only '%', '_' and itself")
            characters.append(escaped)
        elif character == "%":
            percents += 1
            if not segments or characters:  # a second % in a row adds nothing
                segments.append(Segment("".join(characters), tuple(holes)))
                characters, holes = [], []
        elif character == "_":
            underscores += 1
            holes.append(len(characters))
            characters.append("_")
        else:
            characters.append(character)
    segments.append(Segment("".join(characters), tuple(holes)))
    if percents > percents_max:
        raise PatternError(f"{percents} times '%' in a LIKE pattern exceed the limit like_percents = {percents_max}")
    if underscores > underscores_max:
        raise PatternError(
            f"{underscores} times '_' in a LIKE pattern exceed the limit like_underscores = {underscores_max}"
        )
    return LikePattern(tuple(segments))


def pattern_text(pattern: LikePattern, escape: str) -> str:
    """The pattern in the notation of the language, with `escape` before every literal wildcard."""
    parts = []
    for segment in pattern.segments:
        holes = frozenset(segment.holes)
        parts.append(
            "".join(
                "_" if place in holes else escape + c if c in ("%", "_", escape) else c
                for place, c in enumerate(segment.text)
            )
        )
    return "%".join(parts)
