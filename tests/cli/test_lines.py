"""Events as JSON lines: what is written can be read, and what can't be read is named."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.lines import LIFETIME_MS_MAX, EventLine, as_builtins, read_event, read_line, write_event, write_line
from holdfast.client.publications import new_event
from holdfast.errors import EventError
from holdfast.kernel.time import MILLISECOND
from holdfast.model.event import ATTRIBUTES_MAX, PAYLOAD_BYTES_MAX, Event
from holdfast.model.position import Position
from holdfast.model.received import ReceivedEvent

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS | st.booleans()
RECEIVED = st.builds(
    ReceivedEvent,
    publisher=st.just("p"),
    incarnation=st.integers(0, 2**63 - 1),
    sequence=st.integers(1, 2**63 - 1),
    topic=TEXTS,
    attributes=st.dictionaries(TEXTS.filter(lambda name: name not in ("", "topic")), VALUES, max_size=5),
    payload=st.binary(max_size=50),
    published_at=st.integers(0, 2**63 - 1),
    lifetime=st.integers(0, LIFETIME_MS_MAX).map(lambda ms: ms * MILLISECOND),
    position=st.none() | st.builds(Position, st.just("log"), st.integers(1, 2**63 - 1)),
    attempt=st.integers(1, 5),
)


@given(RECEIVED)
def test_what_read_and_subscribe_print_is_published_with_all_that_its_publisher_said(event: ReceivedEvent) -> None:
    line = read_line(write_line(event), 1)
    again = new_event(line.attributes, **as_builtins(line))
    assert (again.topic, again.attributes) == (event.topic, event.attributes)
    assert (again.payload, again.lifetime) == (event.payload, event.lifetime)
    assert (line.id, line.published_at, line.attempt) == (event.id, event.published_at, event.attempt)
    assert line.position == (0 if event.position is None else event.position.number)


@given(RECEIVED)
def test_what_a_log_is_exported_as_is_the_same_without_what_the_broker_said(event: ReceivedEvent) -> None:
    assert {**json.loads(write_line(event)), **json.loads(write_event(event))} == json.loads(write_line(event))
    said = {"topic", "attributes", "payload", "lifetime_ms"}
    assert {key: value for key, value in json.loads(write_line(event)).items() if key in said} == json.loads(
        write_event(event)
    )


def test_a_lifetime_that_is_no_whole_milliseconds_is_not_cut_short() -> None:
    event = Event("p", 1, 1, "", {"a": 1}, lifetime=MILLISECOND + 1)
    assert json.loads(write_event(event)) == {"attributes": {"a": 1}, "lifetime_ms": 2}


def attributes(text: str) -> bytes:
    return b'{"attributes": ' + text.encode() + b"}"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"topic": "\xff"}', "not in UTF-8: the byte 0xff at 12 (invalid start byte)"),
        (b"\xff\xfe{\x00", "not in UTF-8: the byte 0xff at 1 (invalid start byte)"),
        (b"hello", "no JSON: Expecting value (column 1); expected: an event is one object on one line, such as"),
        (b"{", "no JSON: Expecting property name enclosed in double quotes (column 2); expected: an event is one"),
        (b"{'attributes': {}}", "no JSON: Expecting property name enclosed in double quotes (column 2)"),
        (b"[1, 2]", "an array, and no event, which is an object such as"),
        (b"null", "null, and no event, which is an object such as"),
        (b"[" * 100_000, "an array, and no event, which is an object|nested far too deep for an event"),
        (b'{"price": 5}', "there is no field 'price' of events; attributes stand in {\"attributes\": {…}}"),
        (b'{"attributes": {}, "ttl": 5}', "there is no field 'ttl' of events"),
        (attributes('{"a": 1, "b": NaN}'), "attribute 'b' is nan; only finite numbers"),
        (attributes('{"a": 1, "b": -Infinity}'), "attribute 'b' is -inf; only finite numbers"),
        (attributes('{"a": 1, "b": 1e999}'), "attribute 'b' is inf; only finite numbers"),
        (attributes(f'{{"a": 1, "b": {2**70}}}'), "attribute 'b' is an integer outside the range of 64 bits"),
        (attributes(f'{{"a": 1, "b": {2**63}}}'), "attribute 'b' is an integer outside the range of 64 bits"),
        (attributes('{"b": ' + "1" * 5000 + "}"), "attribute 'b' is an integer|a number has far too many digits"),
        (attributes('{"a": 1, "b": {"c": 1}}'), "attribute 'b' is an object, not a number, a string or a boolean"),
        (attributes('{"a": 1, "b": [1]}'), "attribute 'b' is an array, not a number, a string or a boolean"),
        (attributes('{"a": 1, "b": null}'), "attribute 'b' is null; leave an attribute out instead"),
        (attributes('{"a": 1, "b": "\\ud800"}'), "attribute 'b' holds a lone surrogate"),
        (attributes('{"\\ud800": 1}'), "attribute name '\\ud800' holds a lone surrogate"),
        (attributes('{"topic": "stock"}'), "'topic' is not an attribute that an event sets itself"),
        (attributes('{"": 1}'), "an attribute's name is empty, and no filter could read it"),
        (attributes("[]"), "attributes are an array, and have to be an object"),
        (attributes('{"a": ' * 5000 + "1" + "}" * 5000), "attribute 'a' is an object|nested far too deep"),
        (attributes(json.dumps(dict.fromkeys(map(str, range(65)), 1))), f"beyond attributes_max, {ATTRIBUTES_MAX}"),
        (attributes(json.dumps({"n" * 129: 1})), "beyond name_bytes_max, 128"),
        (b'{"payload": "%%%"}', "base64 encoded string - at `$.payload`"),
        (b'{"payload": "' + b"AAAA" * (PAYLOAD_BYTES_MAX // 3 + 1) + b'"}', "beyond payload_bytes_max"),
        (b'{"lifetime_ms": -1}', "Expected `int` >= 0 - at `$.lifetime_ms`"),
        (b'{"lifetime_ms": 1.5}', "Expected `int`, got `float` - at `$.lifetime_ms`"),
        (b'{"topic": 5}', "Expected `str`, got `int` - at `$.topic`"),
    ],
)
def test_a_line_that_is_no_event_is_told_what_is_wrong_in_it(line: bytes, problem: str) -> None:
    with pytest.raises(EventError) as caught:
        read_line(line, 7)
    said = str(caught.value)
    assert said.startswith("line 7: ")
    assert any(each in said for each in problem.split("|"))
    assert len(said) < 400


@given(st.binary(max_size=60) | st.text(max_size=60) | st.from_regex(r'\{"attributes": \{"a": .*\}\}', fullmatch=True))
def test_whatever_comes_is_an_event_or_an_event_error(line: bytes | str) -> None:
    try:
        found: EventLine | str = read_line(line, 1)
    except EventError as error:
        found = str(error)
    assert isinstance(found, EventLine) or found.startswith("line 1: ")


def test_a_byte_order_mark_before_the_first_line_is_no_mistake() -> None:
    line = '\ufeff{"attributes": {"a": 1}}'.encode()
    assert read_line(line, 1) == EventLine(attributes={"a": 1})
    with pytest.raises(EventError, match="line 2: no JSON"):
        read_line(line, 2)


@pytest.mark.parametrize(
    ("topic", "text", "problem"),
    [
        ("", "{price: 5}", "--attributes: no JSON: Expecting property name enclosed in double quotes (column 2)"),
        ("", "5", "--attributes: attributes are a number, and have to be an object"),
        ("", '{"a": [1]}', "--attributes: attribute 'a' is an array"),
        ("", f'{{"a": {2**70}}}', "--attributes: attribute 'a' is an integer outside the range of 64 bits"),
        ("", '{"topic": "a"}', "--attributes: 'topic' is not an attribute"),
        ("\udcff", "{}", "--topic: topic holds a lone surrogate"),
    ],
)
def test_options_that_are_no_event_are_named(topic: str, text: str, problem: str) -> None:
    with pytest.raises(EventError) as caught:
        read_event(topic, text)
    assert str(caught.value).startswith(problem)
