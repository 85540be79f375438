"""Payloads to try the pipeline with: lines that are hard to judge, and small logs of boxes that behave or do not."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from functools import cache
from itertools import islice, product
from random import Random

from pyspark.sql import DataFrame, SparkSession

from holdfast.apps.zapviewers.audience import Audience
from holdfast.apps.zapviewers.generator import ZapSettings, generate
from holdfast.apps.zapviewers.publications import payloads

EVENTS = "position bigint, topic string, published_at timestamp, payload binary"
PUBLISHED = datetime(2026, 11, 15, 20, 15, 30, tzinfo=UTC)

GOOD = b"2026-11-15,20:15:03,10.0.3.7,Kanal Nord,Vega 2"
_DATES = [b"2026-11-15", b"0000-01-01", b"0001-01-01", b"9999-12-31", b"2024-02-29", b"2023-02-29", b"1900-02-29",
          b"2000-02-29", b"1582-10-10", b"2026-13-01", b"2026-00-10", b"2026-04-31", b"2026-04-30", b"2026-12-31",
          b"2026-06-31", b"2026-02-30", b"2026-01-31", b"2026-01-32", b"2026-1-05", b" 2026-11-15",
          b"2026-11-15 ", b"+026-11-15", "\uff12026-11-15".encode(), b"2026-11-15T", b"2026/11/15", b""]  # fmt: skip
_TIMES = [b"00:00:00", b"23:59:59", b"24:00:00", b"23:60:00", b"23:59:60", b"3:04:05", b"03:04:05 ", b"03:04:05.1",
          b"03:04", b"", b"03:04:05Z", "0\uff13:04:05".encode()]  # fmt: skip
_BOXES = [b"10.0.3.7", b"0.0.0.0", b"255.255.255.255", b"256.0.0.1", b"10.0.03.7", b"010.0.3.7", b"10.0.3",
          b"1.2.3.4.5", b"10.0.3.7 ", b"10.0.3.-7", "10.0.3.\u0667".encode(), b"::1", b"", b"10.0.3.7\r",
          "10.0.3.7\u2028".encode(), "10.0.3.7\u0085".encode()]  # fmt: skip
_STATUSES = [b"volume 0", b"volume 100", b"volume 101", b"volume 007", b"volume 00", b"volume -1", b"volume",
             b"volume 35 ", b"mute", b"unmute", b"Mute", b"power on", b"power off", b"power  on", b"power on\r", b"",
             b"\xff", "power off\u2028".encode(), b"power off\x00"]  # fmt: skip
_CHANNELS = ["Kanal Nord", "Ø", "テレビ", "a\u2028b", "a\u2028", "\u0085", "a\u0085", "a\u007f", "a\u009f", "\u00a0a",
             "\ufffd", "\ufeffVega", "a\tb", "a\rb", "a\r", "a\x00", 'a"b', '"a"', "'a'", " a", "a ", " ", "a b", "",
             "😀", "é", "e\u0301", "\u00ad", "\u200b", "\\", "a;b", "NULL"]  # fmt: skip
_NO_TEXT = [b"\xff", b"a\xff", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
            b"\xf8\x88\x80\x80\x80", b"\x80", b"a\xe2,b", b"\xe2\x28\xa1"]  # fmt: skip


def hard_lines() -> list[bytes]:
    """Lines at the edges of the format, most of them off it."""
    day, time, box, to, came_from = GOOD.split(b",")
    names = [name.encode() for name in _CHANNELS] + _NO_TEXT
    found = [b",".join(fields) for fields in product(_DATES, [time], [box], [b"mute"])]
    found += [b",".join(fields) for fields in product([day], _TIMES, [box], [b"power on"])]
    found += [b",".join(fields) for fields in product([day], [time], _BOXES, [b"power off"])]
    found += [b",".join([day, time, box, status]) for status in _STATUSES]
    found += [b",".join([day, time, box, name, came_from]) for name in names]
    found += [b",".join([day, time, box, to, name]) for name in names]
    found += [b",".join([bad, time, box, to, came_from]) for bad in (*_DATES, *_NO_TEXT)]
    head = b",".join([day, time, box]) + b","
    for length in (58, 59, 60, 61):
        found += [
            (head + b"x" * 20 + b",").ljust(length, b"y"),
            (head + b"x" * 20 + b"," + "é".encode()).ljust(length, b"y"),
        ]
    found += [head + "é".encode() * 14 + b",y", head + "é".encode() * 15 + b",y"]
    found += [b"", b",", b",,,", b",,,,", b"\r", b" ", GOOD + b",", GOOD + b"\r", b"," + GOOD, GOOD + b",x", day, head]
    found += [
        head[:-1],
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b",", b", "),
        GOOD.replace(b",", b";"),
        b"\x00" * 10,
        b"x" * 5000,
    ]
    return found


def hard_payloads(seed: int = 1) -> list[tuple[int, bytes]]:
    """The hard lines, shuffled into events, with and without bytes that are no UTF-8; and hard payloads."""
    random = Random(seed)
    lines = hard_lines()
    random.shuffle(lines)
    bodies = [
        b"",
        b"\n",
        b"\n\n",
        GOOD,
        GOOD + b"\n",
        b"\n" + GOOD,
        GOOD + b"\n\n" + GOOD,
        GOOD + b"\r\n" + GOOD + b"\r\n",
    ]
    bodies += [
        "\u2028".join([GOOD.decode()] * 2).encode(),
        "\u0085".join([GOOD.decode()] * 2).encode(),
        b"\xff",
        b"\xff\n",
    ]
    while lines:
        count = random.randrange(1, 12)
        bodies.append(b"\n".join(lines[:count]) + random.choice([b"", b"\n"]))
        del lines[:count]
    return list(enumerate(bodies, start=1))


# What boxes say, each of them all that it ever says.
_SAYINGS = [
    [b"mute"], [b"power on"], [b"power off"], [b"Nord,Ost"],
    [b"power off", b"mute"], [b"mute", b"power off"], [b"power on", b"power on"], [b"power off", b"power off"],
    [b"power off", b"power on"], [b"power on", b"Nord,Ost"], [b"power off", b"Nord,Ost"],
    [b"Nord,Ost", b"power off", b"volume 3"], [b"Nord,Ost", b"power off", b"power on"],
    [b"Nord,Ost", b"power off", b"power off", b"power on"], [b"Nord,Ost", b"Nord,Ost"], [b"Nord,Nord"],
    [b"Nord,Ost", b"mute", b"Vega 2,Ost", b"power on"],
]  # fmt: skip


@cache
def mixed_payloads() -> list[tuple[int, bytes]]:
    """Ten minutes of honest and of wild boxes, in events of 20 lines."""
    settings = ZapSettings(boxes=80, first_box=1000, rate=0.6, seed=7, day=date(2026, 11, 15), start_s=20 * 3600)
    honest = [line for turn in islice(generate(settings), 600) for line in turn.text.splitlines()]
    wild = _wild_lines() + [
        b"2026-11-15,20:09:%02d,10.0.1.%d,%b" % (5 * number, box, said)
        for box, sayings in enumerate(_SAYINGS)
        for number, said in enumerate(sayings)
    ]
    every = -(-len(wild) // len(honest))
    lines = [
        line for number, said in enumerate(honest) for line in (said, *wild[number * every : (number + 1) * every])
    ]
    return list(enumerate(payloads([b"\n".join(lines) + b"\n"], lines_max=20), start=1))


def _wild_lines() -> list[bytes]:
    """Boxes that say anything in any order: twice, switched off twice, from where they are not, with clocks that go
    back, and lines that are none. Times lie within ten minutes, but for two boxes whose clocks are years off."""
    random = Random(3)
    clocks = dict.fromkeys(range(12), 0)
    names = [b"Nord", "Sør".encode(), b"Vega 2", b"Ost"]
    lines: list[bytes] = []
    for _ in range(600):
        box = random.randrange(12)
        clocks[box] = min(599, max(0, clocks[box] + random.choice([0, 0, 1, 3, 4, 5, 30, -2, -40])))
        day = random.choice([b"2031-01-01", b"2019-06-30"]) if box > 9 and random.random() < 0.1 else b"2026-11-15"
        head = b"%b,20:%02d:%02d,10.0.0.%d," % (day, *divmod(clocks[box], 60), box)
        if random.random() < 0.55:
            said = b"%b,%b" % (random.choice(names), random.choice(names))
        else:
            said = random.choice(
                [b"power on", b"power off", b"power off", b"mute", b"volume 7", b"volume 700", b"x,y,z"]
            )
        lines += [head + said] * random.choice([1, 1, 1, 2])
    return lines


def events(spark: SparkSession, found: Iterable[tuple[int, bytes]]) -> DataFrame:
    return spark.createDataFrame([(position, "zap", PUBLISHED, payload) for position, payload in found], EVENTS)


def after(found: Iterable[tuple[int, bytes]]) -> Audience:
    """What a broker knows after these events."""
    audience = Audience()
    for position, payload in found:
        audience.take(payload, position)
    return audience


def viewers_of(audience: Audience) -> dict[str, int]:
    """Channels that somebody watches, and how many do."""
    return {name: count for name in audience.names if (count := audience.num_viewers(name))}
