"""Bytes of strangers: what reads batches agrees on them with msgspec and the oracle, and reads nothing beyond them."""

from __future__ import annotations

import gc
import random
import tracemalloc
from array import array
from collections import Counter
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import EventError, Filter, FilterIndex
from holdfast.model import event as limits
from holdfast.model.batch import EventBatch
from holdfast.model.event import Event, EventBytes, check_event, encode_event
from holdfast.model.received import ReceivedEvent
from tests.index.hostile import (
    BAD_TEXTS,
    EDGE_TEXTS,
    ENGINE,
    KERNEL,
    OURS,
    PORTABLE,
    PRIMITIVES,
    check,
    nearly_sound,
    received,
    seeds,
)
from tests.index.test_encoded import mutated
from tests.tiers import one_always

SOURCES = st.binary(max_size=400)
needs_compiler = pytest.mark.skipif(ENGINE == "portable", reason="the compiled kernel is not built")

# What was found by fuzzing, and what comes close to the edges.
CORPUS = [
    b"",
    b"\x90",
    b"\xdc\x00\x00",
    b"\xdd\x00\x00\x00\x00",
    b"\xdd\xff\xff\xff\xff",
    b"\xdc",
    b"\xc1",
    b"\x80",
    b"\x91",
    b"\x91\x95",
    b"\x90\x90",
    b"\x91" * 100_000,
    b"\x81" * 100_000,
    b"\x91\x95\xdb\xff\xff\xff\xff",
    b"\x91\x95\xa1p\x01\x01\xa0\xdf\xff\xff\xff\xff" + b"\xa0\x01" * 50,
    b"\x91\x95\xa1p\x01\x01\xa0\xdf\x00\x01\x00\x00" + b"\xa0\x01" * 65_536,
    b"\x91\x96\xa1p\x01\x01\xa0\x80\xc6\xff\xff\xff\xff",
    b"\x91\x98\xa1p\x01\x01\xa0\x80\xc4\x00\xcf" + b"\xff" * 8 + b"\xcf" + b"\xff" * 8,
    b"\x91\x98\xa1p\x01\x01\xa0\x80\xc4\x00\xd3\x80" + b"\x00" * 7 + b"\xd3\x80" + b"\x00" * 7,
    b"\x92\x95\xa1p\x01\xcf" + b"\xff" * 8 + b"\xa0\x80\x95\xa1p\x01\x00\xa0\x80",
    b"\x92\x95\xa1p\x01\xff\xa0\x80\x95\xa1p\x01\x00\xa0\x80",
]


@pytest.mark.parametrize("data", [*seeds(), *CORPUS], ids=lambda data: data[:12].hex() + f"-{len(data)}")
def test_what_is_known_to_be_hard_is_read_alike_by_all(data: bytes) -> None:
    check(data)


def with_text(place: int, text: bytes) -> bytes:
    """A batch of an event with this text as its publisher, topic, an attribute's name, or its value."""
    texts = [b"p", b"t", b"s", b"v"]
    texts[place] = text
    publisher, topic, name, value = [bytes([0xD9, len(found)]) + found for found in texts]
    return b"\x91\x95" + publisher + b"\x01\x01" + topic + b"\x81" + name + value


@pytest.mark.parametrize("place", range(4), ids=["publisher", "topic", "name", "value"])
def test_text_is_what_python_can_decode_and_nothing_else(place: int) -> None:
    for lead in (b"", b"a", b"1234567", b"12345678", "ä".encode()):
        for text in BAD_TEXTS:
            assert not check(with_text(place, lead + text)), text
            check(with_text(place, text + lead))
        for text in EDGE_TEXTS:
            assert check(with_text(place, lead + text + lead)), text


@pytest.mark.parametrize("name", [b"topic", b"", b"n" * 129])
def test_a_name_that_no_attribute_has_makes_an_event_doubtful(name: bytes) -> None:
    data = with_text(2, name)
    assert check(data)
    assert EventBatch.read(EventBytes(data)).doubtful == (0,)


