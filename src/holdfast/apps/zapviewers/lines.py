"""What set-top boxes report, as text: one line for each event, in one of two forms (D4-A11).

    DATE,TIME,STB-IP,TOCH,FROMCH      2026-11-15,20:15:03,10.0.3.7,Kanal Nord,Vega 2
    DATE,TIME,STB-IP,STATUS           2026-11-15,20:15:09,10.0.3.7,volume 35

- Fields are separated by one comma, lines by one `\\n`; there is no quoting and no escaping, so that splitting at
  commas is all of the parsing. The number of fields tells the forms apart.
- DATE is `YYYY-MM-DD`, a day that exists; TIME is `HH:MM:SS`, up to 23:59:59. They are the box's own and carry no zone.
- STB-IP is an IPv4 address without leading zeros, so that a box has one spelling.
- TOCH and FROMCH are UTF-8 without commas, double quotes and control characters, and do not begin or end with a space.
- STATUS is `volume N` (N from 0 to 100, without leading zeros), `mute`, `unmute`, `power on` or `power off`.
- A line has less than 60 bytes, its `\\n` not counted.

A line that is not of this form is malformed. The checks depend on nothing but the bytes, not even on the tables of
Unicode, which differ between versions of Python: replicas must agree on what is malformed.
"""

from __future__ import annotations

import re
from datetime import date as calendar_day
from functools import lru_cache
from typing import Final, NamedTuple

LINE_BYTES_MAX = 59
VOLUME_MAX = 100

TIMES: Final = frozenset(
    b"%02d:%02d:%02d" % (hour, minute, second) for hour in range(24) for minute in range(60) for second in range(60)
)
"""Every time of a day. A look into a set is faster than taking a text apart, and as strict."""

SOUND, POWER_ON, POWER_OFF = range(3)
STATUSES: Final = {
    **{b"volume %d" % volume: SOUND for volume in range(VOLUME_MAX + 1)},
    b"mute": SOUND,
    b"unmute": SOUND,
    b"power on": POWER_ON,
    b"power off": POWER_OFF,
}
"""Every status, and what it means for who watches: nothing, or that the box is on or off from now on."""

_DATE = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_OCTET = rb"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = re.compile(rb"(?:%b\.){3}%b" % (_OCTET, _OCTET))
# Control characters of both kinds, since names end up on terminals.
_NO_CHANNEL = re.compile('[\x00-\x1f\x7f-\x9f,"]|^ | $|^$')


class Zap(NamedTuple):
    """A box went to another channel."""

    date: bytes
    time: bytes
    box: bytes
    to: bytes
    came_from: bytes


class Report(NamedTuple):
    """A box's volume, sound or power changed."""

    date: bytes
    time: bytes
    box: bytes
    status: bytes


class Malformed(NamedTuple):
    """A line that is of neither form, and why."""

    reason: str


def parse(line: bytes) -> Zap | Report | Malformed:
    """One line, without its `\\n`."""
    fields = line.split(b",")
    reason = problem_of(line, fields)
    if reason:
        return Malformed(reason)
    return Zap(*fields) if len(fields) == 5 else Report(*fields)


def problem_of(line: bytes, fields: list[bytes]) -> str:
    """Why a line, split at its commas, is malformed; nothing if it is not."""
    if not line:
        return "empty"
    if len(line) > LINE_BYTES_MAX:
        return "too long"
    if len(fields) not in (4, 5):
        return "not 4 or 5 fields"
    if not is_date(fields[0]):
        return "no date"
    if fields[1] not in TIMES:
        return "no time"
    if not is_address(fields[2]):
        return "no address"
    if len(fields) == 4:
        return "" if fields[3] in STATUSES else "no status"
    return "" if is_channel(fields[3]) and is_channel(fields[4]) else "no channel"


@lru_cache(maxsize=1024)
def is_date(text: bytes) -> bool:
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    try:
        calendar_day(year, month, day)
    except ValueError:
        return False
    return True


def is_address(text: bytes) -> bool:
    return _ADDRESS.fullmatch(text) is not None


@lru_cache(maxsize=8192)
def is_channel(text: bytes) -> bool:
    try:
        return _NO_CHANNEL.search(text.decode("utf-8")) is None
    except UnicodeDecodeError:
        return False
