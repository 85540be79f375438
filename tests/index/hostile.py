"""What is held of any bytes that claim to be a batch of events: for tests, and for scripts/fuzz_events.py.

Three ways must agree: the compiled scan, the portable one, and msgspec's strict decoding with `check_event`. What is
sound is then looked at, cut, joined and matched, compiled, portable and by the oracle, `Filter.matches`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

import msgspec

from holdfast import EventError, Filter, FilterIndex
from holdfast.matching.engine import plain_event
from holdfast.matching.index import ENGINES
from holdfast.matching.plan import plan
from holdfast.model import batch as chosen
from holdfast.model import portable_events
from holdfast.model import received as received_module
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, EventBytes, encode_fields
from holdfast.model.portable_events import Encoded
from holdfast.model.received import ReceivedEvent
from tests.filters.strategies import Choices

FILTERS = {
    text: Filter(text)
    for text in (
        *("x = 1", "x > 2.5", "s LIKE 'a%c'", "s = 'ä'", "f <= 0 OR b", "x + f > 0", "topic = 't'", "z IS NULL"),
        *("x = 'a' AND s = 'ä'", "s = 1 AND x = 1"),  # of which one is true of values that were named before others
    )
}
INDEXES: dict[str, FilterIndex[str]] = {engine: FilterIndex(engine=engine) for engine in ENGINES}  # type: ignore[arg-type]
for _index in INDEXES.values():
    for _id, _filter in FILTERS.items():
        _index.add(_id, _filter)

FIELDS = ("publisher", "incarnation", "sequence", "topic", "attributes", "payload", "published_at", "lifetime")
PRIMITIVES = ("scan", "take", "join", "deadlines", "publishers", "topics")
OURS: dict[str, Callable[..., Any]] = {name: getattr(chosen, name) for name in PRIMITIVES}
PORTABLE: dict[str, Callable[..., Any]] = {name: getattr(portable_events, name) for name in PRIMITIVES}

received: Callable[..., Any] = vars(received_module)["received"]

_decode = msgspec.msgpack.Decoder(list[Event]).decode
_slices = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode


# For the fuzzer, which asks the kernel itself, of bytes that nobody has scanned; no filter of it must be asked in turn.
REFUSALS = (ValueError, OverflowError, EventError)
UNREAD = SimpleNamespace(data=b"", offsets=(0,))


def _bare_kernel() -> Any:
    if "compiled" not in ENGINES:
        return None
    from holdfast.matching._kernel import Kernel

    def refuse(batch: EventBatch, row: int) -> NoReturn:
        raise EventError("not taken", "", row)

    kernel = Kernel(plain_event, refuse)
    for text in (
        "x = 1",
        "x > 2.5 AND b",
        "s LIKE 'a%c'",
        "s = 'ä' OR s > 'x'",
        "f <= 0",
        "topic = 't'",
        "z IS NULL",
        "",
    ):
        kernel.add(text, Filter(text), plan(Filter(text)))
    return kernel


KERNEL = _bare_kernel()


def check(data: Encoded) -> bool:
    """Whether these bytes are a batch. AssertionError if two ways differ; any other exception is a mistake, too."""
    is_batch = False
    for bounded in (True, False):
        found = _answer(OURS["scan"], data, bounded)
        assert found == _answer(PORTABLE["scan"], data, bounded), bytes(data).hex()
        is_batch = found is not None
    _check_unread(data)
    if is_batch:
        _check_batch(data)
    return is_batch


def _answer(ask: Callable[..., Any], *arguments: Any) -> Any:
    """What is answered, or None where the bytes are refused."""
    try:
        return ask(*arguments)
    except (ValueError, EventError):
        return None


def _check_batch(data: Encoded) -> None:
    batch = EventBatch.read(EventBytes(data), bounded=False)
    events, slices = _decode(data), [bytes(slice) for slice in _slices(data)]
    assert [bytes(data[start:end]) for start, end in zip(batch.offsets, batch.offsets[1:], strict=False)] == slices
    assert batch.expires == any(event.lifetime for event in events)
    assert [row for row in range(len(batch)) if batch.problem(row)] == list(batch.doubtful)
    run_ids = [f"{event.publisher}/{event.incarnation}/{event.sequence}" for event in events]
    assert batch.ids == run_ids
    place = (data, batch.offsets)
    assert OURS["publishers"](*place) == PORTABLE["publishers"](*place) == batch.publishers
    assert OURS["topics"](*place) == PORTABLE["topics"](*place) == list(dict.fromkeys(event.topic for event in events))
    assert OURS["deadlines"](*place) == PORTABLE["deadlines"](*place) == [event.deadline for event in events]
    for event, made in zip(events, received(ReceivedEvent, EventBytes(data), batch.offsets, "", (), ()), strict=True):
        for name in FIELDS:
            assert repr(getattr(made, name)) == repr(getattr(event, name))
    odd, behind = batch.take(range(1, len(batch), 2)), batch.behind(1)
    assert [bytes(slice) for slice in odd.slices] == slices[1::2]
    assert OURS["take"](*place, range(1, len(batch), 2)) == PORTABLE["take"](*place, range(1, len(batch), 2))
    whole = EventBatch.joined([behind, odd, batch])
    assert [bytes(slice) for slice in whole.slices] == slices[1:] + slices[1::2] + slices
    again = EventBatch.read(whole.encoded, bounded=False)
    assert (again.offsets, again.doubtful) == (whole.offsets, whole.doubtful)
    check_matches(whole.part(0, len(behind) + len(odd)), events[1:] + events[1::2])
    check_matches(batch, events)


def check_matches(batch: EventBatch, events: Sequence[Event]) -> None:
    """Both engines find in a batch what the oracle finds in its events, or refuse the first that no filter can read."""
    wanted = _expected(events)
    for index in INDEXES.values():
        try:
            found: Any = index.match_encoded(batch)
        except EventError as error:
            found = (error.problem, error.attribute, error.row)
        assert found == wanted
        try:
            rows: Any = index.rows_matching(batch)
        except EventError as error:
            rows = (error.problem, error.attribute, error.row)
        if isinstance(wanted, dict):
            matched = sorted({row for rows_of_one in wanted.values() for row in rows_of_one})
            assert rows == (matched if len(matched) < len(events) else range(len(events)))
        else:
            assert rows == wanted


def _expected(events: Sequence[Event]) -> Any:
    rows: dict[str, list[int]] = {}
    for row, event in enumerate(events):
        try:
            plain_event(event.attributes, event.topic, row)
        except EventError as error:
            return error.problem, error.attribute, row
        for text, filter in FILTERS.items():
            if filter.matches(event.attributes, event.topic):
                rows.setdefault(text, []).append(row)
    return {text: found if len(found) < len(events) else range(len(events)) for text, found in rows.items()}


def _check_unread(data: Encoded) -> None:
    """Bytes that nobody has scanned, under offsets that lie: whatever is answered, nothing else than a refusal is
    raised, and what is copied are these bytes."""
    size = len(data)
    for offsets in ((0, size), (0, size // 2, size), (size // 3, size // 3, size - size // 4)):
        for name in ("deadlines", "publishers", "topics"):
            _answer(OURS[name], data, offsets)
        for made in _answer(received, ReceivedEvent, EventBytes(data), offsets, "", (), ()) or ():
            for name in FIELDS:
                _answer(getattr, made, name)
        found = _answer(INDEXES[ENGINE].match_encoded, EventBatch(EventBytes(data), offsets, False))
        assert found is None or set(found) <= set(FILTERS)
        assert OURS["join"]([(data, offsets)] * 2) == PORTABLE["join"]([(data, offsets)] * 2)
        assert OURS["take"](data, offsets, [0]) == PORTABLE["take"](data, offsets, [0])
    for lies in (
        () if not size else ((size + 1, size + 2), (0, size + 1), (size, 0), (0, -1, size), (0, 2**64), (0, None))
    ):
        for name in ("deadlines", "publishers", "topics"):
            assert _refused(OURS[name], data, lies)
        if KERNEL is not None:
            assert _refused(KERNEL.match_encoded, SimpleNamespace(data=data, offsets=lies))
        assert _refused(OURS["join"], [(data, lies)])
        assert _refused(OURS["take"], data, lies, range(len(lies) - 1))
        if ENGINE == "compiled":
            assert _refused(received, ReceivedEvent, data, lies, "", (), ())


ENGINE = "compiled" if "compiled" in ENGINES else "portable"


def _refused(ask: Callable[..., Any], *arguments: Any) -> bool:
    try:
        ask(*arguments)
    except (ValueError, OverflowError, TypeError, IndexError, EventError):
        return True
    return ask.__module__ == portable_events.__name__  # which can read nothing that is not there


# ---------------------------------------------------------------------------------------- batches that are nearly sound
def seeds() -> list[bytes]:
    """Sound batches, of each form once at least: what a fuzzer begins with."""
    one = encode_fields("client:a", 7, 1, "t", {"x": 1, "s": "abc", "f": -2.5, "b": True}, b"payload", 0, 0)
    mortal = encode_fields("client:a", 7, 2, "", {"x": 2**40, "größe": "ä€😀", "n" * 40: False}, b"", 5, 10**9)
    other = encode_fields("b", 2**63, 2**64 - 1, "t" * 40, {}, b"x" * 300, -(2**63), -1)
    bare = msgspec.Raw(b"\x95\xa1p\x01\x03\xa0\x80")
    twice = msgspec.Raw(
        b"\x96\xa1p\x01\x04\xa0\x83\xa1x\x01\xa1x\xca\x7f\xc0\x00\x00\xa1x\xd3\x00\x00\x00\x00\x00\x00\x00\x01\xc4\x00"
    )
    kinds = msgspec.Raw(b"\x95\xa1p\x01\x05\xa0\x84\xa1s\xa2\xc3\xa4\xa1x\x01\xa1s\x01\xa1x\xa1a")
    long = msgspec.Raw(
        b"\x95\xd9\x01p\xd0\x01\xcf"
        + b"\x00" * 7
        + b"\x05\xda\x00\x01t\xdf\x00\x00\x00\x01\xdb\x00\x00\x00\x01s\xd9\x03a-c"
    )
    batches: tuple[list[msgspec.Raw], ...] = (
        [],
        [one],
        [bare] * 3,
        [mortal, other],
        [one, mortal, bare, twice, kinds, long, other],
        [bare] * 20,
    )
    encoded = [msgspec.msgpack.encode(list(batch)) for batch in batches]
    return [
        *encoded,
        b"\xdd\x00\x00\x00\x01" + bytes(one),
        b"\xdc\x00\x02" + bytes(one) + bytes(long),
        b"\xdd\xff\xff\xff\xff",
    ]


INTEGERS = (0, 1, 2, 127, 128, 2**32, 2**63 - 1, 2**63, 2**64 - 1, -1, -32, -33, -(2**31), -(2**63))
TEXTS = (
    b"",
    b"x",
    b"s",
    b"t",
    b"topic",
    b"abc",
    "ä".encode(),
    "€😀".encode(),
    b"a" * 31,
    b"a" * 32,
    b"n" * 129,
    b"a" * 300,
)
BAD_TEXTS = (
    *(b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf"),
    *(b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff"),
    *(b"\xe2\x82", b"\xf0\x9f\x98", b"a\xc3", b"\xc3a", b"\xe2\x82a", b"\xf0\x9f\x98a", b"12345678\xff"),
)
EDGE_TEXTS = (
    *(b"\x00", b"\x7f", b"\xc2\x80", b"\xdf\xbf", b"\xe0\xa0\x80", b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbf"),
    *(b"\xf0\x90\x80\x80", b"\xf4\x8f\xbf\xbf"),
)
LONG_TEXTS = (b"l" * 65_536, b"l" * 65_537, "ä".encode() * 32_769)
FLOATS = (0.0, -0.0, 1.0, 2.5, 1e300, 5e-324, float("nan"), float("inf"), float("-inf"))
OTHERS = (
    b"\xc0",
    b"\xc1",
    b"\x90",
    b"\x80",
    b"\xc4\x01p",
    b"\xd4\x01x",
    b"\xc7\x02\x01xy",
    b"\x91\x01",
    b"\xd6\xff\x00\x00\x00\x01",
)


def _seldom(choices: Choices, times: int) -> bool:
    """Once in so many times."""
    return choices.below(times) == times - 1


def _integer(choices: Choices) -> bytes:
    """In any of its forms that holds it."""
    number = choices.of(INTEGERS)
    forms = [
        (0xCC, ">B"),
        (0xCD, ">H"),
        (0xCE, ">I"),
        (0xCF, ">Q"),
        (0xD0, ">b"),
        (0xD1, ">h"),
        (0xD2, ">i"),
        (0xD3, ">q"),
    ]
    start = choices.below(len(forms))
    if not choices.below(2):
        return msgspec.msgpack.encode(number)
    for code, form in forms[start:] + forms[:start]:
        try:
            return bytes([code]) + struct.pack(form, number)
        except struct.error:
            continue
    raise AssertionError(number)


def _sized(choices: Choices, forms: Sequence[tuple[int, int]], text: bytes) -> bytes:
    """A header of a form that can hold it; now and then it says another length."""
    length = max(0, len(text) + choices.of((-1, 1, 2**16))) if _seldom(choices, 60) else len(text)
    fitting = [(code, width) for code, width in forms if length < 256**width]
    code, width = choices.of(fitting or forms[-1:])
    return bytes([code]) + length.to_bytes(width, "big") + text


def _text(choices: Choices) -> bytes:
    if _seldom(choices, 60):
        return _other(choices)
    text = (
        choices.of(BAD_TEXTS)
        if _seldom(choices, 40)
        else choices.of(LONG_TEXTS)
        if _seldom(choices, 80)
        else choices.of(TEXTS)
    )
    if len(text) < 32 and choices.below(3):
        return bytes([0xA0 | len(text)]) + text
    return _sized(choices, ((0xD9, 1), (0xDA, 2), (0xDB, 4)), text)


def _float(choices: Choices) -> bytes:
    number = choices.of(FLOATS) if _seldom(choices, 8) else choices.of(FLOATS[:6])
    if number != 1e300 and choices.below(2):
        return b"\xca" + struct.pack(">f", number)
    return b"\xcb" + struct.pack(">d", number)


def _other(choices: Choices) -> bytes:
    return choices.of((*OTHERS, b"\x01", b"\xa1x", b"\xcb" + struct.pack(">d", 1.0)))


def _value(choices: Choices) -> bytes:
    if _seldom(choices, 80):
        return _other(choices)
    return (_integer, _float, _text, lambda choices: choices.of((b"\xc2", b"\xc3")))[choices.below(4)](choices)


def _counted(choices: Choices, fixed: int, wide: int, count: int, items: bytes) -> bytes:
    if _seldom(choices, 60):
        count = choices.of((count + 1, max(0, count - 1), 2**16, 2**32 - 1))
    if count < 16 and choices.below(3):
        return bytes([fixed | count]) + items
    if count < 2**16 and choices.below(2):
        return bytes([wide]) + count.to_bytes(2, "big") + items
    return bytes([wide + 1]) + count.to_bytes(4, "big") + items


def _event(choices: Choices) -> bytes:
    names = [
        _text(choices) for _ in range(choices.of((0, 1, 2, 3, 5, 66)) if _seldom(choices, 8) else choices.below(4))
    ]
    attributes = b"".join([name + _value(choices) for name in names])
    payload = (
        _other(choices)
        if _seldom(choices, 60)
        else _sized(choices, ((0xC4, 1), (0xC5, 2), (0xC6, 4)), b"p" * choices.below(40))
    )
    fields = [
        *(_text(choices), _integer(choices), _integer(choices), _text(choices)),
        _counted(choices, 0x80, 0xDE, len(names), attributes),
        *(payload, _integer(choices), _integer(choices) if choices.below(2) else b"\x00"),
    ]
    count = choices.of((0, 4, 9)) if _seldom(choices, 40) else choices.of((8, 8, 8, 7, 6, 5))
    return _counted(choices, 0x90, 0xDC, count, b"".join([*fields, b"\x00"][:count]))


def nearly_sound(source: bytes) -> bytes:
    """Bytes of a batch in any of the forms that msgpack has, now and then with something in it that breaks a rule."""
    choices = Choices(source)
    events = [_event(choices) for _ in range(choices.below(5))]
    events += events[:1] * choices.below(2)
    data = _counted(choices, 0x90, 0xDC, len(events), b"".join(events))
    if _seldom(choices, 30):
        return data + choices.of((b"\x00", b"\xc1", b"\x90"))
    if _seldom(choices, 30):
        return data[: choices.below(len(data))]
    return data
