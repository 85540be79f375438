"""The same for networks that see to their stand-ins by themselves: mistakes in watching, agreeing and giving back."""

from __future__ import annotations

from typing import Final

from tests.planted.edits import Edit, Fresh

_CYCLE: Final = "holdfast.schemes.tree.standin.cycle"
_AGREEMENT: Final = f"{_CYCLE}.agreement:Agreement"
_COMPLAINTS: Final = f"{_CYCLE}.complaints:Complaints"
_CALLS: Final = f"{_CYCLE}.calls:Calls"
_GAUGE: Final = f"{_CYCLE}.measuring:Gauge"
_JUDGE: Final = f"{_CYCLE}.levels:Judge"
_STEWARD: Final = f"{_CYCLE}.steward:Steward"
_RETURNING: Final = f"{_CYCLE}.returning"
_RESERVATION: Final = f"{_CYCLE}.reservation:Reservation"


def _mistake(mistake: str, breaks: str, *edits: tuple[str, str, str]) -> Fresh:
    return Fresh(area="on demand", mistake=mistake, breaks=breaks, edits=tuple(Edit(*edit) for edit in edits))


FRESH_ON_DEMAND: Final[list[Fresh]] = [
    # ------------------------------------------------------------------------------------------------- what is measured
    _mistake(
        "age-of-the-queue-and-not-of-the-event",
        "a queue that is never empty, and moves, counts as one that stands still",
        (f"{_GAUGE}.look", "self._looks[0][1] <= gone", "self._looks[0][1] <= gone and not waiting"),
    ),
    _mistake(
        "idle-neighbour-has-a-rate-of-nothing",
        "a neighbour for which nothing waited is relieved, since it takes nothing",
        (f"{_GAUGE}.look", "if self._waited and waiting and passed > 0 else", "if passed > 0 else"),
    ),
    _mistake(
        "every-look-is-remembered",
        "memory grows as long as a neighbour is slow",
        (f"{_GAUGE}.look", "len(self._looks) > LOOKS_MAX", "len(self._looks) > 100 * LOOKS_MAX"),
    ),
    _mistake(
        "violation-is-a-complaint-at-once",
        "a short spike provides a stand-in",
        (f"{_JUDGE}._congestion", "(self._score < sustained and not was_complained)", "False"),
    ),
    _mistake(
        "absence-counts-as-congestion",
        "a neighbour that was away for a moment is relieved when it is back",
        (f"{_JUDGE}.judge", "self._judged_at = now", "pass"),
    ),
    _mistake(
        "away-for-a-moment-is-added-up",
        "a broker that flaps has failed after a while",
        (f"{_JUDGE}._crash", "self._away_since = None", "pass"),
    ),
    # -------------------------------------------------------------------------------------------------- who sees to it
    _mistake(
        "one-neighbour-is-enough",
        "a link that is cut makes a case of a broker that others hear",
        (f"{_COMPLAINTS}.failed", "near and all(name in said for name in near)", "said"),
    ),
    _mistake(
        "complaints-are-never-over",
        "a broker that is back for long gets a stand-in",
        (f"{_COMPLAINTS}.on_looked", "out.now - heard.at < VALID_FOR and by != name", "by != name"),
    ),
    _mistake(
        "next-one-sees-to-it-before-the-first-is-known-to-be-gone",
        "two see to one failure at once",
        (f"{_COMPLAINTS}.who_sees_to", "if not self._calls.is_absent(name):", "if False:"),
    ),
    _mistake(
        "who-waits-for-another-is-congested",
        "the broker before the slow one is relieved, and the slow one is not",
        (f"{_COMPLAINTS}.congested", "if said and of not in complaining:", "if said:"),
    ),
    _mistake(
        "complaints-of-strangers-count",
        "who is no neighbour says that a broker has failed",
        (f"{_COMPLAINTS}.on_complained", "if self._roster.knows(said.faulty) else True", "if False else False"),
    ),
    _mistake(
        "link-is-taken-for-an-answer",
        "a broker that hangs counts as there, as long as its link is up",
        (
            f"{_CALLS}.reach",
            "self._links.reaches(peer) and out.now - self._heard.get(peer, -THERE_FOR) < THERE_FOR",
            "self._links.reaches(peer) and (self._heard.setdefault(peer, out.now) or True)",
        ),
    ),
    _mistake(
        "absence-that-was-found-once-counts-for-ever",
        "a broker is replaced that nobody has called since it came back",
        (f"{_CALLS}.reach", "if out.now - self._absent.get(peer, out.now) >= OLD_AFTER:", "if False:"),
    ),
    # --------------------------------------------------------------------------------------------------- who agrees
    _mistake(
        "agrees-without-calling-the-broker",
        "a leaf is replaced whose one link is cut, though others reach it",
        (f"{_AGREEMENT}.on_ask_consent", "if not problem:", "if False:"),
    ),
    _mistake(
        "agreed-before-the-disk-knows",
        "two maps follow one: who agreed has forgotten it after a restart",
        (
            f"{_AGREEMENT}.on_ask_consent",
            "asked.round, problem))",
            "asked.round, problem), after=NOW)",
        ),
    ),
    _mistake(
        "own-wish-binds-nobody",
        "two that each believe that the other failed both make a map",
        (f"{_AGREEMENT}._holds", "or self._asking is not None", ""),
    ),
    _mistake(
        "answers-of-an-earlier-round-count",
        "two maps follow one: what was agreed to before it was given back is counted",
        (
            f"{_AGREEMENT}.on_consented",
            "asking.before.number, asking.digest, asking.begun,",
            "asking.before.number, asking.digest, said.round,",
        ),
    ),
    _mistake(
        "one-of-two-agrees-with-itself",
        "of two brokers that don't hear each other both replace the other one",
        (f"{_AGREEMENT}.begin", "if 2 * (len(others) + 1) <= len(before.names):", "if False:"),
    ),
    _mistake(
        "spare-is-kept-before-anyone-can-be-asked",
        "a broker that is cut off keeps the spare from those who could replace it",
        (
            f"{_AGREEMENT}.obstacle",
            "silent = [name for name in others if not self._calls.reach(name, out)]",
            "silent: list[str] = []",
        ),
    ),
    _mistake(
        "what-an-operator-wants-is-another-map",
        "a replacement for which an operator named nobody is never agreed to",
        (f"{_AGREEMENT}._against", "[change, msgspec.structs.replace(change, asked=True)]", "[change]"),
    ),
    # -------------------------------------------------------------------------------------------- the spare, the place
    _mistake(
        "spare-is-kept-for-all-who-ask",
        "one spare is promised to two",
        (f"{_RESERVATION}._against", "now < self._until and self._for[0] != peer", "False"),
    ),
    _mistake(
        "spare-is-kept-for-ever",
        "a spare is of no use any more, since who asked for it has failed",
        (f"{_RESERVATION}._against", "now < self._until and", "self._for[0] and"),
    ),
    _mistake(
        "another-spare-for-one-whose-work-is-shared",
        "a broker that fails while its work is shared is never replaced",
        (f"{_STEWARD}._seek", "beside is not None and case.cause is Cause.CRASH", "False"),
    ),
    _mistake(
        "no-call-before-a-case-goes-on",
        "a monitor that is wrong has a broker replaced that answers",
        (f"{_STEWARD}._check", "elif self._calls.reach(case.faulty, out):", "elif False:"),
    ),
    _mistake(
        "wait-is-not-doubled",
        "a broker that fails again and again has its place again and again",
        (f"{_RETURNING}:_Record.wait", "calm << min(self.times, DOUBLED_MAX)", "calm"),
    ),
    _mistake(
        "what-an-operator-wanted-is-given-back",
        "a broker that an operator relieved for maintenance has its place back while it is worked on",
        (f"{_RETURNING}:Returning.on_looked", "one.by and not one.asked and", "one.by and"),
    ),
    _mistake(
        "end-of-a-call-ends-being-well",
        "a broker that is to be well for longer than a call lasts never has its place back",
        (f"{_RETURNING}:Returning.on_looked", "is_there or self._calls.is_absent(one.name)", "True"),
    ),
]
