"""Which advertisements each neighbour has answered, at the levels that buffer: silence is no answer.

An advertisement is answered when the neighbour has said `Settled`: what is wanted under it on its side is known then.
Until it has, the neighbour counts as wanting all that falls under the advertisement (`Router.expect`): such events are
kept for it, and asked for from the side that they come from, so that nothing that was accepted is lost however deep the
network is and whoever in it has never been up (D1-B4.1, D1-C3).

What was answered stays so while the neighbour is away: what it wanted is known, and nothing else is kept for it. It is
remembered by the advertisement's filter, since a broker gives its clients' advertisements new ids when it is restarted;
and on the disk (`TableStore`). An advertisement that an answered one covers is answered, too.

Without advertisements there is one advertisement, of everything, and a complete telling answers it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from holdfast.matching import FilterIndex
from holdfast.model import Filter
from holdfast.protocols.routing.local import EntryIds
from holdfast.protocols.routing.router import Router

EVERYTHING: Final = Filter("")
UNKNOWN: Final = ""  # stands for the entry of an advertisement where nothing is advertised


class AnswerChange(NamedTuple):
    """A neighbour has answered an advertisement, or its answer is worth nothing any more; for the disk."""

    peer: str
    filter: str
    answered: bool


class _Side:
    """One neighbour's."""

    __slots__ = ("answered", "asked", "expected", "told")

    def __init__(self) -> None:
        self.answered: FilterIndex[str] = FilterIndex()  # by their texts: what it knows of and has answered
        self.expected: dict[str, str] = {}  # entry that is told → the subscription that it counts as
        self.told: Counter[str] = Counter()  # filters of the entries that are told, by their texts
        self.asked: dict[int, tuple[str, ...]] = {}  # ticket on this link → entries that were told under it


