"""A table of round trips is read as it is written, repaired where nothing was measured, and refused with its line."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest

from holdfast.errors import HoldfastError, ScenarioError
from holdfast.sim.round_trips import read_round_trips

TABLE = "0\t10\t20\n30\t0\t40\n50\t60.5\t0\n"
ONE_WAY_US = [0, 5_000, 10_000, 15_000, 0, 20_000, 25_000, 30_250, 0]


def one_way_us(folder: Path, text: str) -> list[float]:
    """What is read from such a table, row after row, in microseconds."""
    path = folder / "table.tsv"
    path.write_text(text)
    return [delay_ns / 1000 for delay_ns in read_round_trips(path).one_way_ns]


def refusal(path: Path) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        read_round_trips(path)
    return caught.value


def test_a_way_is_half_of_its_round_trip(tmp_path: Path) -> None:
    assert one_way_us(tmp_path, TABLE) == ONE_WAY_US
    trips = read_round_trips(tmp_path / "table.tsv")
    assert trips.hosts == 3
    assert trips.delay_ns(1, 2) == 20_000_000
    assert trips.delay_ns(2, 1) == 30_250_000


@pytest.mark.parametrize("text", [TABLE.rstrip("\n"), TABLE + "\n\n", TABLE.replace("\n", "\r\n") + "\r\n"])
def test_line_ends_do_not_matter(tmp_path: Path, text: str) -> None:
    assert one_way_us(tmp_path, text) == ONE_WAY_US


@pytest.mark.parametrize(("suffix", "pack"), [("xz", lzma.compress), ("gz", gzip.compress)])
def test_a_packed_table_is_unpacked(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"table.tsv.{suffix}"
    path.write_bytes(pack(TABLE.encode()))
    assert [delay_ns / 1000 for delay_ns in read_round_trips(path).one_way_ns] == ONE_WAY_US


HOLES = ["", "-", "NA", "nan", "inf", "-inf", "0", "0.0", "-1", " "]


@pytest.mark.parametrize("hole", HOLES)
def test_what_was_not_measured_takes_the_opposite_direction(tmp_path: Path, hole: str) -> None:
    filled = [0, 15_000, *ONE_WAY_US[2:]]
    assert one_way_us(tmp_path, TABLE.replace("10", hole)) == filled


@pytest.mark.parametrize("hole", HOLES)
def test_what_was_measured_in_no_direction_takes_the_median(tmp_path: Path, hole: str) -> None:
    # 20, 40, 50 and 60.5 ms are left; of the two in the middle the larger, which is a measurement.
    filled = [0, 25_000, 10_000, 25_000, *ONE_WAY_US[4:]]
    assert one_way_us(tmp_path, TABLE.replace("10", hole).replace("30", hole)) == filled


def test_the_diagonal_is_not_read_as_a_delay(tmp_path: Path) -> None:
    # Neither kept nor counted for the median.
    assert one_way_us(tmp_path, "900\t8\n\t900\n") == [0, 4000, 4000, 0]
    assert one_way_us(tmp_path, "900\t8\t\n8\t900\t\n\t\t900") == [0, 4000, 4000, 4000, 0, 4000, 4000, 4000, 0]


def test_a_round_trip_below_a_nanosecond_takes_one(tmp_path: Path) -> None:
    assert one_way_us(tmp_path, "0\t1e-9\n5\t0") == [0, 0.001, 2500, 0]


def test_a_table_of_one_host_is_a_table(tmp_path: Path) -> None:
    assert one_way_us(tmp_path, "0\n") == [0]


@pytest.mark.parametrize(
    ("text", "line", "problem", "remedy"),
    [
        ("0\t1\n1\t0\n1\t1\n", 1, "the row has 2 cells in a table of 3 rows", "as many cells"),
        ("0\t1\t1\n1\t0\n1\t1\t0\n", 2, "the row has 2 cells in a table of 3 rows", "as many cells"),
        ("0 1\n1 0\n", 1, "the row has 1 cell in a table of 2 rows", "apart by tabs"),
        ("0\t1\n\n1\t0", 1, "the row has 2 cells in a table of 3 rows", "as many cells"),
        ("0\t1\nfast\t0\n", 2, "'fast' is no number", "leave the cell empty"),
        ("0\t1\n3600001\t0\n", 2, "a round trip of 3600001 ms", "an hour at most"),
        ("0\t1e300\n1\t0\n", 1, "a round trip of 1e300 ms", "an hour at most"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, problem: str, remedy: str
) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(text)
    error = refusal(path)
    assert (error.where, error.problem) == (f"{path}:{line}", problem)
    assert remedy in error.remedy
    assert str(error) == f"{path}:{line}: {problem}; {error.remedy}"
    assert isinstance(error, HoldfastError)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("\t\n\t\n", "no cell holds a measured round trip"),
        ("9\t0\n0\t9\n", "no cell holds a measured round trip"),
    ],
)
def test_a_table_without_measurements_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(text)
    assert refusal(path).problem == problem


def test_a_missing_file_is_refused_by_its_path(tmp_path: Path) -> None:
    error = refusal(tmp_path / "nowhere.tsv")
    assert (error.where, error.problem) == (str(tmp_path / "nowhere.tsv"), "there is no such file")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.xz", b"0\t1\n1\t0\n"),
        ("a.xz", lzma.compress(TABLE.encode())[:-8]),
        ("a.gz", b"0\t1\n1\t0\n"),
        ("a.gz", gzip.compress(TABLE.encode())[:-12]),
        ("a.gz", gzip.compress(TABLE.encode())[:10] + b"\xff" * 40),
        ("a.tsv", lzma.compress(TABLE.encode())),
    ],
    ids=["no xz", "cut xz", "no gz", "cut gz", "torn gz", "packed without a suffix"],
)
def test_a_damaged_file_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    error = refusal(tmp_path / name)
    assert error.where == str(tmp_path / name)
    assert error.problem.startswith("the file can't be read (")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path).problem.startswith("the file can't be read (")


def test_planetlab_is_read(data_file: Callable[[str], Path]) -> None:
    trips = read_round_trips(data_file("planetlab-rtt-490.tsv.xz"))
    assert trips.hosts == 490
    assert trips.delay_ns(0, 1) == 87_500
    assert trips.delay_ns(0, 489) == trips.delay_ns(489, 0)
    assert median(trips.one_way_ns) == pytest.approx(134.78 / 2 * 1e6, rel=1e-4)
    assert [place for place, delay_ns in enumerate(trips.one_way_ns) if delay_ns <= 0] == [h * 491 for h in range(490)]


def test_seattle_is_repaired(data_file: Callable[[str], Path]) -> None:
    # It holds zeros beside the diagonal, and other numbers on it.
    trips = read_round_trips(data_file("seattle-rtt-99.tsv.xz"))
    assert trips.hosts == 99
    assert [place for place, delay_ns in enumerate(trips.one_way_ns) if delay_ns <= 0] == [h * 100 for h in range(99)]
