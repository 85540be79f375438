"""What the sink's options may be, and what becomes of columns: all that is wrong is said before a row is written."""

import pytest
from pyspark.sql.types import StructType, _parse_datatype_string

from holdfast.spark.errors import OptionError
from holdfast.spark.sink_options import Kind, SinkColumns, refuse_overwrite, sink_columns, sink_options

URL = {"url": "holdfast://127.0.0.1:7411"}
SOURCE = (
    "position BIGINT, id STRING, publisher STRING, sequence BIGINT, topic STRING, published_at TIMESTAMP, "
    "payload BINARY, attributes MAP<STRING, STRUCT<i: BIGINT, f: DOUBLE, s: STRING, b: BOOLEAN>>"
)


@pytest.fixture(autouse=True)
def _session(spark: object) -> None:
    """Spark's parser of schemas needs one."""


def columns(schema: str, **given: str) -> SinkColumns:
    parsed = _parse_datatype_string(schema)
    assert isinstance(parsed, StructType)
    return sink_columns(parsed, sink_options({**URL, **given}, stream=True))


def test_options_become_values() -> None:
    given = {**URL, "topic": "t", "payload_column": "p", "WAIT_S": "1.5", "query": "q", "epoch": "7", "queryName": "n"}
    options = sink_options(given, stream=False)
    assert (options.topic, options.payload_column, options.wait_s) == ("t", "p", 1.5)
    assert (options.query, options.epoch) == ("q", 7)
    assert sink_options({**URL, "checkpointLocation": "c"}, stream=True).wait_s == 120


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"topics": "t"}, "no option 'topics'; there are url, topic, "),
        ({"filter": "a > 1"}, "no option 'filter'"),
        ({"topic": "t", "topic_column": "c"}, "both given"),
        ({"topic": "t" * 65_537}, "more than 65536 bytes"),
        ({"query": ""}, "1 to 128 bytes"),
        ({"query": "q" * 129}, "1 to 128 bytes"),
        ({"epoch": "1"}, "give 'query' too"),
        ({"query": "q", "epoch": "-1"}, "a whole number from 0 on, not '-1'"),
        ({"wait_s": "soon"}, "wait_s"),
        ({"url": "http://x"}, "url"),
    ],
)
def test_a_wrong_option_is_refused_by_name(given: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        sink_options({**URL, **given}, stream=False)


def test_a_stream_has_its_query_from_its_checkpoint() -> None:
    with pytest.raises(OptionError, match=r"'query' is for df.write"):
        sink_options({**URL, "query": "q"}, stream=True)


def test_nothing_is_overwritten() -> None:
    refuse_overwrite(False)
    with pytest.raises(OptionError, match="append"):
        refuse_overwrite(True)


def test_columns_become_attributes_by_their_names() -> None:
    found = columns("a BIGINT, b INT, c SMALLINT, d TINYINT, e DOUBLE, f FLOAT, g STRING, h BOOLEAN")
    integers, floats = dict.fromkeys("abcd", Kind.INTEGER), dict.fromkeys("ef", Kind.FLOAT)
    assert found == SinkColumns({**integers, **floats, "g": Kind.STRING, "h": Kind.BOOLEAN})


def test_topic_and_payload_are_found_by_option_or_by_the_names_that_the_source_gives_them() -> None:
    assert columns("topic STRING, payload BINARY, n INT") == SinkColumns({"n": Kind.INTEGER}, "topic", "payload")
    assert columns("t STRING, p STRING, n INT", topic_column="t", payload_column="p") == SinkColumns(
        {"n": Kind.INTEGER}, "t", "p"
    )
    # A text may be an attribute of that name as well as of any other.
    assert columns("payload STRING") == SinkColumns({"payload": Kind.STRING})


def test_a_frame_of_the_source_is_written_back_without_what_brokers_give() -> None:
    with pytest.raises(OptionError, match=r"'position' .* the broker gives .*\.drop\('position'\)"):
        columns(SOURCE)
    given_by_brokers = ("position", "id", "publisher", "sequence", "published_at")
    kept = [field for field in SOURCE.replace(": ", ":").split(", ") if not field.startswith(given_by_brokers)]
    assert columns(", ".join(kept)) == SinkColumns({}, "topic", "payload", spread=True)


@pytest.mark.parametrize("name", ["position", "id", "publisher", "sequence", "published_at", "_rejected"])
def test_what_the_source_adds_is_refused_whatever_its_type(name: str) -> None:
    with pytest.raises(OptionError, match=rf"column '{name}' .*\.drop\('{name}'\)"):
        columns(f"{name} BIGINT")


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("at TIMESTAMP", "column 'at' is of type timestamp; .*: cast it, to bigint"),
        ("at TIMESTAMP_NTZ", "cast it to a string"),
        ("d DATE", "cast it to a string"),
        ("d DECIMAL(10, 2)", "cast it to double"),
        ("p BINARY", "name it as payload_column"),
        ("s STRUCT<a: INT>", "select its fields"),
        ("l ARRAY<INT>", "explode it"),
        ("m MAP<STRING, INT>", "to_json"),
        ("i INTERVAL DAY TO SECOND", "cast or drop it"),
        ("attributes MAP<STRING, STRING>", "not of the type that the source gives it"),
        (f"{'n' * 129} INT", "name of more than 128 bytes"),
        ("a INT, a INT", "'a' is there more than once"),
    ],
)
def test_a_column_that_can_not_be_an_attribute_is_refused_with_a_remedy(schema: str, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        columns(schema)


@pytest.mark.parametrize(
    ("schema", "given", "problem"),
    [
        ("a INT", {"topic_column": "t"}, "there is no column 't'; there are a"),
        ("t INT", {"topic_column": "t"}, "of type int, not string; cast it"),
        ("p INT", {"payload_column": "p"}, "of type int, not binary or string; cast it"),
        ("topic STRING", {"topic": "t"}, "leave out one of the two"),
        ("topic STRING, t STRING", {"topic_column": "t"}, "'topic' can't be an attribute"),
    ],
)
def test_options_fit_the_columns(schema: str, given: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        columns(schema, **given)
