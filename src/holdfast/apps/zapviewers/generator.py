"""A synthetic log of set-top boxes, by seed (D4-A10, D4-A12). It is no real log and must never be shown as one.

The log is what a server receives, second by second. A box keeps what happens to it and sends it every 10 s, at a
moment of its own; and it reports only what lasted for more than 3 s: a channel that is left sooner, or a volume that is
changed again, is in no line. So a line is sent 4 to 13 s after its TIME, the lines of one box are in the order of their
TIMEs and at least 4 s apart, and lines of different boxes are up to 9 s out of order.

Each box is on a channel, or off, from the beginning: what it says is true, FROMCH is where it was, and it comes back
on the channel on which it was switched off. `rhythm.py` says how many boxes are on and how many lines come at which
time of the day, `channels.py` how popular channels are. The first lines of a box say where it came from.

Lines are drawn, not boxes: for each second the number of lines, then a box for each, then what it does. That is where
the speed comes from: draws come in bulk as bytes, a line is four ready pieces, and a second is joined at once.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from datetime import date
from math import floor
from random import Random
from typing import NamedTuple

import msgspec

from holdfast.apps.zapviewers.channels import INVENTED, TABLE_BITS, zipf_table
from holdfast.apps.zapviewers.errors import ZapError
from holdfast.apps.zapviewers.lines import VOLUME_MAX
from holdfast.apps.zapviewers.rhythm import DAY_S, EAGERNESS_MAX, SHARE_ON_MEAN, pace, share_on

BOXES = 180_000
BOXES_END = 100 << 16  # 10.0.0.0 to 10.99.255.255: an address has at most 13 bytes
RATE = 500.0
BATCH_S = 10
RETENTION_S = 3

# What lines are about. The rest are changes of channel.
SHARE_SOUND = 0.15
SHARE_POWER = 0.03  # half of it on, half of it off; and more while the number of boxes that are on moves
CATCH_UP_TURNS = 30  # of 10 s, in which the boxes that are on come to be as many as the time of day asks for

_WORD = 1 << 32
_PLACES = (1 << TABLE_BITS) - 1
_OFFSETS = bytes(value % BATCH_S for value in range(256))
_STEPS = (-10, -5, -5, -4, -3, -2, -1, -1, 1, 1, 2, 3, 4, 5, 5, 10)


class ZapSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What to make. `rate` is the mean of a day in lines a second, of all boxes together; None is as much for each box
    as RATE for BOXES of them."""

    seed: int = 1
    boxes: int = BOXES
    first_box: int = 0
    rate: float | None = None
    day: date = date(2026, 1, 1)
    start_s: int = 20 * 3600  # of the day; when the first lines are received
    channels: Sequence[str] = INVENTED

    def __post_init__(self) -> None:
        if self.boxes < BATCH_S or self.first_box < 0 or self.first_box + self.boxes > BOXES_END:
            problem = f"boxes {self.first_box:,} to {self.first_box + self.boxes - 1:,}"
            raise ZapError(f"{problem}: give at least {BATCH_S}, with numbers from 0 to {BOXES_END - 1:,}")
        if self.rate is not None and not 0 < self.rate <= rate_max(self.boxes):
            raise ZapError(
                f"{self.rate:g} lines a second: the mean of {self.boxes:,} boxes is more than 0 and at most "
                f"{rate_max(self.boxes):g}, with which a box says one thing in {BATCH_S} s when most is said"
            )


class Turn(NamedTuple):
    """What was received in one second."""

    second: int  # since the log began
    lines: int
    text: bytes  # each line ends with "\\n"


def rate_max(boxes: int) -> float:
    """The mean rate with which, in the busiest minutes, a box that is on says one thing in 10 s."""
    return floor(boxes * SHARE_ON_MEAN / EAGERNESS_MAX / BATCH_S * 1000) / 1000


def generate(settings: ZapSettings) -> Iterator[Turn]:
    """The log, second by second, without an end."""
    return _Log(settings).turns()


