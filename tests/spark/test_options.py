"""Options of the source: what is wrong is said before anything runs."""

from datetime import UTC, datetime

import pytest

from holdfast.spark.errors import OptionError
from holdfast.spark.options import SourceOptions, source_options
from holdfast.spark.ranges import PositionRange, partitions_of

URL = "holdfast://127.0.0.1:7411"


def test_options_are_read_whatever_their_case() -> None:
    given = {
        "URL": URL,
        "Filter": "price > 1",
        "max_Events_per_batch": "10",
        "name": "n",
        "from": "7",
        "partitions": "3",
    }
    wanted = SourceOptions(URL, "price > 1", 7, None, 10, "n", 3, 120.0)
    assert source_options(given, stream=True) == wanted
    assert source_options({"url": URL, "to": "9", "wait_s": "0.5"}, stream=False).to == 9
    at = source_options({"url": URL, "from": "2026-11-15T20:15:00+00:00"}, stream=False).start
    assert at == datetime(2026, 11, 15, 20, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "option 'url' is missing"),
        ({"url": "127.0.0.1"}, "does not begin with holdfast://"),
        ({"url": URL, "filter": "price >"}, "option 'filter': "),
        ({"url": URL, "fliter": "price > 1"}, "there is no option 'fliter'; there are url, filter"),
        ({"url": URL, "from": "yesterday"}, "'earliest', 'new', the number of a position, or a time"),
        ({"url": URL, "from": "2026-11-15T20:15:00"}, "a time with its zone"),
        ({"url": URL, "from": "0"}, "the number of a position"),
        ({"url": URL, "max_events_per_batch": "0"}, "a whole number from 1 on, not '0'"),
        ({"url": URL, "partitions": "ten"}, "a whole number from 1 on"),
        ({"url": URL, "partitions": "10001"}, "at most 10000"),
        ({"url": URL, "wait_s": "-1"}, "seconds, 0 or more"),
        ({"url": URL, "wait_s": "nan"}, "seconds, 0 or more"),
        ({"url": URL, "name": "x" * 129}, "1 to 128 bytes"),
        ({"url": URL, "to": "9"}, "option 'to' is for batches"),
    ],
)
def test_an_option_that_can_not_be_used_is_refused_with_what_it_may_be(given: dict[str, str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        source_options(given, stream=True)


def test_a_batch_has_no_name() -> None:
    with pytest.raises(OptionError, match="option 'name' is for streams"):
        source_options({"url": URL, "name": "n"}, stream=False)


@pytest.mark.parametrize(("start", "end", "count"), [(1, 100_000, 4), (7, 7, 4), (1, 10_001, 2), (5, 123_456, 7)])
def test_partitions_cover_a_range_without_gap_or_overlap(start: int, end: int, count: int) -> None:
    parts = partitions_of("log", start, end, count)
    assert [position for part in parts for position in range(part.start, part.end + 1)] == list(range(start, end + 1))
    assert len(parts) <= count
    assert partitions_of("log", 8, 7, count) == []
    assert parts[0] == PositionRange("log", start, parts[0].end)
