"""Links between simulated machines: latency, order, cuts, resets; and the adversarial profile.

With the `tcp` profile a link is FIFO. While its way is cut, what is sent stalls, and arrives after the cut is healed;
after a while the sending side gives the link up. An end that is closed or whose process was killed tells the other end,
if the way there is open; a machine that lost power tells no one until it is up again and gets something for a link that
it does not know. So a link loses only a suffix, and that only when it goes down.

Between two machines there is one link. If more are made, because both dialled at the same moment or one dialled twice,
both sides keep the one that was dialled last, whatever the order in which they hear of them.

With the adversarial profile each message may be lost, doubled or late, and overtake others of the same link.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec
from msgspec import Meta

from holdfast.kernel.links import Role
from holdfast.kernel.time import SECOND

if TYPE_CHECKING:
    from holdfast.sim.simulation import Simulation

Frame = tuple[int, bytes]
Fail = Callable[[str], None]  # tells the one that dialled why no link came of it

STALLED_FOR_MAX = 20 * SECOND  # how long a sender waits for a way that is cut, as a TCP stack would
CONNECT_TIMEOUT = 3 * SECOND


class Delays(Protocol):
    """How long a message takes."""

    def delay(self, source: str, target: str) -> int: ...


Share = Annotated[float, Meta(ge=0, le=1)]


class Adversary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shares of messages, 0 to 1."""

    loss: Share = 0.0
    duplication: Share = 0.0
    reordering: Share = 0.0
    late_us_max: Annotated[int, Meta(ge=0)] = 50_000  # how much later a message that is overtaken may come


class Station(Protocol):
    """What a link can end at. `life` counts starts and stops: a link belongs to one life."""

    name: str
    peer: str
    role: Role
    life: int
    dark: bool  # without power: no one answers

    @property
    def running(self) -> bool: ...

    def end_to(self, peer: str) -> End | None:
        """The link that there is to a peer."""
        ...

    def link_up(self, end: End, initiated: bool) -> None: ...

    def link_down(self, end: End, reason: str) -> None: ...

    def receive(self, end: End, frames: list[Frame]) -> None: ...


class End:
    """One end of a link."""

    __slots__ = (
        "address",
        "arrives_at",
        "cut_since",
        "free_at",
        "life",
        "link",
        "opens_at",
        "other",
        "peer",
        "stalled",
        "station",
        "up",
        "waking",
    )

    other: End

    def __init__(self, link: int, station: Station, peer: str, address: str = "", other: End | None = None) -> None:
        if other is not None:
            self.other = other
        self.link = link
        self.station = station
        self.life = station.life
        self.address = address  # what was dialled from here
        self.peer = peer  # what the station calls the other side
        self.up = False  # never in a later life of its station: one that stops takes its ends down
        self.waking = False  # a wake-up is planned for when the link is free
        self.opens_at = 0  # when the one that dialled hears that the link is there
        self.arrives_at = 0  # when the last packet that was sent from here arrives: nothing overtakes it
        self.free_at = 0  # when the next packet can be sent, on a link of limited rate
        self.stalled: list[Packet] = []  # sent from here while the way is cut
        self.cut_since = -1  # since when something is stalled

    def join(self, other: End) -> None:
        """There is someone at the other end."""
        self.other = other

    def come_up(self, initiated: bool) -> None:
        self.up = True
        self.station.link_up(self, initiated)

    def go_down(self, reason: str) -> None:
        self.up = False
        self.station.link_down(self, reason)

    def vanish(self) -> None:
        """Down, and no one is left here to hear of it."""
        self.up = False

    def is_to_be_woken(self) -> bool:
        """Whether a wake-up is to be planned for when the link is free: there is none yet, and will be one."""
        waking, self.waking = self.waking, True
        return not waking

    def woken(self) -> None:
        self.waking = False

    def occupy(self, now: int, time: int) -> None:
        """Something is sent on a link of limited rate, and takes so long."""
        self.free_at = max(now, self.free_at) + time

    def arrival(self, at: int, opening: bool = False) -> int:
        """When what could be there at a time arrives: in the order of sending."""
        if at < self.arrives_at:
            at = self.arrives_at
        self.arrives_at = at
        if opening:
            self.opens_at = at
        return at

    def stall(self, packet: Packet, now: int) -> bool:
        """The packet waits for the way; whether it is the first to."""
        self.stalled.append(packet)
        is_first = self.cut_since < 0
        if is_first:
            self.cut_since = now
        return is_first

    def take_stalled(self) -> list[Packet]:
        """The way is open again."""
        stalled, self.stalled, self.cut_since = self.stalled, [], -1
        return stalled