class _Log:
    """All boxes. They are put into ten classes, by the second in which they send; `slot` is a box's place in lists."""

    def __init__(self, settings: ZapSettings) -> None:
        self._random = Random(settings.seed)
        self._rate = RATE * settings.boxes / BOXES if settings.rate is None else settings.rate
        self._start = settings.day.toordinal() * DAY_S + settings.start_s
        names = [name.encode() for name in settings.channels]
        self._to = [name + b"," for name in names]
        self._from = [name + b"\n" for name in names]
        self._popularity = zipf_table(len(names))
        self._volume_lines = [b"volume %d\n" % volume for volume in range(VOLUME_MAX + 1)]
        boxes = list(range(settings.first_box, settings.first_box + settings.boxes))
        self._random.shuffle(boxes)
        self._addresses = [b"10.%d.%d.%d," % (box >> 16, box >> 8 & 255, box & 255) for box in boxes]
        # Arrays and not lists, whose numbers lie all over the memory: reading those takes longer than making new ones.
        self._channels = array("H", [self._popularity[word & _PLACES] for word in self._words(settings.boxes)])
        self._volumes = bytearray(20 + (word & 31) for word in self._words(settings.boxes))
        self._muted = bytearray(settings.boxes)
        self._last = array("q", [self._start - BATCH_S - 10 * RETENTION_S]) * settings.boxes  # when each said something
        # Slots of the boxes that are on and off, by class. The boxes are shuffled: the first are as good as any.
        share = share_on(self._start % DAY_S)
        self._on: list[array[int]] = []
        self._off: list[array[int]] = []
        for turn in range(BATCH_S):
            slots = range(settings.boxes * turn // BATCH_S, settings.boxes * (turn + 1) // BATCH_S)
            on = round(share * len(slots))
            self._on.append(array("I", slots[:on]))
            self._off.append(array("I", slots[on:]))

    def turns(self) -> Iterator[Turn]:
        second = 0
        while True:
            pieces = self._turn(self._start + second)
            text = b"".join(pieces)
            yield Turn(second, text.count(b"\n"), text)
            second += 1

    def _turn(self, now: int) -> list[bytes]:
        """What the boxes send whose turn it is: what happened in 10 s, the last of them 4 s ago."""
        on, off = self._on[now % BATCH_S], self._off[now % BATCH_S]
        lines = self._rate * pace(now % DAY_S)
        lack = (share_on(now % DAY_S) * (len(on) + len(off)) - len(on)) / CATCH_UP_TURNS
        switched_on = self._round(lines * SHARE_POWER / 2 + max(0.0, lack))
        others = self._round(lines * (1 - SHARE_POWER / 2) + max(0.0, -lack))
        share_off = (lines * SHARE_POWER / 2 + max(0.0, -lack)) / others if others else 0.0
        start = now - BATCH_S - RETENTION_S
        stamps = [_stamp(start + offset) for offset in range(BATCH_S)]
        pieces: list[bytes] = []
        now_off = self._use(on, others, share_off, start, stamps, pieces)
        now_on = self._switch_on(off, switched_on, start, stamps, pieces)
        _move(now_off, on, off)
        _move(now_on, off, on)
        return pieces

    def _use(
        self, on: array[int], lines: int, share_off: float, start: int, stamps: list[bytes], pieces: list[bytes]
    ) -> list[int]:
        """Boxes that are on, and what they say. Gives the places in `on` of those that were switched off."""
        boxes = len(on)
        if not boxes:
            return []
        now_off = []
        zap_end = int((1 - SHARE_SOUND - share_off) * _WORD)
        off_start = int((1 - share_off) * _WORD)
        # Sorted, what a box sends stands together.
        places = sorted([word * boxes >> 32 for word in self._words(lines)])
        offsets = self._random.randbytes(lines).translate(_OFFSETS)
        last, channels, addresses, popularity = self._last, self._channels, self._addresses, self._popularity
        to_pieces, from_pieces = self._to, self._from
        for place, word, offset in zip(places, self._words(lines), offsets, strict=True):
            slot = on[place]
            time = start + offset
            if time <= last[slot] + RETENTION_S:
                time = last[slot] + RETENTION_S + 1
                offset = time - start
                if offset >= BATCH_S:
                    continue  # what came before did not last, or the box is off by now
            last[slot] = time
            if word < zap_end:
                came_from = channels[slot]
                to = popularity[word & _PLACES]
                if to == came_from:
                    to = (to + 1) % len(to_pieces)
                channels[slot] = to
                pieces += (stamps[offset], addresses[slot], to_pieces[to], from_pieces[came_from])
            elif word < off_start:
                pieces += (stamps[offset], addresses[slot], self._sound(slot, word & 0xFFFF))
            else:
                pieces += (stamps[offset], addresses[slot], b"power off\n")
                now_off.append(place)
                last[slot] = start + BATCH_S  # says nothing more in this turn
        for place in now_off:
            self._muted[on[place]] = 0
        return now_off

    def _switch_on(
        self, off: array[int], lines: int, start: int, stamps: list[bytes], pieces: list[bytes]
    ) -> list[int]:
        places = sorted({word * len(off) >> 32 for word in self._words(lines)}) if off else []
        for place, offset in zip(places, self._random.randbytes(len(places)).translate(_OFFSETS), strict=True):
            slot = off[place]
            offset = max(offset, self._last[slot] + RETENTION_S + 1 - start)
            self._last[slot] = start + offset
            pieces += (stamps[offset], self._addresses[slot], b"power on\n")
        return places

    def _sound(self, slot: int, draw: int) -> bytes:
        if self._muted[slot]:
            self._muted[slot] = 0
            return b"unmute\n"
        if draw & 0x30 == 0:
            self._muted[slot] = 1
            return b"mute\n"
        step = _STEPS[draw & 15]
        volume = self._volumes[slot] + step
        if not 0 <= volume <= VOLUME_MAX:
            volume -= 2 * step
        self._volumes[slot] = volume
        return self._volume_lines[volume]

    def _words(self, count: int) -> Sequence[int]:
        """Numbers of 32 bits, in bulk."""
        words = array("I", self._random.randbytes(4 * count))
        if sys.byteorder == "big":
            words.byteswap()
        return words

    def _round(self, value: float) -> int:
        """A whole number near a value, whose mean is the value."""
        return int(value + self._random.random())


def _move(places: list[int], source: array[int], target: array[int]) -> None:
    """Moves what stands at these places, which rise, to the end of another list. What remains changes its order."""
    for place in reversed(places):
        target.append(source[place])
        end = source.pop()
        if place < len(source):
            source[place] = end


def _stamp(second: int) -> bytes:
    day, rest = divmod(second, DAY_S)
    hour, rest = divmod(rest, 3600)
    return b"%b,%02d:%02d:%02d," % (date.fromordinal(day).isoformat().encode(), hour, rest // 60, rest % 60)
