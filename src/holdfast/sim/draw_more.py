"""What findings have needed, drawn on top of a scenario: rare meetings of things that are each drawn often.

Links that break with both ends alive, and links that carry little; a disk that is slow just when a neighbour starts
again; disks that are wiped and clocks that jump; brokers that start late; advertisements that come and go, clients that
say goodbye; topics, names and filters as long as they may be. Each has a source of randomness of its own: which of them
a seed has does not depend on the others, and what was drawn before stays as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.sim.scenario import (
    Action,
    Advertise,
    Broker,
    Client,
    ClockJump,
    Close,
    DiskSlow,
    Fault,
    Kill,
    PowerCut,
    Publish,
    Reset,
    Scenario,
    Subscribe,
    Unadvertise,
)

# As often as the seed of a scenario has it, in percent.
RESETS: Final = 40
LINED_UP: Final = 20
WIPED: Final = 10
JUMPS: Final = 15
LATE: Final = 20
ADVERTISEMENTS: Final = 20
GOODBYES: Final = 10
LONG: Final = 10
MOVING: Final = 10
NARROW: Final = 15

LONG_NAME: Final = 64  # characters, as many as a name may have
LONG_TOPICS: Final = (4_070, 4_086, 4_087, 60_000)  # characters: what fits into a filter, just so, and does not
LONG_FILTER: Final = 4_096  # characters, as many as a filter may have; with as many predicates
PREDICATES_MAX: Final = 256
LARGER: Final = 20  # times as many bytes as else are no storm
ADVERTISED: Final = ("topic = 'stock'", "topic = 'news'", "", "price > 50", "topic = 'stock' OR topic = 'news'")


class Meetings(msgspec.Struct, frozen=True):
    """Which of these a scheme has."""

    narrow: bool = False  # links that carry little
    wipe: bool = False  # disks that are wiped, where that is not drawn with the other faults
    move: bool = False  # publishers with several homes
    formed_ms: int = 0  # what is wiped before all brokers have met is never made good: faults begin then
    late_share: int = 2  # brokers that start late do so in the first one of so many parts of a run


def with_more(scenario: Scenario, pairs: Sequence[tuple[str, str]], meetings: Meetings) -> Scenario:
    """The same scenario, with what else its seed has. `pairs` are brokers with a link between them."""
    more = _More(scenario, pairs, meetings)
    for percent, add in (
        (LATE, more.start_late),
        (RESETS, more.reset_links),
        (LINED_UP, more.line_up),
        (WIPED, more.wipe),
        (JUMPS, more.jump),
        (ADVERTISEMENTS, more.offer),
        (GOODBYES, more.say_goodbye),
        (NARROW, more.narrow),
        (LONG, more.make_long),
        (MOVING, more.move),
    ):
        more.draw(percent, add)
    return more.scenario


class _More:
    def __init__(self, scenario: Scenario, pairs: Sequence[tuple[str, str]], meetings: Meetings) -> None:
        self.scenario = scenario
        self.rng = Random()
        self._pairs = list(pairs)
        self._meetings = meetings

    def draw(self, percent: float, add: Callable[[], None]) -> None:
        """Adds something in so many of a hundred scenarios, with a source of randomness of its own."""
        self.rng = Random(f"{self.scenario.name}/{self.scenario.seed}/{add.__name__}")
        if self.rng.random() < percent / 100:
            add()

    def _add(self, *faults: Fault) -> None:
        found = sorted([*self.scenario.faults, *faults], key=lambda fault: fault.at_ms)
        self.scenario = replace(self.scenario, faults=found)

    def _act(self, *actions: Action) -> None:
        found = sorted([*self.scenario.actions, *actions], key=lambda action: action.at_ms)
        self.scenario = replace(self.scenario, actions=found)

    def _time(self) -> int:
        """Of a fault; if disks are wiped, when all have met."""
        first = self._meetings.formed_ms if self._wipes else 0
        return self.rng.randint(first, self.scenario.safety_ms - 1)

    @property
    def _wipes(self) -> bool:
        return any(isinstance(fault, PowerCut) and fault.wipe for fault in self.scenario.faults)

    @property
    def _durable(self) -> list[str]:
        return [broker.id for broker in self.scenario.brokers if broker.durable]

    # ------------------------------------------------------------------------------------------------------- faults
    def reset_links(self) -> None:
        rng = self.rng
        ends = [(client.id, broker) for client in self.scenario.clients for broker in client.brokers]
        for _ in range(rng.randint(1, 6)):
            source, target = rng.choice(self._pairs if self._pairs and rng.random() < 0.7 else ends)
            at = self._time()
            # Often again at once: what is being said anew breaks off, too.
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                if at < self.scenario.safety_ms:
                    self._add(Reset(at_ms=at, source=source, target=target))
                at += rng.choice((1, 5, 20, 300))

    def narrow(self) -> None:
        """Links carry few bytes: what is urgent overtakes what waits."""
        if self._meetings.narrow:
            rate = self.rng.choice((10_000, 30_000, 100_000))
            self.scenario = replace(self.scenario, network=replace(self.scenario.network, bytes_per_second=rate))

    def line_up(self) -> None:
        """A disk is slow, and somebody beside it starts again meanwhile."""
        pairs = [pair for pair in self._pairs if pair[0] in self._durable]
        if not pairs:
            return
        slow, other = self.rng.choice(pairs)
        if self.rng.random() < 0.5 and other in self._durable:
            slow, other = other, slow
        at = self._time()
        longest = self.scenario.safety_ms - at
        length = min(self.rng.choice((500, 2_000, 4_000)), longest)
        times = self.rng.choice((20, 100, 400))
        self._add(DiskSlow(at_ms=at, for_ms=length, host=slow, times=times))
        again = min(at + self.rng.randint(0, max(length, 1)), self.scenario.safety_ms - 1)
        for_ms = min(self.rng.choice((1, 10, 300)), self.scenario.safety_ms - again)
        self._add(Kill(at_ms=again, for_ms=for_ms, host=other))

    def wipe(self) -> None:
        if self._meetings.wipe and self._durable:
            at = self._time()
            for_ms = min(self.rng.choice((10, 300, 2_000)), self.scenario.safety_ms - at)
            self._add(PowerCut(at_ms=at, for_ms=for_ms, host=self.rng.choice(self._durable), wipe=True))

    def jump(self) -> None:
        at, names = self._time(), [broker.id for broker in self.scenario.brokers]
        by = self.rng.choice((-3_600_000, -50, 50, 3_600_000, 10**10))
        for_ms = min(self.rng.choice((10, 3_000, 12_000)), self.scenario.safety_ms - at)
        self._add(ClockJump(at_ms=at, for_ms=for_ms, host=self.rng.choice(names), by_ms=by))

    def start_late(self) -> None:
        # Until all have met, those that stay up at the end have to be there, and no disk may be wiped.
        if self._meetings.formed_ms and (self.scenario.down or self._wipes):
            return
        late = self.rng.choice(self.scenario.brokers).id
        at = self.rng.randint(1, max(1, self.scenario.safety_ms // self._meetings.late_share))
        self._change_brokers(late, starts_ms=at)

    def _change_brokers(self, id: str, **changes: int) -> None:
        brokers: list[Broker] = [
            replace(broker, **changes) if broker.id == id else broker for broker in self.scenario.brokers
        ]
        self.scenario = replace(self.scenario, brokers=brokers)

    # ------------------------------------------------------------------------------------------------------ clients
    def offer(self) -> None:
        """Advertisements. What adds something keeps its name: the draws of recorded seeds begin with it."""
        rng, last = self.rng, self.scenario.safety_ms
        for number in range(1, rng.randint(1, 3) + 1):
            client, name = rng.choice(self.scenario.clients).id, f"a{number}"
            at = rng.randint(0, last // 10 if rng.random() < 0.7 else last)
            self._act(Advertise(at_ms=at, client=client, name=name, filter=rng.choice(ADVERTISED)))
            if rng.random() < 0.6:
                self._act(Unadvertise(at_ms=rng.randint(at, last), client=client, name=name))

    def say_goodbye(self) -> None:
        client = self.rng.choice(self.scenario.clients).id
        at = self._time()
        kept = [action for action in self.scenario.actions if action.client != client or action.at_ms <= at]
        self.scenario = replace(self.scenario, actions=kept)
        self._act(Close(at_ms=at, client=client))

    def make_long(self) -> None:
        """A name, a topic and a filter. Not on narrow links: what is advertised there would not be known
        when its publisher's patience ends, and events may go out then that nobody has asked for yet."""
        rng = self.rng
        if self._meetings.narrow and self.scenario.network.bytes_per_second:
            return
        # What a slow link does not carry before its ends lose patience is never carried.
        topic = "t" * rng.choice(LONG_TOPICS[:3] if self.scenario.network.bytes_per_second else LONG_TOPICS)
        wide = " OR ".join(["symbol = 'ACME'", *(f"price = {number}" for number in range(PREDICATES_MAX - 1))])
        wide += " " * (LONG_FILTER - len(wide))
        publishes = [action for action in self.scenario.actions if isinstance(action, Publish)]
        subscribes = [action for action in self.scenario.actions if isinstance(action, Subscribe)]
        changed: dict[int, Action] = {}
        for publish in rng.sample(publishes, min(len(publishes), 3)):
            changed[id(publish)] = replace(publish, events=[replace(event, topic=topic) for event in publish.events])
        if subscribes:
            subscribe = rng.choice(subscribes)
            changed[id(subscribe)] = replace(subscribe, filter=wide)
        actions = [changed.get(id(action), action) for action in self.scenario.actions]
        self.scenario = replace(self.scenario, actions=actions)
        if (storm := self.scenario.storm) is not None:  # such topics are large by themselves
            self.scenario = replace(self.scenario, storm=replace(storm, sent_bytes=LARGER * storm.sent_bytes))
        self._rename(rng.choice(self.scenario.clients).id)

    def _rename(self, old: str) -> None:
        new = old + "x" * (LONG_NAME - len(old))
        wanted = self.scenario
        clients: list[Client] = [replace(one, id=new) if one.id == old else one for one in wanted.clients]
        actions: list[Action] = [replace(one, client=new) if one.client == old else one for one in wanted.actions]
        faults: list[Fault] = []
        for one in wanted.faults:
            changes = {key: new for key in ("host", "source", "target") if getattr(one, key, "") == old}
            faults.append(replace(one, **changes))
        self.scenario = replace(wanted, clients=clients, actions=actions, faults=faults)

    def move(self) -> None:
        """A publisher with several homes, which repeats nothing: what it may have published is not published again."""
        if not self._meetings.move:
            return
        subscribers = {action.client for action in self.scenario.actions if isinstance(action, Subscribe)}
        candidates = [client for client in self.scenario.clients if client.id not in subscribers]
        if not candidates:
            return
        mover = self.rng.choice(candidates)
        names = [broker.id for broker in self.scenario.brokers]
        homes = (*mover.brokers, self.rng.choice([name for name in names if name not in mover.brokers]))
        clients = [replace(one, brokers=homes) if one is mover else one for one in self.scenario.clients]
        actions: list[Action] = [
            replace(one, retry=False) if isinstance(one, Publish) and one.client == mover.id else one
            for one in self.scenario.actions
        ]
        self.scenario = replace(self.scenario, clients=clients, actions=actions)
