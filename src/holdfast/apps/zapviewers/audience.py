"""Who watches what: the state of every box, and the viewers of every channel, kept up line by line (D4-B9).

What a line does:

- A change of channel: the box leaves the channel that it is known to be on, and joins TOCH.
- `power off`: it leaves its channel. `power on`: it is back on the channel on which it was switched off, as boxes do;
  if that is not known, on none until its next change.
- `volume`, `mute`, `unmute`: nothing.

Own state is trusted over what a line claims. A line that disagrees with it is an anomaly, which is counted: FROMCH is
not where the box is known to be, a change or a sound comes from a box that is off, a box is switched off or on twice.
A box that is heard of for the first time disagrees with nothing.

Everything here is a function of the lines in their order, so that replicas agree.
"""

from __future__ import annotations

import sys
from array import array
from collections import deque
from heapq import nlargest
from typing import NamedTuple

import msgspec

from holdfast.apps.zapviewers.lines import (
    LINE_BYTES_MAX,
    POWER_OFF,
    POWER_ON,
    SOUND,
    STATUSES,
    TIMES,
    problem_of,
)

BOXES_MAX = 5_000_000
CHANNELS_MAX = 20_000  # numbers of channels are kept in 16 bits
SAMPLE_LINES = 20
SAMPLE_BYTES_MAX = 80
DATES_MAX = 1000

# The number of "no channel that we know of". Channels are numbered from 2, and a box that is off has the negative
# number of the channel that it was on.
UNKNOWN = 1


class ChannelViewers(NamedTuple):
    """A channel, and how many watch it."""

    channel: str
    viewers: int


class Refused(NamedTuple):
    """A line that was not taken: the event that brought it, its first bytes, and why."""

    position: int
    line: bytes
    reason: str


class _State(msgspec.Struct, frozen=True, array_like=True):
    lines: int
    malformed: int
    anomalies: int
    sample: list[tuple[int, bytes, str]]
    channels: list[bytes]  # the first has number 2
    addresses: bytes  # of the boxes; 32 bits each, little-endian
    states: bytes  # of the same boxes, 16 bits each


