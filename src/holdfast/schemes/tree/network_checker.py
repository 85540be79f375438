"""`network`: an accepted event reaches whom the network's level of reliability promises it to.

What is owed follows from publications, subscriptions and failures:

- what is accepted when all has been well for a while is owed to everyone who wants it; `none` promises that only where
  nothing ever failed (D1-C1);
- at the levels that buffer (D1-C3, D1-C5), an event is owed to a subscription that was confirmed so long before that it
  has got there: each two brokers on the way were well together for a while, one pair after the other. With
  advertisements it is owed, too, to one that was confirmed before anyone published on the event's topic or advertised
  it, whoever was down then or had never been up. (A topic that is too long for a filter advertises all topics; and so,
  here, does an advertisement of more than a topic.)

Beside that, in a network that does not change, an event is owed where the brokers say so themselves: to a subscription
that wants it and whose path was complete when the event was accepted. Every broker on the way from the publisher's
broker to the subscriber's had an entry, from the next one's side, that covers the subscription (`routed`). Of what is
owed a level may lose

- `none`, `periodic`: what was under way while a broker or a link of the path was failing (D1-C2);
- `bypass`: what was under way while anything changed, or while there was no way between the two brokers (D1-C4);
- levels that buffer: nothing (D1-C3, D1-C5); with detours, a path may be complete but for brokers that are down and
  have not heard of the subscription: then it is as with `bypass`.

What waits at the end of the run for a broker or a link that is still down is not lost, and a subscriber whose broker is
down then has yet to hear what it missed. What was accepted before a disk of its path was wiped may be lost: nobody else
had it. Nothing is owed that was not acknowledged, that has a lifetime, or to a subscription that ended, or was told
that it missed something (`missed` without a count: until it is confirmed again; with one: so many events).

Where the network changes, all follows from the history of its maps, and nothing from tables. A change takes nothing
away, at any level, unless a failure meets it where events are not stored; but a subscription's word that is under way
when it begins has got there only a while after it. A broker that was declared lost takes with it what a wiped disk
does. Who is no member any more owes nothing, and nothing is owed there.

A broker that a stand-in takes the place of (D0) takes with it what it had been sent, or had sent itself, a while before
it failed, and nothing else; what its own clients want is owed again from when it has its place back, and their word has
got around. Of what was accepted meanwhile they are to be told: a subscription that lacks some of that, and whose owner
did not hear that it missed something, is a violation. That the broker was `apart` excuses nothing else: it still has
what it had before.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from holdfast.protocols.sessions.requests import APART
from holdfast.schemes.tree.outages import Outages
from holdfast.schemes.tree.timeline import ADOPTED
from holdfast.trace.checkers.checker import Checker, Handlers
from holdfast.trace.filters import FilterCache
from holdfast.trace.schema import (
    Accepted,
    Acknowledged,
    Confirmed,
    Control,
    Delivered,
    Fault,
    Header,
    Hop,
    Missed,
    Published,
    Routed,
    Subscribed,
    Unsubscribed,
)

MILLISECOND = 1_000_000
LOCAL = ""
BUFFERING = ("buffered", "bypass+buffered")
DETOURING = ("bypass", "bypass+buffered")
TOPIC_LONG = 2_000  # characters: perhaps too long for a filter
ANY_TOPIC = None
_TOPIC = re.compile(r"topic = '([^']*)'")


class _Owed(NamedTuple):
    """An event that is owed to a subscription, or may be: accepted when and where, and for which reasons."""

    event: str
    t: int
    home: str  # the publisher's broker
    last: str  # the subscriber's
    since: int  # when the subscription was confirmed
    settled: bool  # all had been well for a while
    whole: bool  # no broker of the path had to be left out: all of them knew
    around: bool  # those that did not know were down, and detours leave them out


class Network(Checker):
    """Keeps the tables of all brokers, and what was owed by them."""

    def __init__(self, name: str = "network") -> None:
        handlers: Handlers = {
            Accepted: self._on_accepted,
            Acknowledged: self._on_acknowledged,
            Confirmed: self._on_confirmed,
            Control: self._on_control,
            Delivered: self._on_delivered,
            Fault: self._on_fault,
            Hop: self._on_hop,
            Missed: self._on_missed,
            Published: self._on_published,
            Routed: self._on_routed,
            Subscribed: self._on_subscribed,
            Unsubscribed: self._on_unsubscribed,
        }
        super().__init__(name, handlers)
        self._level = "none"
        self._advertised = True
        self._outages = Outages((), (), 0, 0)
        self._filters = FilterCache()
        self._covers = lru_cache(maxsize=None)(self._ask_covers)
        self._matches = lru_cache(maxsize=None)(self._ask_matches)
        self._events: dict[str, Published] = {}
        self._acknowledged: set[str] = set()
        self._first_use: dict[str | None, int] = {}  # topic → when it was first published on
        self._tables: dict[str, dict[str, dict[str, str]]] = {}  # node → source → entry → filter
        self._owners: dict[str, dict[str, str]] = {}  # node → entry of its own clients → subscriber/number
        self._subscriptions: dict[str, Subscribed] = {}  # in place
        self._since: dict[str, tuple[int, str]] = {}  # subscription → when it was confirmed, if it is, and where
        self._owed: dict[str, dict[str, _Owed]] = {}  # subscription → event → what is owed
        self._delivered: dict[str, set[str]] = {}
        self._missed: dict[str, int] = {}  # subscription → how many it was told that it missed
        self._unheard: dict[str, dict[str, _Owed]] = {}  # subscription → event that its broker was not there for
        self._touched: dict[str, dict[str, int]] = {}  # broker that is replaced → event → when it was first sent there

    def begin(self, header: Header) -> None:
        said = header.settings
        self._level = said.get("reliability", "none")
        self._advertised = said.get("advertisements", True)
        # Until a failure is noticed, or a link is there again and tables are told, with time to spare.
        times = ("suspect_ms_max", "dial_every_ms", "dial_every_ms", "restore_ms", "refresh_ms")
        grace = 2_000 + sum(said.get(name, 0) for name in times)
        self._touched = {broker: {} for broker in said.get("replaced", ())}
        links = [(one, other) for one, other in said.get("links", ())]
        notice = 1_000 + said.get("suspect_ms_max", 0)
        self._outages = Outages(
            said.get("brokers", ()),
            links,
            grace * MILLISECOND,
            notice * MILLISECOND,
            said.get("changes", False),
            said.get("forgetful", ()),
            said.get("prompt_ms", 0) * MILLISECOND,
        )

    def _on_control(self, row: Control) -> None:
        if row.what == ADOPTED:
            self._outages.adopt(row)

    # ------------------------------------------------------------------------------------------------------- tables
    def _on_routed(self, row: Routed) -> None:
        if row.table != "subscriptions":
            if row.source == LOCAL and row.present:
                self._first_use.setdefault(_advertised(row.filter), row.t)
            return
        table = self._tables.setdefault(row.node, {}).setdefault(row.source, {})
        if not row.present:
            table.pop(row.entry, None)
            return
        table[row.entry] = row.filter
        if row.owner:
            self._owners.setdefault(row.node, {})[row.entry] = row.owner

    def _on_fault(self, row: Fault) -> None:
        self._outages.see(row)
        if row.state == "crashed":
            gone = [id for id, subscribed in self._subscriptions.items() if subscribed.subscriber == row.component]
            for subscription in gone:
                self._end(subscription)
        forgets = row.state == ("up" if self._level in BUFFERING else "crashed")
        if forgets or row.state == "wiped":
            # A table on the disk counts while its broker is down: what is sent to it waits. It says anew what it has.
            self._tables.pop(row.component, None)
            self._owners.pop(row.component, None)

    # ------------------------------------------------------------------------------------------------ subscriptions
    def _on_subscribed(self, row: Subscribed) -> None:
        self._subscriptions[row.subscription] = row

    def _on_confirmed(self, row: Confirmed) -> None:
        if row.subscription not in self._subscriptions:
            return
        since, home = self._since.get(row.subscription, (row.t, row.via))
        # At another broker it begins anew, though nothing was missed at the one before.
        self._since[row.subscription] = (since, home) if home == row.via else (row.t, row.via)

    def _on_missed(self, row: Missed) -> None:
        if row.count is None:
            self._unheard.pop(row.subscription, None)
            if row.reason != APART:  # then its broker still has what it had before, and is the same one
                self._since.pop(row.subscription, None)
                self._owed.pop(row.subscription, None)
        else:
            self._missed[row.subscription] = self._missed.get(row.subscription, 0) + row.count

    def _on_unsubscribed(self, row: Unsubscribed) -> None:
        self._end(row.subscription)

    def _end(self, subscription: str) -> None:
        self._subscriptions.pop(subscription, None)
        self._since.pop(subscription, None)
        self._owed.pop(subscription, None)
        self._unheard.pop(subscription, None)

    # ------------------------------------------------------------------------------------------------------- events
    def _on_published(self, row: Published) -> None:
        self._events[row.event] = row
        self._first_use.setdefault(row.topic if len(row.topic) < TOPIC_LONG else ANY_TOPIC, row.t)

    def _on_acknowledged(self, row: Acknowledged) -> None:
        self._acknowledged.add(row.event)

    def _on_delivered(self, row: Delivered) -> None:
        self._delivered.setdefault(row.subscription, set()).add(row.event)

    def _on_hop(self, row: Hop) -> None:
        for end in (row.source, row.target) if self._touched else ():
            if end in self._touched:
                for event in row.events:
                    self._touched[end].setdefault(event, row.t)

    def _on_accepted(self, row: Accepted) -> None:
        settled = self._outages.is_settled(row.t) and not (self._level == "none" and self._outages.any_ever)
        if row.node in self._touched and not self._outages.is_member(row.node, row.t):
            return  # it was replaced, and has not heard of it yet
        for event in row.events:
            published = self._events.get(event)
            if published is None or published.lifetime:
                continue
            for subscription, (since, last) in self._since.items():
                text = self._subscriptions[subscription].filter
                if not self._matches(event, text):
                    continue
                if last in self._touched and not self._outages.is_member(last, row.t):
                    # Nobody stands in for those who are at home there; but they are to hear of it.
                    missed = _Owed(event, row.t, row.node, last, since, False, False, False)
                    self._unheard.setdefault(subscription, {}).setdefault(event, missed)
                    continue
                for broker in (last, row.node) if last in self._touched or row.node in self._touched else ():
                    since = max(since, self._outages.rejoined(broker, row.t))
                # What has just been subscribed to may still be on its way.
                known = settled and self._is_known(row.node, last, since, row.t)
                local = not self._outages.changes and self._is_in_place(subscription, last)
                whole = local and self._is_complete(row.node, last, text, row.t, detours=False)
                around = local and self._level in DETOURING
                around = around and self._is_complete(row.node, last, text, row.t, detours=True)
                owed = _Owed(event, row.t, row.node, last, since, known, whole, around)
                # What was accepted at two brokers is owed by the first.
                self._owed.setdefault(subscription, {}).setdefault(event, owed)

    def _is_known(self, home: str, last: str, since: int, t: int) -> bool:
        """Whether a subscription has got there, where all has been well for a while."""
        if self._outages.changes:
            return self._outages.reaches(last, home, since) <= t
        return t - since >= self._outages.grace

    def _is_in_place(self, subscription: str, last: str) -> bool:
        """Whether its own broker says that it has it."""
        owner, entries = _owner(subscription), self._tables.get(last, {}).get(LOCAL, {})
        return any(entry in entries for entry, other in self._owners.get(last, {}).items() if other == owner)

    def _is_complete(self, home: str, last: str, text: str, t: int, detours: bool) -> bool:
        """Whether every broker on the way knows that it leads there; but for those that detours leave out."""
        path = self._outages.path(home, last)
        for here, following in pairwise(path):
            if detours and here != home and self._outages.is_down(here, t):
                continue
            entries = self._tables.get(here, {}).get(following, {})
            if not any(self._covers(other, text) for other in entries.values()):
                return False
        return True

    def _ask_covers(self, broad: str, narrow: str) -> bool:
        return broad == narrow or self._filters[broad].covers(self._filters[narrow])

    def _ask_matches(self, event: str, text: str) -> bool:
        published = self._events[event]
        return self._filters[text].matches(published.attributes, published.topic)

    # ---------------------------------------------------------------------------------------------------------- end
    def finish(self) -> None:
        for subscription, owed in self._owed.items():
            delivered = self._delivered.get(subscription, set())
            lacking = [
                each
                for event, each in owed.items()
                if event in self._acknowledged and event not in delivered and not self._may_lose(each)
            ]
            for each in lacking[self._missed.get(subscription, 0) :]:
                why = "when the path to it was complete" if each.whole or each.around else "long after it was confirmed"
                why = "when all had been well for a while" if each.settled else why
                message = f"{each.event} was accepted at {each.home}, {why}, and never reached {subscription}"
                self.violate(each.t, f"{message} at {each.last}", (each.event,), (subscription,))

        for subscription, unheard in self._unheard.items():
            delivered = self._delivered.get(subscription, set())
            for each in unheard.values():
                if each.event in self._acknowledged and each.event not in delivered and not self._is_away(each.last):
                    message = f"{each.event} was accepted at {each.home} when {each.last} was not in the network"
                    message += f", and nobody told the owner of {subscription} that it missed something"
                    self.violate(each.t, message, (each.event,), (subscription,))
                    break

    def _is_away(self, broker: str) -> bool:
        """To the end: what waits there waits, and its subscribers have yet to hear that they missed something."""
        return self._outages.is_off(broker) or self._outages.is_former(broker)

    def _may_lose(self, owed: _Owed) -> bool:
        if self._is_away(owed.last):
            return True
        if self._touched and self._may_be_gone(owed):
            return True
        if self._outages.wiped_since(owed.home, owed.last, owed.t):
            return True
        blocked = self._outages.is_blocked(owed.home, owed.last)  # to the end: it is stored, and waits
        if blocked and self._level not in DETOURING:
            return True
        if not blocked and self._level in BUFFERING and (owed.whole or owed.settled or self._has_got_there(owed)):
            return False
        if not (owed.settled or owed.whole or owed.around):
            return True
        if self._level in DETOURING:
            return self._outages.is_cut_off(owed.home, owed.last, owed.t)
        return self._outages.touched(owed.home, owed.last, owed.t)

    def _may_be_gone(self, owed: _Owed) -> bool:
        """Whether it was under way when a broker that was replaced failed: nobody else had it, or nobody stands in for
        those who are at home there."""
        if self._outages.was_quiet(owed.home, owed.last, owed.t):
            return False
        if owed.last in self._touched and self._outages.is_replaced_since(owed.last, owed.t):
            return True
        return any(
            owed.event in events and self._outages.was_lost_with(broker, owed.t, events[owed.event])
            for broker, events in self._touched.items()
        )

    def _has_got_there(self, owed: _Owed) -> bool:
        """Whether a level that buffers knew of the subscription, or kept the event since it did not know."""
        published = self._events[owed.event]
        if self._outages.reaches(owed.last, owed.home, owed.since) <= published.t:
            return True
        first = min(self._first_use.get(topic, published.t) for topic in (published.topic, ANY_TOPIC))
        if not (self._outages.is_member(owed.last, owed.since) and self._outages.is_member(owed.home, owed.t)):
            return False
        return self._advertised and owed.since <= first


def _advertised(text: str) -> str | None:
    """The topic that an advertisement names, if it advertises that and nothing else."""
    found = _TOPIC.fullmatch(text)
    return "" if text == "topic IS NULL" else found[1] if found else ANY_TOPIC


def _owner(subscription: str) -> str:
    subscriber, _, number = subscription.split("/")
    return f"{subscriber}/{number}"
