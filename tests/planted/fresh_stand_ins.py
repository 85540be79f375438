"""The same for stand-ins: mistakes in replacing a broker, by someone who has read the first paper."""

from __future__ import annotations

from typing import Final

from tests.planted.edits import Edit, Fresh

_STANDIN: Final = "holdfast.schemes.tree.standin"
_TEACHING: Final = f"{_STANDIN}.teaching:Teaching"
_LEARNING: Final = f"{_STANDIN}.learning:Learning"
_WAIT_READY: Final = f"{_STANDIN}.wait_ready:WaitReady"
_MISSED: Final = f"{_STANDIN}.missed:Missed"
_ROUTING: Final = "holdfast.protocols.routing"


def _mistake(mistake: str, breaks: str, *edits: tuple[str, str, str]) -> Fresh:
    return Fresh(area="stand-ins", mistake=mistake, breaks=breaks, edits=tuple(Edit(*edit) for edit in edits))


FRESH_STAND_INS: Final[list[Fresh]] = [
    # -------------------------------------------------------------------------------------- what a neighbour tells
    _mistake(
        "advertisements-of-the-other-side-told-back",
        "a stand-in has an advertisement from two sides, and subscriptions go in a circle (Fig. 3)",
        (
            f"{_TEACHING}.on_stand_in_request",
            "texts(pupil.side.advertised())",
            "texts({e: f for of in self._router.advertisements.by_source.values() for e, f in of.items()})",
        ),
    ),
    _mistake(
        "subscriptions-of-the-other-side-told-back",
        "a stand-in has a subscription from two sides, and each of two brokers thinks that the other one leads there",
        (
            f"{_TEACHING}.on_stand_in_advertised",
            "wanted |= self._wanted_under(pupil, known.values())",
            "wanted |= self._wanted_under(pupil, known.values()) | dict(self._router.subscriptions.by_source[peer])",
        ),
    ),
    _mistake(
        "last-is-not-said-without-advertisements",
        "a stand-in waits for a neighbour that advertises nothing until its patience is over",
        (
            f"{_TEACHING}.on_stand_in_request",
            "pieces = list(in_pieces(texts(pupil.side.advertised())))",
            "pieces = list(in_pieces(texts(pupil.side.advertised()))) if pupil.side.advertised() else []",
        ),
    ),
    _mistake(
        "answers-are-not-said-without-subscriptions",
        "a stand-in waits for an answer of a neighbour that wants nothing",
        (
            f"{_TEACHING}._tell_subscriptions",
            "pieces = list(in_pieces(told))",
            "pieces = list(in_pieces(told)) if told else []",
        ),
    ),
    _mistake(
        "only-the-first-advertisement-of-a-message-is-answered",
        "what is wanted of the others is never said, and at the end they count as known",
        (
            f"{_TEACHING}.on_stand_in_advertised",
            "self._wanted_under(pupil, known.values())",
            "self._wanted_under(pupil, list(known.values())[:1])",
        ),
    ),
    _mistake(
        "what-a-stand-in-tells-is-told-on",
        "the whole network takes part in a replacement",
        (
            f"{_TEACHING}.on_stand_in_advertised",
            "    self._neighbours.teller.tell_changes(out)  # what is news in this turn\n",
            "    self._neighbours.teller.tell_changes(out)\n"
            "    for other in self._router.neighbours:\n"
            "        if other != peer and other in self._acquaintances:\n"
            "            out.send(other, message, after=self._neighbours.teller.after)\n",
        ),
    ),
    _mistake(
        "unnamed-entries-stay-for-ever",
        "what only the faulty broker's own clients wanted is forwarded to for ever",
        (f"{_TEACHING}.on_stand_in_done", "if any(unnamed):", "if False:"),
    ),
    _mistake(
        "named-entries-go-too",
        "at the end a neighbour drops all that was beyond the faulty broker, whatever the stand-in has named",
        (f"{_STANDIN}.teaching:_Pupil.has_named", "left.pop(entry, None)", "pass"),
    ),
    _mistake(
        "told-as-any-neighbour-on-the-next-link",
        "a stand-in takes for news what the others know, and never hears what those want of it",
        (f"{_TEACHING}.on_neighbour_unlinked", "self._neighbours.keep_quiet(pupil.name)", "pass"),
    ),
    # ----------------------------------------------------------------------------------- what becomes of events there
    _mistake(
        "queue-of-the-stand-in-is-never-resumed",
        "nothing goes through a stand-in that a neighbour had suspended",
        (f"{_TEACHING}._end", "        self._forwarding.go_on(pupil.name, out)\n", ""),
        (
            "holdfast.schemes.tree.moving:Moving._reconcile",  # which would do it with the next map
            "        self._forwarding.go_on(peer, out)\n",
            "        if not self._forwarding.feeds[peer].is_suspended:\n"
            "            self._forwarding.go_on(peer, out)\n",
        ),
    ),
    _mistake(
        "synch-passes-on-before-it-is-done",
        "the synchronous protocol loses what the basic one does",
        (f"{_TEACHING}.on_stand_in_request", "if pupil.protocol is StandInProtocol.BASIC:", "if True:"),
    ),
    _mistake(
        "queue-is-not-suspended",
        "events come to a stand-in that does not know of who wants them",
        (f"{_TEACHING}._begin", "        self._forwarding.suspend(peer)", "        pass"),
    ),
    _mistake(
        "queue-is-not-suspended-after-a-restart",
        "what the disk has for a stand-in comes there before what it falls under is advertised",
        (f"{_TEACHING}.on_feeds_recovered", "self._forwarding.stay_suspended(pupil.name)", "pass"),
    ),
    _mistake(
        "what-waits-for-the-faulty-is-given-up",
        "events that were never sent to the faulty broker are lost",
        (f"{_ROUTING}.forwarding:Forwarding.move", "self._move(old, new, False, out)", "pass"),
    ),
    _mistake(
        "nothing-is-kept-for-a-neighbour-out-of-reach",
        "what is published between the failure and the replacement is lost",
        (
            f"{_ROUTING}.forwarding:Forwarding._route",
            "keeps = self._store is None and not usable and self.feeds[peer].bytes < self._keeps_bytes",
            "keeps = False",
        ),
    ),
    _mistake(
        "what-was-moved-comes-behind-what-is-new",
        "events that waited for the faulty broker are overtaken by those that were published later",
        (
            f"{_ROUTING}.forwarding:Forwarding.move",
            "self._move(old, new, False, out)",
            "self.__dict__.setdefault('late', {})[new] = [batch.events for batch in self.feeds[old].cut()]",
        ),
        (
            f"{_TEACHING}._end",
            "        self._forwarding.go_on(pupil.name, out)\n",
            "        self._forwarding.go_on(pupil.name, out)\n"
            "        for events in self._forwarding.__dict__.get('late', {}).pop(pupil.name, []):\n"
            "            self._forwarding.send_too(pupil.name, events)\n",
        ),
    ),
    _mistake(
        "tables-are-not-rewritten",
        "events for what was beyond the faulty broker go to nobody",
        (f"{_ROUTING}.targets:Targets.rewrite", "moved = self._of.pop(old, _NONE)", "moved = _NONE"),
    ),
    # ------------------------------------------------------------------------------------------- the wait-ready queue
    _mistake(
        "wait-ready-without-the-log",
        "an event that several subscriptions want goes once for each of them",
        (
            f"{_WAIT_READY}.arrived",
            "            heappush(self._ready.setdefault(entry, []), (group.first, group))",
            "            own = _Group(group.entries)\n"
            "            own.events.extend(group.events)\n"
            "            heappush(self._ready.setdefault(entry, []), (own.first, own))",
        ),
        (
            f"{_WAIT_READY}._remove_group",
            "    del self._groups[group.entries]\n",
            "    if self._groups.get(group.entries) is not group:\n        return\n"
            "    del self._groups[group.entries]\n",
        ),
        (f"{_WAIT_READY}.take", "self._waiting -= len(taken)", "self._waiting = max(0, self._waiting - len(taken))"),
    ),
    _mistake(
        "wait-ready-strands-what-is-left",
        "what nobody has named by the end never leaves",
        (f"{_WAIT_READY}.drain", "EventBatch.joined([event for _, event in left]) if left else EMPTY", "EMPTY"),
    ),
    _mistake(
        "wait-ready-forgets-what-has-come",
        "a new event waits for a subscription that has come already, until the end",
        (f"{_WAIT_READY}.arrived", "        self._known[entry] = None\n", ""),
    ),
    _mistake(
        "wait-ready-indexes-by-the-first-subscription",
        "an event waits for one of those who want it, and the others may have come",
        (f"{_WAIT_READY}._add_group", "for entry in entries:", "for entry in entries[:1]:"),
        (f"{_WAIT_READY}._remove_group", "del waiting[group]", "waiting.pop(group, None)"),
    ),
    _mistake(
        "queues-forget-what-has-left-by-others",
        "what a subscription waits for leaves in another order than it came, when some of it has left before",
        (f"{_WAIT_READY}._next", "elif place < group.first:", "elif False:"),
    ),
    _mistake(
        "events-carry-only-what-has-come",
        "a stand-in does not know that a subscription which is still to come wants an event",
        (
            f"{_WAIT_READY}._next",
            "= group.entries",
            "= tuple(entry for entry in group.entries if entry in self._known)",
        ),
    ),
    # -------------------------------------------------------------------------------- in which order subscriptions come
    _mistake(
        "only-what-was-named-is-told",
        "a subscription that no event waits for is never told where an order is asked for",
        (
            f"{_STANDIN}.preferences:Preferences.in_order",
            "told.items(), ",
            "[each for each in told.items() if each[0] in self._places], ",
        ),
    ),
    _mistake(
        "the-order-stays-at-the-stand-in",
        "neighbours tell in the order of their tables, whatever is asked for",
        (
            f"{_LEARNING}.hear_preferred",
            "out.send(other, message, after=self._neighbours.teller.after)",
            "pass",
        ),
    ),
    _mistake(
        "a-neighbour-met-late-hears-no-order",
        "who comes when the others have been told tells in the order of its tables",
        (f"{_LEARNING}.on_neighbour_accepted", "if source != peer:", "if False:"),
    ),
    _mistake(
        "what-is-known-here-goes-on-in-any-order",
        "what came in the order that was asked for goes on in that of the tables",
        (f"{_LEARNING}._tell_wanted", "if peer in self._preferred:", "if False:"),
    ),
    # ------------------------------------------------------------------------------------------------ at the stand-in
    _mistake(
        "sent-to-is-not-remembered",
        "a neighbour gets an event again for each of its subscriptions that comes late",
        (
            f"{_MISSED}.passed",
            "sent_to = {source: None, **{peer: None for peer, rows in sent.items() if row in rows}}",
            "sent_to = {source: None}",
        ),
    ),
    _mistake(
        "sent-to-is-not-kept-up",
        "a neighbour with two subscriptions that come late gets an event twice",
        (f"{_MISSED}.take", "            kept.sent_to[neighbour] = None\n", ""),
    ),
    _mistake(
        "events-go-back-to-where-they-came-from",
        "a neighbour gets what it sent itself, for a subscription of its own side that comes late",
        (f"{_MISSED}.passed", "{source: None, **{", "{**{"),
    ),
    _mistake(
        "what-is-kept-goes-before-the-last-are-served",
        "a subscription whose answer ends the conversation never gets what was kept for it",
        (f"{_LEARNING}._look", "    self._serve_missed(self.missed.awaited())", "    pass"),
    ),
    _mistake(
        "done-when-all-have-advertised",
        "a stand-in does not wait for what is wanted",
        (f"{_LEARNING}._look", "or self._asked or self._pending:", "or self._asked:"),
    ),
    _mistake(
        "told-to-the-others-and-not-asked-back",
        "what was known to be wanted before an advertisement came is not told to where it came from",
        (f"{_LEARNING}._spread", "self._tell_wanted(peer, subscribed.told, out)", "pass"),
    ),
    _mistake(
        "a-neighbour-met-late-hears-of-advertisements-only",
        "where nothing is advertised it never hears what is wanted, and drops what it knew",
        (
            f"{_LEARNING}.on_neighbour_accepted",
            "self._tell_wanted(peer, self._router.subscription_outlets[peer].told(), out)",
            "pass",
        ),
    ),
    _mistake(
        "who-is-silent-is-waited-for",
        "a neighbour that dies while a stand-in learns holds it up for ever",
        (f"{_LEARNING}.on_timer", "        self._forget(peer)\n", ""),
    ),
    _mistake(
        "lost-links-are-not-asked-again",
        "what a neighbour said on a link that broke in the middle counts as all there is",
        (
            f"{_LEARNING}.on_neighbour_accepted",
            "    self._asked[peer] = None\n    tables",
            "    tables",
        ),
        (f"{_LEARNING}.on_neighbour_unlinked", "        self._asked[peer] = None\n", ""),
    ),
    _mistake(
        "what-is-heard-in-the-conversation-is-not-passed-on",
        "a stand-in keeps to itself what a neighbour advertises",
        (f"{_LEARNING}.hear_advertised", "    self._spread(peer, out)\n", ""),
    ),
    _mistake(
        "a-replaced-broker-that-is-dialled-as-a-rule-waits-for-ever",
        "one that comes back never hears that it was replaced, and goes on taking publications",
        (
            f"{_ROUTING}.links:Links._may_have_changed",
            "return bool(self._roster.map.number) or self._settings.stand_ins.enabled",
            "return bool(self._roster.map.number)",
        ),
    ),
]