def test_a_run_of_a_publisher_ends_where_anything_of_it_changes() -> None:
    ids = [("p", 1, 1), ("p", 1, 2), ("p", 2, 3), ("p", 2, 4), ("q", 2, 5), ("q", 2, 7), ("q", 2, 7), ("q", -2, 8)]
    data = msgspec.msgpack.encode([(*id, "", {}) for id in ids])
    assert check(data)
    runs = [("p", 1, 1, 2), ("p", 2, 3, 2), ("q", 2, 5, 1), ("q", 2, 7, 1), ("q", 2, 7, 1), ("q", -2, 8, 1)]
    assert EventBatch.read(EventBytes(data)).publishers == runs


@settings(max_examples=500)
@given(SOURCES)
def test_batches_in_any_form_are_read_alike_by_all(source: bytes) -> None:
    check(nearly_sound(source))


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_alike_by_all(data: bytes) -> None:
    check(data)


@pytest.mark.parametrize("runs", one_always([1_500, 30_000]))
def test_damaged_batches_are_read_alike_by_all(runs: int) -> None:
    draw, begin = random.Random(26), [data for data in seeds() if data]
    found = Counter(check(mutated(draw, draw.choice(begin))) for _ in range(runs))
    assert min(found[True], found[False]) > runs // 20, "both sides of the border are worth visiting"


@pytest.mark.long
def test_no_difference_over_a_million_batches() -> None:
    draw = random.Random(27)
    found: Counter[bool] = Counter()
    for _ in range(500_000):
        found[check(nearly_sound(draw.randbytes(draw.randrange(400))))] += 1
        check(mutated(draw, nearly_sound(draw.randbytes(draw.randrange(200)))))
    assert min(found.values()) > 100_000


def test_generated_batches_hold_what_is_to_be_compared() -> None:
    """The check of the checks: some are refused, some doubtful, and most are neither."""
    draw, found = random.Random(28), Counter[str]()
    for _ in range(1_000):
        data = nearly_sound(draw.randbytes(draw.randrange(400)))
        try:
            batch = EventBatch.read(EventBytes(data))
        except EventError:
            found["refused"] += 1
            continue
        kinds = {"doubtful": batch.doubtful, "mortal": batch.deadlines, "several": len(batch) > 1}
        found.update(name for name, holds in kinds.items() if holds)
        found["long forms"] += data != msgspec.msgpack.encode(msgspec.msgpack.decode(data, type=list[Event]))
    assert all(found[name] > 50 for name in ("refused", "doubtful", "mortal", "several", "long forms")), found


