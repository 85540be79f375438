"""Who leads, as far as one replica can tell: heartbeats, patience, and when to want to lead oneself (D4-A2).

Suspicion may be wrong; it costs time, never safety. Replicas do not all want to lead at once: each waits a time of its
own, drawn anew each time. Patience adapts: where heartbeats come late or irregularly, more of it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.schemes.paxos.roster import Roster
from holdfast.schemes.paxos.settings import PaxosSettings

if TYPE_CHECKING:
    from random import Random


INTERVALS = 3  # between heartbeats: a leader may be silent for so many of them, as they usually are …
DEVIATIONS = 4  # … and for so many of their usual deviations


class Heartbeats:
    """How a leader's heartbeats come: the time between two, and its deviation, each as a moving average."""

    def __init__(self) -> None:
        self._mean = 0.0
        self._deviation = 0.0

    def beat(self, interval: int) -> None:
        error = interval - self._mean
        self._mean += error / 8 if self._mean else error
        self._deviation += (abs(error) - self._deviation) / 4 if self._deviation else abs(error) / 8

    @property
    def silence(self) -> int:
        """How long a pause is nothing to worry about."""
        return int(INTERVALS * self._mean + DEVIATIONS * self._deviation)


class Liveness:
    """What is known of the others from heartbeats. `leader` is the replica that was last heard to lead; empty: none."""

    def __init__(self, settings: PaxosSettings, roster: Roster, rng: Random) -> None:
        self.leader = ""
        self.highest = 0  # ballot that was seen from anyone
        self.executed: dict[str, int] = {}  # how far each replica says that it is
        self.held: dict[str, int] = {}  # up to which slot each holds all that came of it, when this one leads
        self.answering = 0  # how many others have answered lately, when this one leads
        self._settings = settings
        self._roster = roster
        self._rng = rng
        self._heard_at = 0
        self._ballot = 0  # of the leader that was heard last
        self._heartbeats = Heartbeats()
        self._deadline = 0
        self._attempts = 0
        self._seen_at: dict[str, int] = {}  # when each replica last answered a heartbeat of ours

    @property
    def patience(self) -> int:
        """How long to wait for a heartbeat: never less than was asked for."""
        settings = self._settings
        return max(settings.patience, min(self._heartbeats.silence, settings.patience_max))

    def start(self, now: int) -> None:
        self._deadline = now + self._wait(self._settings.patience)

    def _wait(self, base: int) -> int:
        """A time of one's own: longer each time that it came to nothing."""
        spread = base * (1 + min(self._attempts, 4))
        return base + int(self._rng.random() * spread)

    def see(self, ballot: int) -> None:
        self.highest = max(self.highest, ballot)

    def has_executed(self, peer: str, executed: int) -> None:
        """A replica says how far it is."""
        self.executed[peer] = executed

    def is_ahead(self, peer: str, executed: int) -> None:
        """A replica is at least so far."""
        self.executed[peer] = max(self.executed.get(peer, 0), executed)

    def furthest(self, peers: Iterable[str]) -> str:
        """Which of them has executed most; empty if there are none."""
        return max(peers, key=lambda peer: self.executed.get(peer, 0), default="")

    # ----------------------------------------------------------------------------------------------------- following
    def heard(self, leader: str, ballot: int, executed: int, now: int) -> None:
        """A heartbeat of the leader of a ballot."""
        self.see(ballot)
        self.leader = leader
        self.executed[self.leader] = executed
        if ballot != self._ballot:
            self._ballot, self._heartbeats = ballot, Heartbeats()
        else:
            # One that stood still for long says little about how it usually is.
            self._heartbeats.beat(min(now - self._heard_at, 2 * self._settings.patience))
        self._heard_at, self._attempts = now, 0
        self._deadline = now + self._wait(self.patience)

    def lost_link(self, peer: str, now: int) -> None:
        """A hint, and no more: the leader is probably gone. The others have had the same hint: each waits its turn."""
        if peer == self.leader:
            self.leader = ""
            turn = self._settings.stagger * (1 + self._roster.places.get(self._roster.name, -1)) + int(
                self._rng.random() * self._settings.stagger
            )
            self._deadline = min(self._deadline, now + turn)

    def someone_prepares(self, now: int) -> None:
        """Another replica wants to lead: it is given time."""
        self._deadline = max(self._deadline, now + self._wait(self._settings.patience))

    def wants_to_lead(self, now: int) -> bool:
        return now >= self._deadline

    def attempt(self, now: int) -> None:
        """Patience is lost. A leader that is silent is none: it may be gone for good, and is not asked any more."""
        self.leader = ""
        self._attempts += 1
        self._deadline = now + self._wait(self._settings.patience)

    def until_deadline(self, now: int) -> int:
        return max(1, self._deadline - now)

    def trusts_leader(self, now: int) -> bool:
        """Whether the leader was heard so lately that no one else is to be promised anything."""
        return bool(self.leader) and now - self._heard_at < self.patience // 2

    # ------------------------------------------------------------------------------------------------------- leading
    def lead(self, name: str, now: int) -> None:
        self.leader, self._attempts = name, 0
        self._seen_at = dict.fromkeys(self._roster.names, now)
        self.answering = len(self._roster.voters) - 1
        self.held = {}

    def answered(self, peer: str, executed: int, held: int, now: int) -> None:
        self._seen_at[peer] = now
        self.held[peer] = held
        self.executed[peer] = executed

    def present(self, now: int) -> set[str]:
        """Who has answered within the patience that is configured."""
        return {peer for peer, seen in self._seen_at.items() if now - seen < self._settings.patience}

    def is_alone(self, name: str, now: int) -> bool:
        """Whether too few have answered lately: a leader that can't decide anything should not keep its clients."""
        self.answering = len([other for other in self.answers_lately(now) if other in self._roster.voters])
        return self.answering + (name in self._roster.voters) < self._roster.quorum

    def answers_lately(self, now: int) -> list[str]:
        """Which others have answered lately."""
        lately = [name for name, seen in self._seen_at.items() if now - seen < 2 * self._settings.patience]
        return [name for name in lately if name != self._roster.name]

    def forget(self, names: Iterable[str]) -> None:
        """They are no members any more."""
        for name in names:
            for table in (self._seen_at, self.held, self.executed):
                table.pop(name, None)

    def deposed(self) -> None:
        self.leader = ""
