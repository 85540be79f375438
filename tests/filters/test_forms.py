"""The forms of a filter: pickled, copied, as msgpack, as text; and that nothing changes one."""

import copy
import pickle

import msgspec
import pytest
from hypothesis import given, settings

import holdfast
from holdfast import Filter, FilterError, FilterLimits
from tests.filters import strategies

TEXT = "topic = 'stock' AND price BETWEEN 10 AND 20 AND NOT symbol LIKE 'X%'"


def test_the_filter_of_the_specification_reads_as_it_says() -> None:
    filter = Filter(TEXT)
    assert filter.matches({"symbol": "IBM", "price": 12.5}, topic="stock")
    assert not filter.matches({"symbol": "XOM", "price": 12.5}, topic="stock")
    assert not filter.matches({"symbol": "IBM", "price": 20.5}, topic="stock")
    assert not filter.matches({"symbol": "IBM", "price": 12.5}, topic="bond")
    assert not filter.matches({"symbol": "IBM", "price": 12.5})
    assert not filter.matches({"price": 12.5}, topic="stock")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_filter_is_the_same_filter(protocol: int) -> None:
    filter = Filter("x = 1 AND (y > 2 OR z LIKE 'a_')", limits=FilterLimits(depth=9))
    hash(filter)  # with the canonical form made, and without it above
    loaded = pickle.loads(pickle.dumps(filter, protocol))
    assert loaded == filter
    assert str(loaded) == str(filter)
    assert hash(loaded) == hash(filter)


def test_a_pickled_filter_keeps_its_limits() -> None:
    text = " OR ".join(["x = 1"] * 300)
    filter = Filter(text, limits=FilterLimits(predicates=300))
    assert pickle.loads(pickle.dumps(filter)) == filter
    assert pickle.loads(pickle.dumps(filter.canonical)) == filter


def test_a_tampered_pickle_is_held_to_its_limits() -> None:
    with pytest.raises(FilterError):
        pickle.loads(pickle.dumps(Filter("abc")).replace(b"abc", b"a ("))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copied_filter_is_an_equal_filter(copied: object) -> None:
    filter = Filter(TEXT)
    assert callable(copied)
    assert copied(filter) == filter
    assert str(copied(filter)) == TEXT


@given(strategies.filter_texts)
@settings(max_examples=200)
def test_every_form_gives_back_an_equal_filter(text: str) -> None:
    filter = Filter(text)
    for again in (Filter(str(filter)), Filter.from_msgpack(filter.to_msgpack()), pickle.loads(pickle.dumps(filter))):
        assert again == filter
        assert again.root == filter.root
        assert str(again) == text


def test_the_msgpack_form_is_the_text() -> None:
    assert msgspec.msgpack.decode(Filter(TEXT).to_msgpack()) == TEXT


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc0",
        b"\x05",
        b"\xc3",
        b"\x91\xa1a",
        b"\x80",
        b"\xa5abc",
        b"\xdb\xff\xff\xff\xff",
        b"\xa2\xff\xfe",
        b"\xa3\xed\xa0\x80",
        b"\xa1(",
        b"\xa1aa",
        b"\xc4\x01a",
        b"\xc1",
        b"\xa1\x00",
        b"\x91" * 100_000,
    ],
)
def test_bytes_that_are_no_filter_are_refused(data: bytes) -> None:
    with pytest.raises(FilterError) as caught:
        Filter.from_msgpack(data)
    assert len(str(caught.value)) < 500


def test_msgpack_is_held_to_the_limits() -> None:
    with pytest.raises(FilterError, match="text_bytes = 4096"):
        Filter.from_msgpack(msgspec.msgpack.encode("x = 1" + " " * 5000))
    with pytest.raises(FilterError, match="predicates = 1"):
        Filter.from_msgpack(Filter("x = 1 AND y = 1").to_msgpack(), limits=FilterLimits(predicates=1))


def test_a_filter_does_not_change() -> None:
    filter = Filter("x = 1")
    for name in ("_text", "_root", "_limits", "_canonical", "other", "canonical", "attributes"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(filter, name, None)
        with pytest.raises(AttributeError, match="immutable"):
            delattr(filter, name)
    with pytest.raises(AttributeError):
        filter.root.left = None  # type: ignore[attr-defined]
    assert not hasattr(filter, "__dict__")


def test_what_is_asked_does_not_change_the_answer() -> None:
    filter = Filter("x > 1 AND x < 5 OR y = 'a'")
    event = {"x": 3}
    before = filter.matches(event)
    assert (filter.canonical, hash(filter), filter.covers(filter)) == (filter, hash(filter.canonical), True)
    assert filter.matches(event) is before
    assert event == {"x": 3}
    assert str(filter) == "x > 1 AND x < 5 OR y = 'a'"


def test_matching_with_a_topic_leaves_the_attributes_alone() -> None:
    attributes = {"x": 1}
    assert Filter("topic = 'a'").matches(attributes, topic="a")
    assert attributes == {"x": 1}


@pytest.mark.parametrize("text", ["", TEXT, "x = 'it''s'", 'x = "a b"', "x = 'ä\n'"])
def test_str_is_the_text_and_repr_makes_the_filter_again(text: str) -> None:
    assert str(Filter(text)) == text
    assert eval(repr(Filter(text)), {"Filter": Filter}) == Filter(text)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("TRUE", ()),
        ("b = 1 AND a = 2 AND b = 3", ("b", "a")),
        ("NOT (x IS NULL OR y LIKE 'a%')", ("x", "y")),
        ("a + b * -c > d", ("a", "b", "c", "d")),
        ("a BETWEEN b AND c", ("a", "b", "c")),
        ("1 < z", ("z",)),
        ('"a b" IN (1) OR "topic" = \'t\'', ("a b", "topic")),
        ("x", ("x",)),
        ("x = 1 AND x <> 1", ("x",)),
    ],
)
def test_attributes_are_the_names_read_in_the_order_of_first_use(text: str, names: tuple[str, ...]) -> None:
    assert Filter(text).attributes == names


def test_a_filter_of_a_subclass_of_str_holds_plain_text() -> None:
    class Text(str):
        __slots__ = ()

    filter = Filter(Text("x > 5"))
    assert type(str(filter)) is str
    assert Filter.from_msgpack(filter.to_msgpack()) == filter


def test_whoever_subscribes_or_reads_with_a_name_for_a_text_is_warned(caplog: pytest.LogCaptureFixture) -> None:
    bus = holdfast.connect("holdfast://127.0.0.1:1")
    bus.subscribe('country = "UK"')
    bus.read('country = "UK"')
    warning = "filter 'country = \"UK\"', column 11: \"UK\" is the name of an attribute; if it is a text, write 'UK'"
    assert [record.getMessage() for record in caplog.records] == [warning, warning]