@needs_compiler
@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_way_that_answers_otherwise_is_caught(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (whole,) = [data for data in seeds() if len(data) == max(map(len, seeds()))]
    check(whole)
    right = OURS[name]

    def wrong(*arguments: Any) -> Any:
        answer = right(*arguments)
        return answer[1:] if isinstance(answer, list) else (*answer[:-1], [])

    monkeypatch.setitem(OURS, name, wrong)
    with pytest.raises(AssertionError):
        check(whole)


@needs_compiler
@pytest.mark.parametrize(
    "value", [b"\xa1\xff", b"\xcb\x7f\xf8" + bytes(6), b"\xcf" + b"\xff" * 8, b"\xc0"], ids=bytes.hex
)
def test_the_kernel_takes_no_value_that_nobody_could_compare(value: bytes) -> None:
    """Also where nobody has scanned the bytes before."""
    for name in (b"\xa1x", b"\xa1s"):
        data = b"\x95\xa1p\x01\x01\xa0\x81" + name + value
        with pytest.raises(EventError, match="not taken"):
            KERNEL.match_encoded(SimpleNamespace(data=data, offsets=(0, len(data))))


# ------------------------------------------------------------------------------------------------------------ the words
WORDS: list[tuple[bytes, str]] = [
    (b"\xc1", "MessagePack data is malformed: invalid opcode '\\xc1' (byte 0)"),
    (b"\x80", "Expected `array`, got `object`"),
    (b"\x91\x94\xa1p\x01\x01\xa0", "Expected `array` of at least length 5, got 4 - at `$[0]`"),
    (b"\x91\x95\xa1p\xa1x\x01\xa0\x80", "Expected `int`, got `str` - at `$[0][1]`"),
    (b"\x91\x95\xa1p\x01\x01\xa0\x81\xa1x\xc0", "Expected `bool | int | float | str`, got `None` - at `$[0][4][...]`"),
    (b"\x91\x95\xa1p\x01\x01\xa0\x80\x00", "MessagePack data is malformed: trailing characters (byte 8)"),
    (b"\x91\x95\xa1p\x01\x01\xa0", "Input data was truncated"),
    (b"\x91\x95\xa1\x80\x01\x01\xa0\x80", "'utf-8' codec can't decode byte 0x80 in position 0: invalid start byte"),
    (b"\xdc\x20\x01" + b"\x95\xa1p\x01\x01\xa0\x80" * 8193, "Expected `array` of length <= 8192"),
]


@pytest.mark.parametrize(("data", "words"), WORDS, ids=[words for _, words in WORDS])
def test_what_is_no_batch_is_refused_in_the_words_of_msgspec(data: bytes, words: str) -> None:
    with pytest.raises(EventError) as caught:
        EventBatch.read(EventBytes(data))
    assert caught.value.problem == f"bytes are no events: {words}"


def edge(**fields: Any) -> Event:
    return Event("p", 1, 1, fields.pop("topic", ""), fields.pop("attributes", {}), **fields)


EDGES: dict[str, tuple[Event, Event]] = {
    "attributes_max": (
        edge(attributes={f"a{n}": n for n in range(limits.ATTRIBUTES_MAX)}),
        edge(attributes={f"a{n}": n for n in range(limits.ATTRIBUTES_MAX + 1)}),
    ),
    "name_bytes_max": (
        edge(attributes={"ä" * (limits.NAME_BYTES_MAX // 2): 1}),
        edge(attributes={"ä" * (limits.NAME_BYTES_MAX // 2) + "x": 1}),
    ),
    "string_bytes_max": (
        edge(attributes={"s": "€" * (limits.STRING_BYTES_MAX // 3)}, topic="t" * limits.STRING_BYTES_MAX),
        edge(attributes={"s": "€" * (limits.STRING_BYTES_MAX // 3) + "ä"}),
    ),
    "string_bytes_max of the topic": (edge(topic="t" * 65_536), edge(topic="t" * 65_535 + "ä")),
    "payload_bytes_max": (
        edge(payload=b"p" * limits.PAYLOAD_BYTES_MAX),
        edge(payload=b"p" * (limits.PAYLOAD_BYTES_MAX + 1)),
    ),
    "event_bytes_max": (
        edge(payload=b"p" * 500_000, attributes={f"a{n}": "x" * 60_000 for n in range(9)}),
        edge(payload=b"p" * 500_000, attributes={f"a{n}": "x" * 60_943 for n in range(9)}),
    ),
}


@pytest.mark.parametrize("limit", EDGES)
def test_every_limit_is_kept_to_the_byte(limit: str) -> None:
    within, beyond = [encode_event(event) for event in EDGES[limit]]
    batch = EventBatch.of([within, beyond])
    assert batch.doubtful == (1,)
    problem = batch.problem(1)
    assert problem is not None
    assert problem.limit == limit.split()[0]
    with pytest.raises(EventError) as caught:
        check_event(EDGES[limit][1], len(beyond))
    assert (problem.args, problem.attribute) == (caught.value.args, caught.value.attribute)
    assert PORTABLE["scan"](batch.encoded, True) == OURS["scan"](batch.encoded, True)


def test_an_event_of_exactly_the_limit_is_sound() -> None:
    room = limits.EVENT_BYTES_MAX - len(
        encode_event(edge(payload=b"p" * 500_000, attributes=dict.fromkeys("abcdefghi", "x" * 60_000)))
    )
    for more, doubtful in ((0, ()), (1, (0,))):
        attributes = dict.fromkeys("abcdefgh", "x" * 60_000) | {"i": "x" * 60_000, "j": "y" * (room + more - 5)}
        data = encode_event(edge(payload=b"p" * 500_000, attributes=attributes))
        assert len(data) == limits.EVENT_BYTES_MAX + more
        assert EventBatch.of([data]).doubtful == doubtful


def test_of_a_name_that_comes_twice_the_last_value_decides_whether_a_rule_is_broken() -> None:
    bad, good = b"\xcb\x7f\xf8" + b"\x00" * 6, b"\x01"
    for count in (2, 3, 70):
        for values, doubtful in (([bad] * (count - 1) + [good], ()), ([good] * (count - 1) + [bad], (0,))):
            data = (
                b"\x91\x95\xa1p\x01\x01\xa0\xde"
                + count.to_bytes(2, "big")
                + b"".join([b"\xa1x" + value for value in values])
            )
            assert EventBatch.read(EventBytes(data)).doubtful == doubtful
            assert check(data)


# ------------------------------------------------------------------------------------------------------ work and memory
@needs_compiler
@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("data", [b"\xdd\xff\xff\xff\xff", b"\xdd\x0f\xff\xff\xff" + bytes(100_000)], ids=len)
def test_a_count_that_cannot_be_true_costs_no_memory(data: bytes, bounded: bool) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="bytes are no events"):
            OURS["scan"](data, bounded)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@needs_compiler
def test_bytes_that_may_change_are_read_and_never_let_go_of_meanwhile() -> None:
    """A view holds them in place; whoever has one may write into them."""
    data = bytearray(max(seeds(), key=len))
    sound = OURS["scan"](bytes(data), True)
    for form in (bytearray(data), memoryview(bytearray(data)), array("B", data), memoryview(data)[:]):
        offsets, *rest = OURS["scan"](form, True)
        assert (offsets, *rest) == sound
        made, _ = OURS["join"]([(form, offsets)])
        assert made == bytes(data)
        if isinstance(form, bytearray):
            form.clear()  # nobody holds it any more
            for name in ("deadlines", "publishers", "topics"):
                with pytest.raises(ValueError, match="beyond its batch"):
                    OURS[name](form, offsets)
            with pytest.raises(ValueError, match="beyond its batch"):
                OURS["take"](form, offsets, [1])
            with pytest.raises(ValueError, match="beyond its batch"):
                OURS["join"]([(form, offsets)])
    for place in range(len(data)):  # scanned as sound, and other bytes since
        kept, data[place] = data[place], 0xDB
        for name in ("deadlines", "publishers", "topics"):
            try:
                OURS[name](data, offsets)
            except ValueError:
                continue
        data[place] = kept


@needs_compiler
@pytest.mark.parametrize("stride", [2, -1])
def test_bytes_that_do_not_lie_in_one_piece_are_refused(stride: int) -> None:
    with pytest.raises(BufferError):
        OURS["scan"](memoryview(b"\x90" * 8)[::stride], True)


class _Noticed:
    """Made in a collection, it says so, and changes what is being read."""

    def __init__(self, change: Any) -> None:
        self.myself, self.change = self, change

    def __del__(self) -> None:
        self.change()


@needs_compiler
def test_a_finaliser_that_asks_for_what_is_being_read_gets_the_same_answer() -> None:
    data = max(seeds(), key=len)
    offsets = OURS["scan"](data, True)[0]
    threshold, asked = gc.get_threshold(), 0
    gc.collect()
    try:
        for begin in range(1, 40):
            event, answers = received(ReceivedEvent, data, offsets, "", (), ())[0], list[Any]()
            gc.set_threshold(begin)
            _Noticed(partial(ask_for_attributes, event, answers))
            answers.append(event.attributes)
            gc.set_threshold(*threshold)
            asked += len(answers) > 1
            assert all(answer is event.attributes for answer in answers)
    finally:
        gc.set_threshold(*threshold)
    assert asked


def ask_for_attributes(event: ReceivedEvent, answers: list[Any]) -> None:
    answers.append(event.attributes)


@needs_compiler
def test_a_finaliser_that_empties_the_rows_meanwhile_does_no_harm() -> None:
    """A collection may start where a tuple is made, and run anything."""
    data = max(seeds(), key=len)
    offsets = OURS["scan"](data, True)[0]
    threshold = gc.get_threshold()
    gc.collect()
    try:
        for begin in range(1, 40):
            rows = list(range(len(offsets) - 1))
            gc.set_threshold(begin)
            _Noticed(rows.clear)
            try:
                made, places = OURS["take"](data, offsets, rows)
            except ValueError as error:
                assert str(error) == "rows changed while they were read"  # noqa: PT017  # either is right in its place
            else:
                assert OURS["scan"](made, True)[0] == places
    finally:
        gc.set_threshold(*threshold)


class _Meddler:
    """An id that, whenever it is hashed, takes itself out of the index, puts another in, and matches in between."""

    active = False

    def __init__(self, index: FilterIndex[Any], batch: EventBatch, number: int) -> None:
        self.index, self.batch, self.number = index, batch, number

    def __hash__(self) -> int:
        if _Meddler.active:
            _Meddler.active = False
            meddle(self.index, self.batch, self, self.number)
            _Meddler.active = True
        return self.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Meddler) and self.number == other.number


def meddle(index: FilterIndex[Any], batch: EventBatch, gone: Any, number: int) -> None:
    index.remove(gone)
    index.match_encoded(batch)
    for more in range(40):
        index.add((number, more), Filter(f"new{number} = {more} OR x = {more}"))
    index.rows_matching(batch)
    index.add(gone, Filter(f"y{number} LIKE 'a%'"))


def many_events() -> EventBatch:
    return EventBatch.of([encode_event(edge(attributes={"x": n % 3, "y": 1.5, "s": "text"})) for n in range(50)])


@needs_compiler
def test_ids_that_change_the_index_when_they_are_compared_find_what_was_there() -> None:
    index: FilterIndex[Any] = FilterIndex(engine="compiled")
    batch = many_events()
    ids = [_Meddler(index, batch, number) for number in range(12)]
    for id in ids:
        index.add(id, Filter("x = 1" if id.number % 2 else ""))
    _Meddler.active = True
    try:
        found = list(index.match_encoded(batch).items())
    finally:
        _Meddler.active = False
    every, some = range(50), list(range(1, 50, 3))
    assert sorted((id.number, rows) for id, rows in found) == [(n, some if n % 2 else every) for n in range(12)]
    assert len(index) == 12 * 41


@pytest.mark.parametrize("when", ["a filter is asked", "an event is decoded"])
@needs_compiler
def test_an_index_that_changes_while_filters_are_asked_answers_as_it_was(
    monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    index: FilterIndex[Any] = FilterIndex(engine="compiled")
    batch = many_events()
    for number in range(12):
        index.add(number, Filter(f"x + y > {number % 4}"))
    expected = index.match_encoded(batch)
    owner, name = (Filter, "matches") if when == "a filter is asked" else (EventBatch, "event")
    right, calls = getattr(owner, name), []

    def meddling(self: Any, *arguments: Any) -> Any:
        calls.append(name)
        if len(calls) in (1, 5, 11):
            number = len(calls) - 1
            monkeypatch.setattr(owner, name, right)
            meddle(index, batch, number, number)
            monkeypatch.setattr(owner, name, meddling)
        return right(self, *arguments)

    monkeypatch.setattr(owner, name, meddling)
    found = index.match_encoded(batch)
    if ENGINE == "compiled" and type(index._engine).__name__ == "Kernel":
        assert found == expected
    monkeypatch.setattr(owner, name, right)
    assert set(index.match_encoded(batch)) <= {
        *range(12),
        *[(number, more) for number in (0, 4, 10) for more in range(40)],
    }


def test_the_many_broken_events_of_a_stranger_are_looked_up_and_not_searched_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad = EventBytes(b"\x95\xa1p\x01\x01\xa0\x81\xa0\x01")  # an empty name
    batch = EventBatch.of([bad, EventBytes(b"\x95\xa1p\x01\x01\xa0\x80")] * 4_000)

    class Counted(tuple[int, ...]):
        looks = 0

        def __contains__(self, row: object) -> bool:
            Counted.looks += 1
            return super().__contains__(row)

    batch.doubtful = Counted(batch.doubtful)
    assert len(batch.doubtful) == 4_000
    assert batch.take(range(0, 8_000, 3)).doubtful == tuple(range(0, 2_667, 2))
    assert Counted.looks == 0
