"""Mistakes by someone who read the protocols and not the checks: what could have gone wrong in writing them."""

from __future__ import annotations

from tests.planted.edits import Edit, Fresh
from tests.planted.fresh_on_demand import FRESH_ON_DEMAND
from tests.planted.fresh_stand_ins import FRESH_STAND_INS

_PAXOS = "holdfast.schemes.paxos"
_SESSIONS = "holdfast.protocols.sessions"
_CORE = "holdfast.protocols.core"
_DESKS = "holdfast.protocols.desks"
_CURSORS = "holdfast.protocols.cursors"
_ROUTING = "holdfast.protocols.routing"
_BYPASS = "holdfast.schemes.tree.bypass"
_STORAGE = "holdfast.storage"

FRESH: list[Fresh] = [
    # ------------------------------------------------------------------------------------------------ classic rounds
    Fresh(
        area="paxos",
        mistake="promise-told-before-it-is-on-the-disk",
        breaks="two values are decided in a slot when an acceptor crashes between its promise and its disk, and then "
        "votes for the leader before",
        edits=(
            Edit(
                f"{_PAXOS}.voter:Voter.on_prepare",
                "out.send(peer, part)",
                "out.send(peer, part, after=__import__('holdfast.kernel.outbox', fromlist=['NOW']).NOW)",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="votes-told-before-they-are-on-the-disk",
        breaks="an acknowledged event is lost when a voter crashes before its vote is on the disk",
        edits=(
            Edit(
                f"{_PAXOS}.voter:Voter.finish",
                "self._peers.tell_all(Learn(ballot, slots), out)",
                "self._peers.tell_all(Learn(ballot, slots), out, now=True)",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="own-vote-counted-before-it-is-on-the-disk",
        breaks="an acknowledged event is lost: the leader answers by its own vote and one other, and crashes before "
        "its disk has it",
        edits=(
            Edit(
                f"{_PAXOS}.voter:Voter._vote",
                "    self._tell_later(ballot, ",
                "    self._decided.vote(ballot, range(first, first + len(values)), self._settings.name)\n"
                "    self._tell_later(ballot, ",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="own-promise-safe-with-any-write",
        breaks="two values in a slot: a candidate counts its own promise when an earlier write is durable, crashes, "
        "and votes below that promise after its restart",
        edits=(
            Edit(
                f"{_PAXOS}.acceptor:Acceptor.on_durable",
                "    if token >= self._promise_token:\n        self._durable_promise = self.promised",
                "    self._durable_promise = self.promised",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="promise-restored-from-the-votes",
        breaks="two values in a slot: a promise that no vote followed is in the acceptor's snapshot only, and after a "
        "restart the acceptor votes for the leader before",
        edits=(
            Edit(
                f"{_PAXOS}.acceptor:Acceptor.recover",
                "self.promised = record.promised",
                "self.promised = max((vote.ballot for vote in record.votes), default=0)",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="ballot-heard-of-before-the-own-disk-has-it",
        breaks="one ballot is used twice, for two values in a slot: others promise, the candidate leads without its "
        "own promise on the disk, crashes, and takes the same ballot again",
        edits=(
            Edit(
                f"{_PAXOS}.leader:Leader._prepare",
                "self._peers.tell_all(Prepare(ballot, first), out)",
                "self._peers.tell_all(Prepare(ballot, first), out, now=True)",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="parts-of-two-answers-make-one-promise",
        breaks="a decided value is overruled: a large promise that was said twice, with other votes the second time, "
        "is put together from parts of both and lacks a vote",
        edits=(
            Edit(
                f"{_PAXOS}.promises:PromiseParts.add",
                "if any((part.ballot, part.first, part.executed, part.last) != _of(promise) for part in "
                "known.values()):",
                "if any(part.ballot != promise.ballot for part in known.values()):",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="what-others-executed-is-proposed-again",
        breaks="a new leader that was behind proposes nothing in slots that others executed and tell no votes for; two "
        "values in a slot",
        edits=(
            Edit(
                f"{_PAXOS}.proposer:Proposer.promise",
                "self.caught_up_at = max(executed, *(promise.executed for promise in self._promises.values()))",
                "self.caught_up_at = executed",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="half-of-an-even-group-is-a-majority",
        breaks="two halves of a group of two or four (while one is replaced) decide two values in a slot",
        edits=(
            Edit(
                f"{_PAXOS}.roster:Roster.set",
                "self.quorum = quorum(len(self.voters))",
                "self.quorum = (len(self.voters) + 1) // 2",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="votes-of-all-ballots-counted-together",
        breaks="a value counts as decided by votes of two ballots for two values",
        edits=(
            Edit(
                f"{_PAXOS}.decided:DecidedLog._look",
                "voters = self._votes.get(slot, {}).get(ballot, ())",
                "voters = set[str]().union(*self._votes.get(slot, {}).values())",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="first-slot-of-a-ballot-not-alone",
        breaks="old voters decide slots behind a change of the voters that an earlier leader proposed and a later one "
        "picks",
        edits=(
            Edit(
                f"{_PAXOS}.proposer:Proposer.room",
                "return self.gate if executed < self.gate else executed + self._pipeline",
                "return executed + self._pipeline",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="serves-before-it-has-executed-what-it-picked",
        breaks="a client that comes to a new leader is told that its newest subscription is forgotten, though an "
        "earlier leader confirmed it",
        edits=(
            Edit(
                f"{_PAXOS}.proposer:Proposer.promise",
                "self._serves_after = self.next_slot - 1",
                "self._serves_after = self.caught_up_at",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="renewed-ballot-is-asked-for-once",
        breaks="no progress for ever: a leader that takes a new ballot, and whose question or answers are lost, waits "
        "while its heartbeats keep everyone else quiet",
        edits=(
            Edit(
                f"{_PAXOS}.leader:Leader._repeat",
                "    if proposer.phase is Phase.RENEWING:\n"
                "        self._peers.tell_all(Prepare(proposer.ballot, proposer.first), out)\n",
                "",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="origins-are-no-part-of-the-snapshot",
        breaks="replicas come apart: one that was restored executes an entry of a deposed leader that the others skip",
        edits=(Edit(f"{_PAXOS}.learner:Learner._state", "sorted(origins),", "[],"),),
    ),
    Fresh(
        area="paxos",
        mistake="vouches-for-slots-whose-events-it-lacks",
        breaks="no leader for ever: of two that are left, the one that took a snapshot lacks its events, and tells no "
        "votes for the slots in which the other could follow",
        edits=(
            Edit(
                f"{_PAXOS}.learner:Learner.vouched",
                "return self._decided.executed if is_of_help else self._acceptor.trimmed",
                "return self._decided.executed",
            ),
        ),
    ),
    Fresh(
        area="paxos",
        mistake="votes-forgotten-up-to-what-is-executed",
        breaks="no leader for ever: votes are gone in slots that only a minority holds, and one that lacks events has "
        "nothing to bring the others there",
        edits=(
            Edit(
                f"{_PAXOS}.learner:Learner._trim",
                "self._forget_votes(earlier, out)",
                "self._acceptor.trim(self._decided.executed + 1, out)",
            ),
        ),
    ),
    # --------------------------------------------------------------------------------------------------- fast rounds
    Fresh(
        area="fast",
        mistake="fast-quorum-of-two-thirds",
        breaks="two values in a slot of a group of seven: five of seven are too few for a later leader to see what "
        "was decided in a fast round",
        edits=(
            Edit(
                f"{_PAXOS}.roster:Roster.set",
                "self.fast_quorum = fast_quorum(len(self.voters))",
                "self.fast_quorum = 2 * len(self.voters) // 3 + 1",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="classic-vote-not-above-the-fast-one-of-its-ballot",
        breaks="a value that was decided in the classic round is overruled by what most voted for in the fast round of "
        "the same ballot",
        edits=(
            Edit(
                f"{_PAXOS}.picking:_pick_in_slot",
                "leading = [vote for vote in votes if vote.round == highest]",
                "leading = [vote for vote in votes if vote.ballot == highest[0]]",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="recovers-with-a-value-that-it-knows",
        breaks="two values in a slot: what may be decided in the fast round is known to the leader by its digest only, "
        "and it proposes another",
        edits=(
            Edit(
                f"{_PAXOS}.coordinator:Coordinator._recovered_value",
                "return self._preferred(slot, votes) if digest is None else self._fast.value_in(slot, digest)",
                "known = None if digest is None else self._fast.value_in(slot, digest)\n"
                "    return self._preferred(slot, votes) if known is None else known",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="votes-fast-after-it-voted-classic",
        breaks="a vote in the classic round is replaced by one in the fast round below it; what was decided is lost "
        "with the next election",
        edits=(
            Edit(
                f"{_PAXOS}.acceptor:Acceptor.may_vote_fast",
                "return may_vote(self.promised, NO_ROUND if vote is None else vote.round, round_of(ballot, fast=True))",
                "return ballot >= self.promised and (vote is None or not vote.fast or vote.ballot < ballot)",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="votes-fast-below-where-rounds-are-open",
        breaks="two values in a slot of four or more replicas: those who missed the leader's classic proposal vote "
        "fast for something else there",
        edits=(
            Edit(
                f"{_PAXOS}.fast:FastRounds.free_slots",
                "range(max(self._first, executed + 1), executed + self._settings.pipeline + 1)",
                "range(executed + 1, executed + self._settings.pipeline + 1)",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="own-fast-vote-counted-before-it-is-on-the-disk",
        breaks="an acknowledged event is lost when the leader crashes before its disk has the vote that decided it",
        edits=(
            Edit(
                f"{_PAXOS}.fast:FastRounds.vote",
                "        self._tell(ballot, slot, digest)",
                "        self._tell(ballot, slot, digest)\n"
                "        self._count(ballot, slot, self._settings.name, digest, out)",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="fast-votes-told-before-they-are-on-the-disk",
        breaks="an acknowledged event is lost when a voter crashes that had told its vote and not written it",
        edits=(
            Edit(
                f"{_PAXOS}.fast:FastRounds.finish",
                "FastLearn(ballot, list(votes), list(votes.values())), out)",
                "FastLearn(ballot, list(votes), list(votes.values())), out, now=True)",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="time-not-restored-with-a-snapshot",
        breaks="replicas come apart: what clients say to all has the time of the entry before, which a restored "
        "replica does not know, so that an event with a lifetime has expired for the others and not for it",
        edits=(
            Edit(
                f"{_PAXOS}.learner:Learner._restore",
                "self.commands, self.wall, self._origins = state.commands, state.wall, dict(state.origins)",
                "self.commands, self._origins = state.commands, dict(state.origins)",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="fast-rounds-opened-behind-a-change",
        breaks="old voters decide slots behind a change of the voters that is proposed and not executed",
        edits=(
            Edit(
                f"{_PAXOS}.coordinator:Coordinator._open_if_it_may_pay_off",
                "elif executed >= proposer.changing_at:",
                "else:",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="holes-below-used-slots-not-filled",
        breaks="no progress for ever: a slot that nobody uses lies before one that is decided",
        edits=(
            Edit(
                f"{_PAXOS}.coordinator:Coordinator.on_timer",
                "for slot in range(max(self._proposer.fast_from, executed + 1), last + 1):",
                "for slot in [slot for slot in sorted(self._seen) if slot <= last]:",
            ),
        ),
    ),
    Fresh(
        area="fast",
        mistake="votes-of-other-rounds-of-the-slot-shown-to-the-leader",
        breaks="two values in a slot: votes of an earlier ballot's fast round are taken for answers in the present one",
        edits=(
            Edit(
                f"{_PAXOS}.vote_count:VoteCount.votes",
                "return self._votes.get(slot, {}).get(ballot, {})",
                "rounds = self._votes.get(slot, {})\n"
                "    return {voter: digest for other in sorted(rounds) for voter, digest in rounds[other].items()}",
            ),
        ),
    ),
    # -------------------------------------------------- membership, formation, snapshots, transfer, holding of events
    Fresh(
        area="membership",
        mistake="learners-count-for-the-majority",
        breaks="no progress: of three replicas one is dead, and while its replacement learns three votes are needed",
        edits=(
            Edit(
                f"{_PAXOS}.roster:Roster.set",
                "self.quorum = quorum(len(self.voters))",
                "self.quorum = quorum(len(self.names))",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="holding-compares-slots-with-positions",
        breaks="a replica claims to hold events that are not on its disk, votes are forgotten for that, and after a "
        "crash of the others the events are lost",
        edits=(
            Edit(
                f"{_PAXOS}.holding:Holding.look",
                "while self._marks and self._marks[0][1] <= durable:",
                "while self._marks and self._marks[0][0] <= durable:",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="votes-forgotten-for-what-one-replica-holds",
        breaks="acknowledged events are lost, or nobody may lead, when the one replica that held them is gone",
        edits=(
            Edit(
                f"{_PAXOS}.leader:Leader._trim_due",
                "safe = held[self._roster.quorum - 1] if len(held) >= self._roster.quorum else 0",
                "safe = held[0] if len(held) >= self._roster.quorum else 0",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="snapshot-written-before-the-events-that-it-speaks-of",
        breaks="after a power cut of all replicas snapshots speak of events that no log has: nobody may lead for ever",
        edits=(Edit(f"{_PAXOS}.learner:Learner._snapshot", "    self._holdings.settle(out)\n", ""),),
    ),
    Fresh(
        area="membership",
        mistake="snapshot-taken-before-the-members-change",
        breaks="a replica that votes in the new epoch wakes up among the old voters after a restart",
        edits=(
            Edit(
                f"{_PAXOS}.learner:Learner._change",
                "self._roster.set(now)\n        self._snapshot(out)",
                "self._snapshot(out)\n        self._roster.set(now)",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="snapshot-only-where-the-voters-change",
        breaks="a replica that is added finds no snapshot in which it is a member, and learns nothing, for ever in a "
        "group that decides little",
        edits=(
            Edit(
                f"{_PAXOS}.learner:Learner._change",
                "        self._snapshot(out)",
                "        if now.epoch != before.epoch:\n            self._snapshot(out)",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="snapshot-of-another-kept-in-memory-only",
        breaks="a replica says that it holds what came by a snapshot, forgets it in a crash, and the group loses "
        "acknowledged events with the one that gave it",
        edits=(
            Edit(
                f"{_PAXOS}.learner:Learner.install",
                "self._snapshots.keep(state, out)",
                "self._snapshots._take(state)",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="repaired-disk-counts-as-the-one-before",
        breaks="two values in a slot: a replica whose log was repaired votes again where its votes were given up",
        edits=(
            Edit(
                f"{_PAXOS}.peers:Peers.on_started",
                "self.formation.start(started.log_id + repaired)",
                "self.formation.start(started.log_id)",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="formed-when-a-majority-has-written-down",
        breaks="a replica that is wiped while the group forms is new to some and known to others: it votes with a disk "
        "that forgot, or the group never works",
        edits=(
            Edit(
                f"{_PAXOS}.formation:Formation._count",
                "len(self._agreed) == len(self._members)",
                "len(self._agreed) > len(self._members) // 2",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="one-goes-though-too-few-hold-its-events",
        breaks="the replica that goes is the last that has some events: acknowledged events are lost by a change",
        edits=(
            Edit(
                f"{_PAXOS}.changing:Changing._if_enough",
                "whole = {self._roster.name, *(name for name in there if self._is_caught_up(name, executed, out.now))}",
                "whole = {self._roster.name, *there}",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="learner-votes-before-it-holds-anything",
        breaks="in a young group an empty replica takes the place of one with a disk: one failure less is survived "
        "than promised",
        edits=(
            Edit(
                f"{_PAXOS}.changing:Changing._is_caught_up",
                "return held > 0 and held >= min(",
                "return held >= min(",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="votes-of-another-epoch-count",
        breaks="two values in a slot of fast rounds: a replica that has not heard that the group grew from four to "
        "five counts three votes of the new epoch as a decision",
        edits=(
            Edit(
                f"{_PAXOS}.peers:Peers.counts",
                "self.hears(peer) and ballot // EPOCH == self.roster.epoch and peer in self.roster.voters",
                "self.hears(peer) and peer in self.roster.voters",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="gives-a-state-whose-events-it-lacks",
        breaks="replicas take over a state from one that has a hole, get the hole too, and nobody may lead",
        edits=(
            Edit(
                f"{_PAXOS}.catching_up:CatchingUp.on_ask_decided",
                "elif latest is not None and latest.slot >= ask.first and self._holdings.is_whole():",
                "elif latest is not None and latest.slot >= ask.first:",
            ),
            Edit(
                f"{_PAXOS}.catching_up:CatchingUp.on_ask_snapshot",
                "if self._peers.hears(peer) and state is not None and self._holdings.is_whole():",
                "if self._peers.hears(peer) and state is not None:",
            ),
        ),
    ),
    Fresh(
        area="membership",
        mistake="leads-though-it-lacks-events",
        breaks="readers of positions and named subscriptions wait at a leader whose log has a hole, for ever if the "
        "one that has the events is gone",
        edits=(
            Edit(
                f"{_PAXOS}.elections:Elections._lose_patience",
                "able = self._holdings.is_whole() and self._roster.is_voter",
                "able = self._roster.is_voter",
            ),
            Edit(
                f"{_PAXOS}.elections:Elections._count_support",
                "if self._holdings.is_whole():",
                "if self._roster.is_voter:",
            ),
        ),
    ),
    # ------------------------------------------------------------------------------------------------------ sessions
    Fresh(
        area="sessions",
        mistake="epoch-from-the-clock-alone",
        breaks="a client that is started again within a millisecond, or after the clock was put back, has its earlier "
        "self's epoch: commands and answers of two lives are taken for those of one",
        edits=(
            Edit(
                f"{_CORE}.register:SessionRegister.open",
                "epoch = max(wall // MILLISECOND, last + 1)",
                "epoch = max(wall // MILLISECOND, 1)",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="refusals-numbered-one-too-low",
        breaks="an event that was taken in is said to be refused, and the refused one behind it to be published",
        edits=(
            Edit(
                f"{_CORE}.session:Session.accept",
                "self.refused |= {self.accepted + 1 + row: why",
                "self.refused |= {self.accepted + row: why",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="memory-not-restored",
        breaks="a restored replica names the group's log otherwise: clients lose their named subscriptions when it "
        "leads, and what was in flight may be published twice",
        edits=(
            Edit(
                f"{_CORE}.core:BrokerCore.set_state",
                "self.memory = decoded.memory",
                "pass",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="new-leader-does-not-look-for-those-who-stay-away",
        breaks="what is kept for clients that never come back after a change of leaders is kept for ever",
        edits=(
            Edit(
                f"{_DESKS}.session_desk:SessionDesk.on_elected",
                "    self._clients.expect_all(out)\n",
                "",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="starved-subscription-is-not-asked-again",
        breaks="a subscriber whose word of having consumed is lost gets no event any more, for ever",
        edits=(
            Edit(
                f"{_DESKS}.deliveries:Deliveries.send",
                "if (starved or cursor.sent > cursor.received) and cursor not in self._unconfirmed:",
                "if cursor.sent > cursor.received and cursor not in self._unconfirmed:",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="received-taken-for-consumed-on-a-new-link",
        breaks="a slow subscriber is sent more than its window after a lost link, breaks the link for that, and so "
        "again and again",
        edits=(
            Edit(
                f"{_DESKS}.deliveries:Deliveries.attach",
                "consumed = max(0, min(consumed, received))",
                "consumed = received",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="room-promised-to-what-is-under-way-too",
        breaks="in a group a subscription with `block` overflows and ends, though its publishers were to wait",
        edits=(
            Edit(
                f"{_DESKS}.admission:Admission._admissible",
                "limits, more_events, more_bytes = self._core.limits, self._under_way_events, self._under_way_bytes",
                "limits, more_events, more_bytes = self._core.limits, 0, 0",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="gap-told-only-where-the-subscription-is-not-made-again",
        breaks="a subscriber whose broker forgot it misses events and is not told",
        edits=(
            Edit(
                f"{_SESSIONS}.subscriber:Subscriber.opened",
                'self._missed(subscription, "forgotten", "the broker forgot the subscription", None, out)',
                "if not again:\n"
                '                    self._missed(subscription, "forgotten", "the broker forgot it", None, out)',
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="repetitions-pass-in-bulk",
        breaks="events come twice after a broker without a disk was restarted, where several come in one message",
        edits=(
            Edit(
                f"{_SESSIONS}.incoming:IncomingSubscription._repeated",
                "known = max(0, min(count, seen + 1 - first))",
                "known = max(0, min(count, seen + 1 - first)) if count == 1 else 0",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="numbers-of-what-was-given-up-used-again",
        breaks="an event is acknowledged and lost: it has the number of one that was given up after a lost link and "
        "had been taken in",
        edits=(
            Edit(
                f"{_SESSIONS}.outgoing:Outgoing.give_up_unretried",
                "numbered = min(sent, run.count)",
                "numbered = 0",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="published-again-to-a-broker-that-forgot-only-this-client",
        breaks="events in flight come twice to subscribers when the broker forgot their publisher's session",
        edits=(
            Edit(
                f"{_SESSIONS}.publisher:Publisher.opened",
                "self._fail(self._outgoing.give_up_sent(), None, problem, out)",
                'out.note("control", what="forgotten", detail={"problem": problem})',
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="requests-asked-again-where-the-session-is-forgotten",
        breaks="a request to the hosted application is executed twice",
        edits=(
            Edit(
                f"{_SESSIONS}.application_asker:ApplicationAsker.opened",
                "if self._conversation.resumed:",
                "if self._conversation.is_open:",
            ),
        ),
    ),
    Fresh(
        area="sessions",
        mistake="resumed-client-is-told-nothing-of-what-ended",
        breaks="a subscription that ended while its client's link was away is taken for a silent one, for ever",
        edits=(
            Edit(
                f"{_DESKS}.session_desk:SessionDesk._opened",
                "    for number, reason in session.ended.items():",
                "    for number, reason in session.ended.items() if not resumed else ():",
            ),
            Edit(
                f"{_DESKS}.upkeep:Upkeep.look_after_links",
                "for number, reason in () if session is None else session.ended.items():",
                "ours = session is not None and attachment.epoch != session.epoch\n"
                "        for number, reason in session.ended.items() if session is not None and ours else ():",
            ),
        ),
    ),
    # ------------------------------------------------------------------------------------------------------- cursors
    Fresh(
        area="cursors",
        mistake="lost-names-are-no-part-of-the-snapshot",
        breaks="who lost a named subscription to another client waits for ever after a restart of the broker: nobody "
        "tells it, and its acknowledgements are not answered",
        edits=(Edit(f"{_CORE}.core:BrokerCore.get_state", "self.cursors.ended_state(),", "{},"),),
    ),
    Fresh(
        area="cursors",
        mistake="takeover-in-a-group-says-first-attempt",
        breaks="an event that another owner was sent comes as the first attempt, which it surely is not",
        edits=(
            Edit(
                f"{_CORE}.cursor_table:CursorTable._take",
                "sent = command.sent if command.sent >= 0 else self._log.head",
                "sent = command.sent if command.sent >= 0 else cursor.acknowledged",
            ),
        ),
    ),
    Fresh(
        area="cursors",
        mistake="what-a-driver-still-reads-is-not-counted-as-sent",
        breaks="a name is left and taken again while the log is still read for the one that left it: both get the "
        "events, the second one as a first attempt",
        edits=(
            Edit(
                f"{_DESKS}.cursor_deliveries:CursorDeliveries.sent_to_anyone",
                "if any(read is cursor for _, read in self._reading.values()):",
                "if any(owner == cursor.owner for owner, _ in self._reading.values()):",
            ),
        ),
    ),
    Fresh(
        area="cursors",
        mistake="attempts-are-no-part-of-the-snapshot",
        breaks="after a restart an event comes again as the first attempt",
        edits=(
            Edit(
                f"{_CORE}.cursor:Cursor.get_state",
                "self.owner, self.takeovers, self.born",
                "self.owner, [], self.born",
            ),
        ),
    ),
    Fresh(
        area="cursors",
        mistake="retention-forgets-names-that-nobody-reads",
        breaks="events that a named subscription has not acknowledged are given up while its owner is away",
        edits=(
            Edit(
                f"{_CORE}.cursor_table:CursorTable.holder",
                "if c.acknowledged + 1 >= tail or c.owner is not None",
                "if c.owner is not None",
            ),
        ),
    ),
    Fresh(
        area="cursors",
        mistake="retention-looks-at-names-before-the-order-is-decided",
        breaks="a name that is made at the log's beginning while the group decides on retention loses what it needs",
        edits=(
            Edit(
                f"{_CORE}.core:apply_to_log",
                "log.keep_from(max(command.tail, min(command.wanted, cursors.floor())))",
                "log.keep_from(max(command.tail, command.wanted))",
            ),
            Edit(
                f"{_DESKS}.log_desk:LogDesk._retain",
                'commands.KeepLog("", hard, soft)',
                'commands.KeepLog("", hard, min(soft, self._core.cursors.floor()))',
            ),
        ),
    ),
    Fresh(
        area="cursors",
        mistake="last-event-under-an-old-filter-missed",
        breaks="a named subscription whose filter was changed misses the last event before the change when it reads it "
        "from the log",
        edits=(
            Edit(
                f"{_DESKS}.ranges:CursorPart.make",
                "min(last, until)",
                "min(last, until - 1)",
            ),
        ),
    ),
    Fresh(
        area="cursors",
        mistake="another-log-taken-for-the-one-that-was-read",
        breaks="a reader goes on at its position in the log of a broker that was wiped, and misses events in silence",
        edits=(
            Edit(
                f"{_CURSORS}.consumer:Consumer._check_log",
                "if cursor.log_id != self._conversation.log_id:",
                "if not self._conversation.log_id:",
            ),
        ),
    ),
    Fresh(
        area="cursors",
        mistake="end-of-the-log-told-without-asking-the-group",
        breaks="`head()` goes back: a leader that was deposed and does not know it answers",
        edits=(
            Edit(
                f"{_DESKS}.log_desk:LogDesk.on_ask_log",
                "if self._sequencer.applies_at_once or session is None:",
                "if self._sequencer.is_serving or session is None:",
            ),
        ),
    ),
    # ------------------------------------------------------------------------------------------------------- routing
    Fresh(
        area="routing",
        mistake="held-publications-released-behind-the-journal",
        breaks="an event is acknowledged before the journal has it, and lost by a crash: the turn in which the network "
        "settled was journalled before",
        edits=(
            Edit(
                f"{_ROUTING}.gate:Gate._release_soon",
                '        out.set_timer((self.name, "release"), 0)',
                "        for client in list(self._held):\n            self._release(client, out)",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="held-publications-outlive-their-link",
        breaks="an event whose client gave it up with its link is published later all the same",
        edits=(
            Edit(
                f"{_ROUTING}.gate:Gate.on_link_down",
                "    self._held.pop(down.peer, None)",
                "    if down.peer not in self._core.sessions:\n        self._held.pop(down.peer, None)",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="later-advertisement-pulls-no-expected-subscriptions",
        breaks="events are lost at a level that buffers, of an advertisement that comes from the other side after a "
        "broker that was never up counts as wanting everything",
        edits=(
            Edit(
                f"{_ROUTING}.router:Router.advertise",
                "for other, wanted in self.intersecting_beside(source, filter):",
                "for other, wanted in [\n"
                "            item\n"
                "            for near in self.subscriptions.by_source\n"
                "            if near != source\n"
                "            for item in self.subscriptions.intersecting(near, filter)\n"
                "        ]:",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="subscription-goes-with-the-first-of-two-advertisements",
        breaks="a subscription is taken back from a broker that still publishes what it wants, and gets nothing more",
        edits=(
            Edit(
                f"{_ROUTING}.router:Router._unadvertise",
                "if not self._leads_to(source, wanted):",
                "if True:",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="only-own-advertisements-wait-for-their-events",
        breaks="a broker in between takes an advertisement back before it has passed on the events under it; those who "
        "want them have taken their subscriptions back when they come",
        edits=(
            Edit(
                f"{_ROUTING}.router:Router.unadvertise",
                "if entry in self.advertisements.by_source[source] and waits:",
                "if entry in self.advertisements.by_source[source] and waits and source == LOCAL:",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="what-goes-and-comes-in-a-turn-is-taken-back",
        breaks="a subscription that the end of one advertisement takes back and another one brings again in the same "
        "turn is told and taken back in one message: its events do not come any more",
        edits=(
            Edit(
                f"{_ROUTING}.covered:Outlet._tell",
                "    if entry in self._untold_now:\n"
                "        del self._untold_now[entry]  # the neighbour still has it\n"
                "    else:\n"
                "        self._told_now[entry] = filter",
                "    self._told_now[entry] = filter",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="answers-to-tickets-of-an-earlier-link",
        breaks="a restarted neighbour counts its tickets anew, and gets the answer to one of its earlier life for one "
        "of the present: publications pass the gate too early and miss subscribers",
        edits=(
            Edit(
                f"{_ROUTING}.settling:Settling.lost",
                "    for asked in [asked for asked in self._waiting if asked[0] == neighbour]:\n"
                "        self._forget(asked)\n",
                "",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="any-answer-answers-all-advertisements",
        breaks="events under an advertisement that a neighbour has not answered are kept for nobody, and "
        "lost if it wants them",
        edits=(
            Edit(
                f"{_ROUTING}.answers:Answers.answered",
                "    for entry in side.asked.pop(ticket, ()):",
                "    side.asked.pop(ticket, None)\n"
                "    for entry in [entry for entry in side.expected if entry != UNKNOWN]:",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="answers-outlive-their-advertisements",
        breaks="a topic that is advertised anew counts as answered while the neighbour's subscriptions are gone: its "
        "first events are lost if the neighbour is away",
        edits=(
            Edit(
                f"{_ROUTING}.answers:Answers.told",
                "gone = [str(filter) for filter in taken_back.values()]",
                "gone = []",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="complete-though-another-neighbour-is-awaited",
        breaks="a restarted broker makes a neighbour forget what is wanted beyond another one that has not told yet; "
        "events of a whole path are lost",
        edits=(
            Edit(
                f"{_ROUTING}.awaited:Awaited.knows_beside",
                "return not self.peers or (len(self.peers) == 1 and peer in self.peers)",
                "return len(self.peers) <= 1",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="half-a-telling-kept-over-a-lost-link",
        breaks="entries of a telling that broke off join the next one: what was taken back meanwhile is wanted for "
        "ever, and sent to where nobody wants it",
        edits=(
            Edit(f"{_ROUTING}.neighbours:Neighbours.on_neighbour_unlinked", "    self._parts.pop(peer, None)\n", ""),
        ),
    ),
    Fresh(
        area="routing",
        mistake="topics-are-no-part-of-the-tables-snapshot",
        breaks="after a restart a broker does not advertise its clients' topics any more, neighbours forget who wants "
        "them, and what is published during the next failure is lost",
        edits=(
            Edit(
                f"{_ROUTING}.table_store:TableStore._snapshot",
                "list(self.complete), topics=topics, answered=answered",
                "list(self.complete), answered=answered",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="acknowledged-before-it-is-stored",
        breaks="an acknowledged event is lost when the broker that took it over crashes before its disk has it",
        edits=(
            Edit(
                f"{_ROUTING}.forwarding:Forwarding.finish",
                "out.send(peer, AcknowledgeEvents(self._taken.through(peer)), after=after)",
                "out.send(peer, AcknowledgeEvents(self._taken.through(peer)), after=NOW)",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="what-the-disk-has-is-not-copied",
        breaks="an introduction claims events that are not on the disk yet: the neighbour forgets them, and a crash "
        "loses them",
        edits=(
            Edit(
                f"{_ROUTING}.taken_in:TakenIn.write",
                "self._written.append((token, dict(self._now)))",
                "self._written.append((token, self._now))",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="numbers-of-a-feed-before-count-for-the-present-one",
        breaks="after its disk was replaced a broker takes what a neighbour stored of its old feed for its new one: "
        "the first events are dropped as acknowledged, or the link is refused for ever",
        edits=(
            Edit(
                f"{_ROUTING}.forwarding:Forwarding.on_neighbour_linked",
                "if introduction.stored_feed == self._feed_id:",
                "if introduction.stored:",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="new-feed-of-a-neighbour-goes-on-from-the-old-number",
        breaks="events of a neighbour whose disk was replaced are acknowledged as repetitions, and lost",
        edits=(
            Edit(
                f"{_ROUTING}.taken_in:TakenIn.meet",
                "self._now[peer] = (feed, 0)",
                "self._now[peer] = (feed, self._now.get(peer, NOTHING)[1])",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="last-record-of-the-store-goes-too",
        breaks="a broker that had everything acknowledged begins its numbers anew after a restart: neighbours take its "
        "next events for repetitions",
        edits=(
            Edit(
                f"{_ROUTING}.store:EventStore._truncate",
                "while len(self._kept) > 1:",
                "while self._kept:",
            ),
        ),
    ),
    Fresh(
        area="routing",
        mistake="two-full-brokers-wait-for-each-other",
        breaks="no progress for ever: two neighbours that are full of what they have for each other say nothing",
        edits=(
            Edit(
                f"{_ROUTING}.forwarding:Forwarding.finish",
                "if not congested or self.room.is_left_beside(peer):",
                "if not congested:",
            ),
        ),
    ),
    # -------------------------------------------------------------------------------------------------------- bypass
    Fresh(
        area="bypass",
        mistake="events-that-came-around-not-restored",
        breaks="events come twice: around a failure, and, after a restart of the last broker, from the store",
        edits=(
            Edit(
                f"{_CORE}.arrivals:Arrivals.set_state",
                "self._set_around(state.around)",
                "self._set_around([])",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="stored-copy-makes-it-forget-the-event",
        breaks="an event comes a second time when another copy of it comes around behind the stored one",
        edits=(
            Edit(
                f"{_CORE}.arrivals:Arrivals._new",
                "self._recent.add(publisher, number, number)",
                "pass",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="events-overtake-news-that-went-around",
        breaks="stored events reach a neighbour before it hears what was told around its link, find nobody there, and "
        "are acknowledged and lost",
        edits=(
            Edit(
                f"{_ROUTING}.forwarding:Forwarding.finish",
                "if self._store is not None and peer in self._hearing.lacking:",
                "if self._store is not None and peer in self._hearing.lacking and not feed.has_unsent:",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="told-completely-before-counts-as-told-now",
        breaks="no progress for ever at bypass+buffered: a link that was suspected and is good again waits for news "
        "that nobody tells",
        edits=(
            Edit(
                f"{_ROUTING}.teller:Teller._tell_around",
                "elif peer in self.lacking and hearer.is_synced and self.is_direct(peer):",
                "elif peer in self.lacking and hearer.is_synced and not hearer.was_told_completely:",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="full-tellings-of-stand-ins-are-taken-whole",
        breaks="what those behind a failed broker tell in its place makes others forget what is wanted elsewhere "
        "behind it; events are lost though there is a way",
        edits=(
            Edit(
                f"{_ROUTING}.neighbours:Neighbours.on_detoured",
                "if source != detoured.sender:",
                "if source != detoured.sender and not routes.full:",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="word-of-an-earlier-life-counts",
        breaks="a broker that was just restarted counts as ready by what it said before: events are left to its empty "
        "table, and lost",
        edits=(
            Edit(
                f"{_BYPASS}.database:Database.link_up",
                "is_new = known is None or known.incarnation < incarnation",
                "is_new = known is None",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="link-states-compared-by-number-alone",
        breaks="what a restarted broker says of its links is older than what it said before, for long; nobody sends by "
        "way of it, or all do by links that are down",
        edits=(
            Edit(
                f"{_BYPASS}.database:Database.merge",
                "if known is None or state.version > known.version:",
                "if known is None or state.number > known.number:",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="never-speaks-above-its-earlier-life",
        breaks="a broker whose clock was put back is not believed by anyone any more: it is unreachable by detours for "
        "ever",
        edits=(
            Edit(
                f"{_BYPASS}.database:Database.merge",
                "self._say(self._states[self.own].ready, state.version)",
                "self._say(self._states[self.own].ready)",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="one-end-says-that-a-link-is-up",
        breaks="events are sent on links that work in one direction only, and lost though there is another way",
        edits=(
            Edit(
                f"{_BYPASS}.view:View.is_usable",
                "other in near.up and one in far.up",
                "(other in near.up or one in far.up)",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="end-of-an-older-link-ends-the-news",
        breaks="a neighbour hears nothing of other links any more, for as long as its newer link lives: it sends "
        "events to where they are lost",
        edits=(
            Edit(
                f"{_BYPASS}.link_state:LinkStateNews.on_link_down",
                "if up is not None and up.link == down.link:",
                "if up is not None:",
            ),
        ),
    ),
    Fresh(
        area="bypass",
        mistake="end-of-an-older-link-is-taken-for-the-newers",
        breaks="a neighbour with a good link is suspected for ever: events for it have no way and are lost",
        edits=(
            Edit(
                "holdfast.protocols.failure.detector:FailureDetector.on_link_down",
                "if neighbour is not None and neighbour.link == down.link:",
                "if neighbour is not None:",
            ),
        ),
    ),
    # ------------------------------------------------------------------------------------------------------- storage
    Fresh(
        area="storage",
        mistake="last-group-not-written-again-when-opened",
        breaks="what a process finds after a sync that failed is acknowledged, is in the page cache alone, and is lost "
        "by the next power cut",
        edits=(
            Edit(
                f"{_STORAGE}.opening:_settle",
                "if newest.end > newest.group_start:",
                "if newest.torn is not None and newest.end > newest.group_start:",
            ),
        ),
    ),
    Fresh(
        area="storage",
        mistake="stream-renewed-while-some-of-it-is-not-on-the-disk",
        breaks="promises, votes or commands that were appended and not yet durable are lost: their stream is written "
        "again without them, and they are acknowledged later",
        edits=(
            Edit(
                "holdfast.runtime.segment_storage:SegmentStorage._is_renewable",
                "return stream not in NUMBERED and is_whole and opened.bytes(stream) <= RENEW_BYTES_MAX",
                "return stream not in NUMBERED and opened.bytes(stream) <= RENEW_BYTES_MAX",
            ),
        ),
    ),
    Fresh(
        area="storage",
        mistake="blocks-of-a-torn-group-prove-damage",
        breaks="a broker refuses to start after a power cut that kept later pages of the last commit and not the first",
        edits=(Edit(f"{_STORAGE}.scan:SegmentScan._after_damage", "if fields[7] > begun:", "if fields[7] >= begun:"),),
    ),
    Fresh(
        area="storage",
        mistake="damage-before-the-last-commit-cut-as-torn",
        breaks="damage to the last commit but one is cut off in silence, with two acknowledged commits",
        edits=(
            Edit(f"{_STORAGE}.scan:SegmentScan._after_damage", "if fields[7] > begun:", "if fields[7] > begun + 1:"),
        ),
    ),
    Fresh(
        area="storage",
        mistake="mark-names-what-is-not-written",
        breaks="a log refuses to open after a crash: its closing mark speaks of records that were appended while the "
        "mark was made, and never written",
        edits=(
            Edit(
                f"{_STORAGE}.tail:Tail.mark",
                "TRUNCATION.pack(s.id, s.durable)",
                "TRUNCATION.pack(s.id, s.next)",
            ),
        ),
    ),
    Fresh(
        area="storage",
        mistake="segments-removed-without-a-sync-between",
        breaks="a power cut brings an older segment back and not the one behind it: the log has a hole, and is refused",
        edits=(
            Edit(
                f"{_STORAGE}.tail:Tail._drop",
                "        self._files.remove(path)\n        self._files.sync_folder(self._folder)",
                "        self._files.remove(path)\n    self._files.sync_folder(self._folder)",
            ),
        ),
    ),
    Fresh(
        area="storage",
        mistake="lives-by-the-clock-alone",
        breaks="a broker whose clock was put back has a lower incarnation than before: ids of entries and events are "
        "used again, and what is new is taken for a repetition",
        edits=(
            Edit(
                "holdfast.runtime.segment_storage:SegmentStorage._begin_life",
                "incarnation = max(last + 1, time.time_ns())",
                "incarnation = time.time_ns()",
            ),
        ),
    ),
    *FRESH_STAND_INS,
    *FRESH_ON_DEMAND,
]
