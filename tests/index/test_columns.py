"""`match_columns` says of every row of an Arrow record batch what `match` says of the event."""

from __future__ import annotations

import random
from typing import Any

import pytest

from holdfast import EventError, Filter, FilterIndex
from holdfast.matching.index import ENGINES
from tests.filters.strategies import Choices, filter_text

pa = pytest.importorskip("pyarrow", reason="Arrow batches are made by pyarrow")

NUMBER_TYPES = (
    [f"int{bits}" for bits in (8, 16, 32, 64)] + [f"uint{bits}" for bits in (8, 16, 32, 64)] + ["float32", "float64"]
)
TEXT_TYPES = ["string", "large_string", "string_view"]


def add_all(index: FilterIndex[Any], texts: list[str]) -> dict[str, Filter]:
    filters = {text: Filter(text) for text in texts}
    for text, filter in filters.items():
        index.add(text, filter)
    return filters


def expected_pairs(filters: dict[str, Filter], batch: Any) -> list[tuple[int, str]]:
    pairs = []
    for row, event in enumerate(batch.to_pylist()):
        attributes = {name: value for name, value in event.items() if value is not None}
        topic = attributes.pop("topic", "")
        pairs += [(row, text) for text, filter in filters.items() if filter.matches(attributes, topic)]
    return pairs


def found_pairs(index: FilterIndex[Any], batch: Any) -> list[tuple[int, Any]]:
    rows, ids = index.match_columns(batch)
    return list(zip(rows, ids, strict=True))


@pytest.mark.parametrize("type_name", NUMBER_TYPES)
def test_every_type_of_number_is_read(index: FilterIndex[Any], type_name: str) -> None:
    filters = add_all(index, ["x = 2", "x > 1", "x BETWEEN 0 AND 3", "x IN (1, 100)", "x IS NULL", "x + 0 = 2"])
    batch = pa.record_batch({"x": pa.array([1, 2, None, 3, 100, 0], type=type_name)})
    for piece in (batch, batch.slice(1), batch.slice(2, 3), batch.slice(6)):
        assert found_pairs(index, piece) == expected_pairs(filters, piece)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_the_largest_integers_of_every_type_are_read(index: FilterIndex[Any], bits: int) -> None:
    values = {f"int{bits}": [-(2 ** (bits - 1)), -1, 2 ** (bits - 1) - 1], f"uint{bits}": [0, 2 ** min(bits, 63) - 1]}
    filters = add_all(index, [f"x = {value}" for texts in values.values() for value in texts] + ["x < 0", "x > 100"])
    for type_name, column in values.items():
        batch = pa.record_batch({"x": pa.array(column, type=type_name)})
        assert found_pairs(index, batch) == expected_pairs(filters, batch)


@pytest.mark.parametrize("type_name", TEXT_TYPES)
@pytest.mark.parametrize("as_dictionary", [False, True])
def test_every_type_of_string_is_read(index: FilterIndex[Any], type_name: str, as_dictionary: bool) -> None:
    texts = [
        "s = 'a'",
        "s = 'a23456789012'",
        "s = 'a234567890123'",
        "s LIKE 'a%'",
        "s LIKE '%long%'",
        "s LIKE '_'",
        "s > 'a'",
        "s IN ('', 'ä')",
        "s IS NULL",
    ]
    filters = add_all(index, texts)
    values = ["a", None, "", "ä", "abc", "a long string, longer than a view holds inline", "a", "\U0001f600"]
    values += ["a23456789012", "a234567890123"]  # a view holds twelve bytes inline
    column = pa.array(values, type=type_name)
    if as_dictionary:
        column = pa.array(values, type="string").dictionary_encode()
    batch = pa.record_batch({"s": column, "topic": pa.array(["t", "", None, "t", "t", "", None, "t", "", "t"])})
    index.add("topic = 't'", filters.setdefault("topic = 't'", Filter("topic = 't'")))
    for piece in (batch, batch.slice(1), batch.slice(3, 4)):
        assert found_pairs(index, piece) == expected_pairs(filters, piece)


def test_a_dictionary_may_hold_a_null_and_repeat_an_entry(index: FilterIndex[Any]) -> None:
    filters = add_all(index, ["s = 'a'", "s IS NULL"])
    entries = pa.array(["a", None, "a", "b"])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None], type="int8"), entries)
    batch = pa.record_batch({"s": column})
    assert found_pairs(index, batch) == [(0, "s = 'a'"), (1, "s IS NULL"), (2, "s = 'a'"), (4, "s IS NULL")]
    assert filters


def test_booleans_are_booleans(index: FilterIndex[Any]) -> None:
    filters = add_all(index, ["b", "NOT b", "b = FALSE", "b IS NULL", "b = 1"])
    batch = pa.record_batch({"b": pa.array([True, False, None] * 9)})
    for piece in (batch, batch.slice(5, 13)):
        assert found_pairs(index, piece) == expected_pairs(filters, piece)


def test_random_batches_agree_with_the_oracle(index: FilterIndex[Any]) -> None:
    draw = random.Random(11)
    filters = add_all(index, [filter_text(Choices(draw.randbytes(60))) for _ in range(150)])
    names = ("a", "b", "c", "größe", "topic")
    kinds: dict[str, list[Any]] = {
        "int64": [1, 2, 2**53, 2**53 + 1, -(2**63), None],
        "float64": [0.5, 2.0, 2.0**53, -0.0, 1e308, None],
        "string": ["a", "", "ab", "a%", "it's", None],
        "bool": [True, False, None],
    }
    for _ in range(20):
        columns = {}
        for name in names:
            kind = "string" if name == "topic" else draw.choice(list(kinds))
            columns[name] = pa.array([draw.choice(kinds[kind]) for _ in range(40)], type=kind)
        batch = pa.record_batch(columns)
        assert found_pairs(index, batch) == expected_pairs(filters, batch)