class Answers:
    """Follows what the router tells neighbours of advertisements, from `begin` on."""

    def __init__(self, neighbours: Sequence[str], ids: EntryIds) -> None:
        self._ids = ids
        self._sides = {peer: _Side() for peer in neighbours}
        self._has_begun = False
        self.changed: list[AnswerChange] = []  # since the last look

    def begin(self, router: Router, answered: dict[str, dict[str, None]], complete: dict[str, None]) -> None:
        """The broker starts, with what its disk says of answers and of neighbours that told everything."""
        for peer, side in self._sides.items():
            for text in answered.get(peer, ()):
                side.answered.add(text, Filter(text))
            if not router.is_advertised and peer not in complete:
                self._expect(router, peer, side, UNKNOWN, EVERYTHING)
            router.advertisement_outlets[peer].track()
            self._follow(router, peer)
        self._has_begun = True

    # ---------------------------------------------------------------------------------------------- other neighbours
    def add(
        self, router: Router, peer: str, is_answered: Callable[[str, Filter], bool], is_complete: bool = True
    ) -> None:
        """A new neighbour, of which it is known which of the advertisements that are there now it has answered, and
        whether it has told all that is beyond it. One that hides others is answered when all of those are."""
        side = self._sides[peer] = _Side()
        if not router.is_advertised and not is_complete:
            self._expect(router, peer, side, UNKNOWN, EVERYTHING)
        outlet = router.advertisement_outlets[peer]
        outlet.track()
        for entry, filter, _ in outlet.take_moves():
            side.told[str(filter)] += 1
            if all(is_answered(*said) for said in outlet.said_by(entry).items()):
                self._add(peer, side, filter)
            else:
                self._expect(router, peer, side, entry, filter)

    def drop(self, router: Router, peer: str) -> None:
        """It is no neighbour any more, and counts as wanting nothing."""
        for subscription in self._sides.pop(peer).expected.values():
            router.forget_expected(peer, subscription)

    def rename(self, old: str, new: str) -> None:
        """Another neighbour has taken the place of one, with all that is beyond it: what was answered, was answered for
        both. Behind `Router.rewrite`."""
        side = self._sides[new] = self._sides.pop(old)
        side.asked.clear()

    def merge(self, router: Router, old: str, new: str) -> None:
        """One neighbour is beyond another one now: what it has not answered, that one has not, either. Behind
        `Router.rewrite`, which has moved what the first counted as wanting."""
        gone, side = self._sides.pop(old), self._sides[new]
        for entry, subscription in gone.expected.items():
            if entry == UNKNOWN and UNKNOWN not in side.expected:
                side.expected[UNKNOWN] = subscription
                continue
            told = router.advertisement_outlets[new].told_as(entry)
            if not told or told in side.expected:
                router.forget_expected(new, subscription)  # it is advertised from there, or is expected anyway
                continue
            side.expected[told] = subscription
            for text in list(side.answered.covering(router.advertisement_outlets[new].wanted[told])):
                side.answered.remove(text)
                self.changed.append(AnswerChange(new, text, False))

    def is_answered(self, router: Router, peer: str, entry: str) -> bool:
        """Whether a neighbour has answered an advertisement that it was told, by itself or by a broader one."""
        told = router.advertisement_outlets[peer].told_as(entry)
        return bool(told) and told not in self._sides[peer].expected

    def unanswered(self, router: Router, peer: str) -> list[str]:
        """Filters of the advertisements that a neighbour has not answered."""
        wanted = router.advertisement_outlets[peer].wanted
        return [str(wanted[entry]) for entry in self._sides[peer].expected if entry != UNKNOWN]

    def follow(self, router: Router, neighbour: str) -> None:
        """What the neighbour is to be told of advertisements has changed."""
        if self._has_begun:
            self._follow(router, neighbour)

    def _follow(self, router: Router, peer: str) -> None:
        side = self._sides[peer]
        for entry, filter, told in router.advertisement_outlets[peer].take_moves():
            text = str(filter)
            side.told[text] += 1 if told else -1
            if not told:
                if not side.told[text]:
                    del side.told[text]
                subscription = side.expected.pop(entry, None)
                if subscription is not None:
                    router.forget_expected(peer, subscription)
            elif side.answered.first_covering(filter) is not None:
                self._add(peer, side, filter)
            else:
                self._expect(router, peer, side, entry, filter)

    def _expect(self, router: Router, peer: str, side: _Side, entry: str, filter: Filter) -> None:
        side.expected[entry] = subscription = self._ids.new()
        router.expect(peer, subscription, filter)

    def _add(self, peer: str, side: _Side, filter: Filter) -> None:
        text = str(filter)
        if text not in side.answered:
            side.answered.add(text, filter)
            self.changed.append(AnswerChange(peer, text, True))

    # ------------------------------------------------------------------------------------------------------- telling
    def are_due(self, peer: str) -> bool:
        """Whether the neighbour has not answered everything."""
        return bool(self._sides[peer].expected)

    def ask(self, peer: str, ticket: int, told: Iterable[str] | None = None) -> None:
        """The neighbour is told these advertisements under a ticket, over its link; None: all that there are. What went
        around the link may not have come, and nothing is an answer to it."""
        side = self._sides[peer]
        entries = side.expected if told is None else told
        side.asked[ticket] = tuple(entry for entry in entries if entry in side.expected and entry != UNKNOWN)

    def told(self, peer: str, taken_back: Mapping[str, Filter], everything: bool) -> None:
        """Advertisements are being taken back, or everything is told: what the neighbour hears of no more is not
        answered any more."""
        side = self._sides[peer]
        if everything:
            gone = [text for text, _ in side.answered.items()]
        else:
            gone = [str(filter) for filter in taken_back.values()]
        for text in gone:
            if text not in side.told and text in side.answered:
                side.answered.remove(text)
                self.changed.append(AnswerChange(peer, text, False))

    # ----------------------------------------------------------------------------------------------------- answering
    def answered(self, router: Router, peer: str, ticket: int) -> None:
        side, advertised = self._sides[peer], router.advertisement_outlets[peer].wanted
        for entry in side.asked.pop(ticket, ()):
            subscription = side.expected.pop(entry, None)
            if subscription is not None:
                self._add(peer, side, advertised[entry])
                router.forget_expected(peer, subscription)

    def known(self, router: Router, peer: str) -> None:
        """The neighbour has told everything on its side: without advertisements, that answers all there is."""
        subscription = self._sides[peer].expected.pop(UNKNOWN, None)
        if subscription is not None:
            router.forget_expected(peer, subscription)

    def unlinked(self, peer: str) -> None:
        """What the neighbour was asked on a link that is gone it may not have heard."""
        if peer in self._sides:
            self._sides[peer].asked.clear()

    def take_changed(self) -> list[AnswerChange]:
        changed, self.changed = self.changed, []
        return changed