class Audience:
    """All boxes and channels that were heard of."""

    __slots__ = (
        "_addresses",
        "_boxes",
        "_dates",
        "_numbers",
        "_viewers",
        "anomalies",
        "lines",
        "malformed",
        "names",
        "sample",
    )

    def __init__(self) -> None:
        self.lines = 0
        self.malformed = 0
        self.anomalies = 0
        self.names: list[str] = []  # of the channels, in the order in which they were heard of; the first has number 2
        self.sample: deque[Refused] = deque(maxlen=SAMPLE_LINES)
        self._boxes: dict[bytes, int] = {}
        self._addresses = array("I")  # of the boxes, in the order of `_boxes`
        self._numbers: dict[bytes, int] = {}
        self._viewers = [0, 0]
        self._dates: set[bytes] = set()  # that were found to be dates; says nothing about the past, and is no state

    # ------------------------------------------------------------------------------------------------------ questions
    @property
    def boxes(self) -> int:
        """How many boxes are known, on or off."""
        return len(self._boxes)

    @property
    def watching(self) -> int:
        """How many boxes are on, on a channel that is known or not."""
        return sum(self._viewers)

    def num_viewers(self, channel: str) -> int:
        """How many watch a channel; nobody watches one that was never heard of (D4-G4)."""
        number = self._numbers.get(channel.encode("utf-8", "surrogatepass"))
        return 0 if number is None else self._viewers[number]

    def compute_top_list(self, n: int) -> list[ChannelViewers]:
        """The n channels that most watch, the most watched first, equals by name; none that nobody watches (D4-G4)."""
        least = min(nlargest(n, self._viewers[2:]), default=0)
        ranked = [
            (-viewers, name)
            for name, viewers in zip(self.names, self._viewers[2:], strict=True)
            if viewers and viewers >= least
        ]
        ranked.sort()
        return [ChannelViewers(name, -negative) for negative, name in ranked[: max(0, n)]]

    def counts(self) -> list[int]:
        """The viewers of every channel of `names`, in their order."""
        return self._viewers[2:]

    # ---------------------------------------------------------------------------------------------------------- lines
    def take(self, payload: bytes, position: int = 0) -> None:
        """Takes the lines of one event. Lines that are malformed are counted and kept apart."""
        lines = payload.split(b"\n")
        if not lines[-1]:
            lines.pop()
        self.lines += len(lines)
        # A line of known names needs only looks into tables; `_learn` checks every other one, and enters its names.
        boxes, numbers, viewers, dates = self._boxes, self._numbers, self._viewers, self._dates
        for line in lines:
            fields = line.split(b",")
            if len(fields) == 5:
                date, time, box, to_name, from_name = fields
                try:
                    was, to, came_from = boxes[box], numbers[to_name], numbers[from_name]
                except KeyError:
                    if not self._learn(line, fields, position):
                        continue
                    was, to, came_from = boxes[box], numbers[to_name], numbers[from_name]
                else:
                    plain = date in dates and time in TIMES and len(line) <= LINE_BYTES_MAX
                    if not plain and not self._learn(line, fields, position):
                        continue
                if was == came_from:
                    viewers[was] -= 1
                elif was == UNKNOWN:
                    viewers[UNKNOWN] -= 1
                else:
                    self.anomalies += 1
                    if was > 0:
                        viewers[was] -= 1
                viewers[to] += 1
                boxes[box] = to
            else:
                self._take_report(line, fields, position)

    def _take_report(self, line: bytes, fields: list[bytes], position: int) -> None:
        if len(fields) != 4:
            self._learn(line, fields, position)
            return
        date, time, box, status = fields
        was = self._boxes.get(box, 0)
        change = STATUSES.get(status)
        plain = was and change is not None and date in self._dates and time in TIMES
        if not plain or len(line) > LINE_BYTES_MAX:
            if not self._learn(line, fields, position):
                return
            change = STATUSES[status]
        if change == SOUND:
            self.anomalies += was < 0
        elif not was:
            # A box that is new was entered as one that is on, and that is no anomaly.
            if change == POWER_OFF:
                self._boxes[box] = -UNKNOWN
                self._viewers[UNKNOWN] -= 1
        elif (change == POWER_ON) == (was > 0):
            self.anomalies += 1
        else:
            self._boxes[box] = -was
            self._viewers[abs(was)] += 1 if was < 0 else -1

    def _learn(self, line: bytes, fields: list[bytes], position: int) -> bool:
        """Checks a line, and enters what is new in it. False if it is malformed, or there is no place for it."""
        reason = problem_of(line, fields) or self._no_place_for(fields)
        if reason:
            self.malformed += 1
            self.sample.append(Refused(position, line[:SAMPLE_BYTES_MAX], reason))
            return False
        if len(self._dates) >= DATES_MAX:
            self._dates.clear()
        self._dates.add(fields[0])
        for name in fields[3:] if len(fields) == 5 else ():
            if name not in self._numbers:
                self._numbers[name] = len(self._viewers)
                self.names.append(name.decode())
                self._viewers.append(0)
        if fields[2] not in self._boxes:
            self._boxes[fields[2]] = UNKNOWN
            a, b, c, d = fields[2].split(b".")
            self._addresses.append(int(a) << 24 | int(b) << 16 | int(c) << 8 | int(d))
            self._viewers[UNKNOWN] += 1
        return True

    def _no_place_for(self, fields: list[bytes]) -> str:
        if fields[2] not in self._boxes and len(self._boxes) >= BOXES_MAX:
            return "one box too many"
        new = sum(name not in self._numbers for name in set(fields[3:])) if len(fields) == 5 else 0
        return "one channel too many" if new and len(self._numbers) + new > CHANNELS_MAX else ""

    # ---------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> bytes:
        """The whole state. Boxes and channels stand in the order in which they were heard of, which is that of the
        events, and so the same at all replicas; sorting them would hold a broker up for long."""
        return msgspec.msgpack.encode(
            _State(
                lines=self.lines,
                malformed=self.malformed,
                anomalies=self.anomalies,
                sample=[(position, line, reason) for position, line, reason in self.sample],
                channels=list(self._numbers),
                addresses=_little_endian(self._addresses[:]).tobytes(),
                states=_little_endian(array("h", self._boxes.values())).tobytes(),
            )
        )

    def set_state(self, state: bytes) -> None:
        """Replaces the whole state."""
        new = msgspec.msgpack.decode(state, type=_State)
        self.lines, self.malformed, self.anomalies = new.lines, new.malformed, new.anomalies
        self.sample = deque((Refused(*refused) for refused in new.sample), SAMPLE_LINES)
        self.names = [name.decode() for name in new.channels]
        self._numbers = {name: number for number, name in enumerate(new.channels, start=2)}
        self._viewers = [0] * (2 + len(new.channels))
        self._boxes = {}
        addresses, states = array("I"), array("h")
        addresses.frombytes(new.addresses)
        states.frombytes(new.states)
        self._addresses = _little_endian(addresses)
        for address, number in zip(addresses, _little_endian(states), strict=True):
            box = b"%d.%d.%d.%d" % (address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255)
            self._boxes[box] = number
            if number > 0:
                self._viewers[number] += 1


def _little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