class Packet:
    """What travels together: the frames of one turn, or the news that the other end is closed or open."""

    __slots__ = ("accept", "close", "frames")

    def __init__(self, frames: list[Frame], close: str | None = None, accept: Fail | None = None) -> None:
        self.frames = frames
        self.close = close
        self.accept = accept  # how the one that dialled fails if it wants the link no more


class Network:
    """All links and all ways between machines."""

    def __init__(
        self,
        simulation: Simulation,
        delays: Delays,
        rng: Random,
        adversary: Adversary | None = None,
        bytes_per_second: int = 0,
    ) -> None:
        self._simulation = simulation
        self._delays = delays
        self._delay = delays.delay
        self._rng = rng
        self._adversary = adversary
        self._bytes_per_second = bytes_per_second
        self._last_link = 0
        self.sent_bytes = 0
        self._cuts: dict[tuple[str, str], int] = {}  # (source, target) → how many cuts lie on it
        self._by_way: dict[tuple[str, str], dict[End, None]] = {}  # ends with stalled packets

    # --------------------------------------------------------------------------------------------------------- ways
    def cut(self, source: str, target: str) -> None:
        """Nothing gets from source to target until every cut of the way is healed."""
        self._cuts[source, target] = self._cuts.get((source, target), 0) + 1

    def heal(self, source: str, target: str) -> None:
        count = self._cuts.get((source, target), 0) - 1
        if count > 0:
            self._cuts[source, target] = count
            return
        self._cuts.pop((source, target), None)
        for end in self._by_way.pop((source, target), {}):
            for packet in end.take_stalled():
                self._travel(end, packet)

    def heal_all(self) -> None:
        """Every way is open, and no adversary is there any more."""
        self._adversary = None
        for source, target in list(self._cuts):
            self._cuts[source, target] = 1
            self.heal(source, target)

    def is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cuts

    # ------------------------------------------------------------------------------------------------------- making
    def connect(self, station: Station, target: Station | None, expected: str, address: str, fail: Fail) -> None:
        """Dials. Leads to a link, or to one call of `fail`. `expected` is who should be there, if anyone is."""
        simulation = self._simulation
        if target is None:
            simulation.after(self._delay(station.name, station.name), fail, "no such address")
        elif self.is_cut(station.name, target.name):
            simulation.after(CONNECT_TIMEOUT, fail, "timed out")
        else:
            self._last_link += 1
            near = End(self._last_link, station, target.peer, address)
            simulation.after(self._delay(station.name, target.name), self._reach, (near, target, expected, fail))

    def _reach(self, arguments: tuple[End, Station, str, Fail]) -> None:
        near, target, expected, fail = arguments
        simulation = self._simulation
        back = self._delay(target.name, near.station.name)
        if near.life != near.station.life:
            return  # the one that dialled is gone
        if target.dark or self.is_cut(target.name, near.station.name):
            simulation.after(CONNECT_TIMEOUT, fail, "timed out")
        elif not target.running:
            simulation.after(back, fail, "connection refused")
        elif expected and target.peer != expected:
            simulation.after(back, fail, f"{target.peer} answered, not {expected}")
        elif self._has_newer(target, near.station.peer, near.link):
            simulation.after(back, fail, "superseded by a newer link")
        else:
            far = End(near.link, target, near.station.peer, other=near)
            near.join(far)
            # First, so that what the target's node says at once comes behind it.
            self.send(far, Packet([], accept=fail))
            if not self._open(far, initiated=False):
                self.send(far, Packet([], close="reset by the other side"))

    @staticmethod
    def _has_newer(station: Station, peer: str, link: int) -> bool:
        end = station.end_to(peer)
        return end is not None and end.link > link

    def _open(self, end: End, initiated: bool) -> bool:
        """The link is there at this end, in place of an older one. False if the station stopped over the older one."""
        older = end.station.end_to(end.peer)
        if older is not None:
            self.close(older, "superseded by a newer link")
        if end.life != end.station.life:
            return False
        end.come_up(initiated)
        return True

    # ------------------------------------------------------------------------------------------------------ sending
    def send(self, end: End, packet: Packet) -> None:
        """Puts a packet on the way from this end to the other."""
        for _, body in packet.frames:
            self.sent_bytes += len(body)
        if self._bytes_per_second:
            size = sum(len(body) + 5 for _, body in packet.frames)
            end.occupy(self._simulation.now, size * SECOND // self._bytes_per_second)
        if self._cuts and (end.station.name, end.other.station.name) in self._cuts:
            self._stall(end, packet)
        elif self._adversary is not None and packet.frames:
            self._travel_badly(end, packet, self._adversary)
        else:
            self._travel(end, packet)

    def _stall(self, end: End, packet: Packet) -> None:
        if self._adversary is not None and packet.frames:
            return  # this profile knows no repetition below the protocol
        self._by_way.setdefault((end.station.name, end.other.station.name), {})[end] = None
        if end.stall(packet, self._simulation.now):
            self._simulation.after(STALLED_FOR_MAX, self._give_up, (end, end.cut_since))

    def _give_up(self, arguments: tuple[End, int]) -> None:
        end, since = arguments
        if end.cut_since == since:
            self.close(end, "timed out")

    def _travel(self, end: End, packet: Packet) -> None:
        simulation = self._simulation
        now = simulation.now
        at = (end.free_at if end.free_at > now else now) + self._delay(end.station.name, end.other.station.name)
        simulation.at(end.arrival(at, packet.accept is not None), self._arrive, (end, packet))

    def _travel_badly(self, end: End, packet: Packet, adversary: Adversary) -> None:
        simulation, rng = self._simulation, self._rng
        for frame in packet.frames:
            copies = 2 if rng.random() < adversary.duplication else 1
            for _ in range(copies):
                if rng.random() < adversary.loss:
                    continue
                at = max(simulation.now, end.free_at) + self._delay(end.station.name, end.other.station.name)
                if rng.random() < adversary.reordering:
                    at = max(at + int(rng.random() * adversary.late_us_max * 1_000), end.opens_at)
                else:
                    at = end.arrival(at)
                simulation.at(at, self._arrive, (end, Packet([frame])))

    def _arrive(self, arguments: tuple[End, Packet]) -> None:
        end, packet = arguments
        far = end.other
        station = far.station
        if far.up:
            if packet.frames:
                station.receive(far, packet.frames)
            elif packet.close is not None:
                far.go_down(packet.close)
        elif far.life == station.life and packet.accept is not None:
            if self._has_newer(station, far.peer, far.link):
                # The other side has that newer link too, or is about to hear of it, and gives this one up by itself.
                packet.accept("superseded by a newer link")
            else:
                self._open(far, initiated=True)
        elif packet.close is None and end.up:
            if station.dark or self.is_cut(station.name, end.station.name):
                # No answer comes; the sender gives up in the end.
                self._simulation.after(STALLED_FOR_MAX, self._unanswered, end)
            else:
                # A station that does not know the link says so.
                self._simulation.after(self._delay(station.name, end.station.name), self._reset, end)

    def _unanswered(self, end: End) -> None:
        self.close(end, "timed out")

    def _reset(self, end: End) -> None:
        if end.up:
            end.go_down("reset by the other side")

    # ------------------------------------------------------------------------------------------------------ closing
    def close(self, end: End, reason: str) -> None:
        """This end closes; the other hears of it behind everything that was sent before."""
        if not end.up:
            return
        self.send(end, Packet([], close="closed by the other side"))
        end.go_down(reason)

    def reset(self, one: Station, other: Station) -> None:
        """The link between two breaks, if there is one: what is on its way is lost, and both ends hear of it."""
        for station, peer in ((one, other.peer), (other, one.peer)):
            end = station.end_to(peer)
            if end is not None and end.up:
                end.stalled.clear()
                end.go_down("reset by the network")

    def abandon(self, end: End, silently: bool) -> None:
        """The process at this end is gone. Its operating system says so, unless that is gone too."""
        if end.up:
            end.vanish()
            if not silently:
                self.send(end, Packet([], close="reset by the other side"))

    def lose_power(self, station: Station) -> None:
        """What the station had not got onto its way is gone."""
        for (source, _), ends in self._by_way.items():
            if source == station.name:
                for end in ends:
                    end.stalled.clear()