def test_rows_and_ids_are_columns_of_equal_length(index: FilterIndex[Any]) -> None:
    index.add("a", Filter("x > 1"))
    rows, ids = index.match_columns(pa.record_batch({"x": [1, 2, 3]}))
    assert (rows.typecode, list(rows), ids) == ("q", [1, 2], ["a", "a"])
    rows, ids = index.match_columns(pa.record_batch({"x": pa.array([], type="int64")}))
    assert (list(rows), ids) == ([], [])


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (pa.array([1.0, float("nan")]), "finite"),
        (pa.array([1.0, float("-inf")], type="float32"), "finite"),
        (pa.array([1, 2**63], type="uint64"), "64 bits"),
    ],
)
def test_a_value_that_can_not_be_compared_is_refused_with_its_row(
    index: FilterIndex[Any], column: Any, problem: str
) -> None:
    index.add(1, Filter("x > 0"))
    with pytest.raises(EventError, match=problem) as caught:
        index.match_columns(pa.record_batch({"x": column}))
    assert (caught.value.row, caught.value.attribute) == (1, "x")
    assert index.match({"x": 1}) == [1]
    assert index.match({}) == []


def test_a_column_of_another_type_is_refused_only_if_a_filter_reads_it(index: FilterIndex[Any]) -> None:
    batch = pa.record_batch({"x": [1], "when": pa.array([0], type=pa.timestamp("us")), "list": [[1]]})
    index.add(1, Filter("x = 1"))
    assert found_pairs(index, batch) == [(0, 1)]
    index.add(2, Filter("when > 5"))
    with pytest.raises(TypeError, match="'when'"):
        index.match_columns(batch)


def test_two_columns_of_one_name_are_refused(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("x = 1"))
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(ValueError, match="two columns"):
        index.match_columns(batch)


def test_what_is_no_record_batch_is_refused(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("x = 1"))
    for nothing in (5, {"x": [1]}, None):
        with pytest.raises(TypeError, match="Arrow record batch"):
            index.match_columns(nothing)
    with pytest.raises((TypeError, ValueError)):
        index.match_columns(pa.array([1, 2]))
    with pytest.raises(TypeError, match="not Table; pass its batches one by one"):
        index.match_columns(pa.table({"x": [1]}))


@pytest.mark.parametrize(
    ("name", "column", "wanted"),
    [
        ("x", pa.array([1, 2, 1]).dictionary_encode(), "of dictionaries, those of strings"),
        ("x", pa.array([1.0, 2.0, 1.0]).cast("float16"), "filters read integers, floats"),
        ("topic", pa.array([1, 2]), "a topic is a string"),
        ("topic", pa.array([1, 2]).dictionary_encode(), "of dictionaries, those of strings"),
    ],
)
def test_both_engines_refuse_the_same_types(index: FilterIndex[Any], name: str, column: Any, wanted: str) -> None:
    index.add(1, Filter("x = 1 AND topic = 't'"))
    with pytest.raises(TypeError, match=f"column '{name}' .*; {wanted}"):
        index.match_columns(pa.record_batch({name: column}))


def test_a_batch_with_a_row_that_is_null_is_refused(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("x = 1"))
    columns = [pa.array([1, 1, 1])]
    assert found_pairs(index, pa.StructArray.from_arrays(columns, names=["x"])) == [(0, 1), (1, 1), (2, 1)]
    with pytest.raises(ValueError, match="null"):
        index.match_columns(pa.StructArray.from_arrays(columns, names=["x"], mask=pa.array([False, True, False])))


def test_data_that_another_reader_took_is_refused(index: FilterIndex[Any]) -> None:
    index.add(1, Filter("x = 1"))
    capsules = pa.record_batch({"x": [1]}).__arrow_c_array__()
    pa.RecordBatch._import_from_c_capsule(*capsules)

    class Taken:
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return capsules

    with pytest.raises(ValueError, match=r"taken|released"):
        index.match_columns(Taken())


def test_strings_that_are_all_empty_are_read(index: FilterIndex[Any]) -> None:
    filters = add_all(index, ["s = ''", "s LIKE '%'", "s LIKE '%a%'", "s < 'a'", "s IN ('', 'a')", "s <> ''"])
    column = pa.StringArray.from_buffers(2, pa.py_buffer(bytes(12)), pa.py_buffer(b""))
    batch = pa.record_batch({"s": column})
    assert found_pairs(index, batch) == expected_pairs(filters, batch)


@pytest.mark.skipif("compiled" not in ENGINES, reason="pyarrow does not import such data for the portable engine")
def test_the_compiled_engine_reads_a_slice_of_a_struct_and_refuses_entries_outside_a_dictionary() -> None:
    index: FilterIndex[Any] = FilterIndex(engine="compiled")
    index.add(1, Filter("x = 2"))
    index.add(2, Filter("s = 'a'"))
    whole = pa.StructArray.from_arrays([pa.array([1, 2, 3, 2]), pa.array(["a", None, "b", "a"])], names=["x", "s"])
    assert found_pairs(index, whole.slice(1)) == [(0, 1), (2, 1), (2, 2)]
    outside = pa.DictionaryArray.from_arrays(pa.array([0, 1], type="int8"), pa.array(["a"]), safe=False)
    with pytest.raises(EventError, match="outside its dictionary"):
        index.match_columns(pa.record_batch({"s": outside}))
