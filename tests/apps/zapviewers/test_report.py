"""The report of a pipeline: one page, whole in itself, with the numbers of the tables, and with text as text."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyarrow")

from holdfast.apps.zapviewers.pipeline.report import write_report
from holdfast.apps.zapviewers.pipeline.report.figures import POINTS_MAX, read_figures
from holdfast.apps.zapviewers.pipeline.report.listing import as_text
from holdfast.apps.zapviewers.pipeline.report.markup import element, render, style_sheet
from holdfast.cli.main import main
from holdfast.spark.errors import PipelineError
from tests.apps.zapviewers.report_tables import (
    EVENING,
    FACTS,
    day_rows,
    interval_rows,
    minute_rows,
    some_tables,
    write_tables,
)

HOSTILE = [
    "<script>alert(1)</script>",
    "\"onload='x'",
    "</title></svg><img src=x onerror=alert(1)>",
    "https://example.invalid/&amp;",
    "قناة الأخبار",
    "\u202egnp.exe",
    "📺👩\u200d🚀",
    "javascript:alert(1)",
    "]]><!--",
    "{{7*7}}",
    "a\ud7ffb\ufffe",
    "x" * 59,
]


def written(tables: Path) -> str:
    output = tables / "report.html"
    write_report(tables, output)
    return output.read_text(encoding="utf-8")


def parsed(text: str) -> ET.Element:
    """The page as a strict parser of XML sees it, which forgives nothing."""
    return ET.fromstring(text)


def words(root: ET.Element) -> str:
    return " ".join("".join(root.itertext()).split())


def rows_below(root: ET.Element, heading: str) -> list[list[str]]:
    """The cells of the first table after a heading."""
    found = False
    for node in root.iter():
        if node.tag in {"h2", "h3"}:
            found = "".join(node.itertext()).startswith(heading)
        elif node.tag == "table" and found:
            return [["".join(cell.itertext()) for cell in row] for row in node.iterfind("tbody/tr")]
    raise AssertionError(f"no table below {heading!r}")


@pytest.mark.parametrize("names", [("Velkin", "Orrow", "Tavio"), HOSTILE], ids=["plain", "hostile"])
def test_page_is_well_formed_and_refers_to_nothing_outside(names: list[str], tmp_path: Path) -> None:
    text = written(some_tables(tmp_path / "tables", names))
    root = parsed(text)
    assert text.startswith("<!DOCTYPE html>\n<html lang=")
    allowed = {"href": re.compile(r"#c[0-9]+"), "style": re.compile(r"(?:left|bottom):[0-9.]+%|--n:[0-9]+")}
    for node in root.iter():
        assert node.tag not in {"script", "img", "link", "iframe", "object", "embed", "a", "image", "foreignObject"}
        for attribute, value in node.attrib.items():
            assert not attribute.startswith("on")
            assert attribute not in {"src", "srcset", "data", "xlink:href"}
            if attribute in allowed:
                assert allowed[attribute].fullmatch(value)
    style = root.find("head/style")
    assert style is not None
    assert style.text is not None
    assert not re.search(r"url\(|@import|@font-face|expression", style.text)
    # Ids are given once, and every reference to one leads somewhere.
    ids = [node.attrib["id"] for node in root.iter() if "id" in node.attrib]
    assert len(ids) == len(set(ids))
    references = {node.attrib["href"][1:] for node in root.iter("use")}
    references |= {id for node in root.iter() for id in node.attrib.get("aria-labelledby", "").split()}
    assert references <= set(ids)


def test_page_of_plain_names_has_no_address_of_the_web(tmp_path: Path) -> None:
    text = written(some_tables(tmp_path / "tables"))
    assert [found for found in ("http://", "https://", "src=", "//cdn", "<script") if found in text] == []


def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    root = parsed(written(some_tables(tmp_path / "tables", HOSTILE)))
    shown = {"".join(node.itertext()) for node in root.iter("bdi")}
    untouched = [name for name in HOSTILE if name.isprintable() or "\u200d" in name]
    assert len(untouched) == 10
    assert shown >= set(untouched)
    # What turns other text around, or is no character, is replaced.
    assert {"\ufffdgnp.exe", "a\ufffdb\ufffd"} <= shown
    assert "\u202e" not in words(root)


def test_numbers_are_those_of_the_tables(tmp_path: Path) -> None:
    root = parsed(
        written(
            write_tables(
                tmp_path / "tables",
                {
                    "viewers_now": [("Tavio", 1500), ("Orrow", 7), ("Velkin", 1500), ("Nobody", 0)],
                    "viewers_by_minute": [*minute_rows("Velkin", [10, 0, 50]), *minute_rows("Orrow", [0, 3])],
                    "days": day_rows(("Velkin", 7200, 31), ("Orrow", 1800, 1002)),
                    "changes": [("Velkin", "Orrow", 1200), ("Orrow", "Velkin", 300), ("Orrow", "Tavio", 4)],
                    "quarantine": [(place, 0, b"x", "empty" if place % 3 else "no time") for place in range(100)],
                },
            )
        )
    )
    assert [row[:3] for row in rows_below(root, "At the end, position 2,311")] == [
        ["1", "Tavio", "1,500"],
        ["2", "Velkin", "1,500"],
        ["3", "Orrow", "7"],
    ]
    assert [row[1:3] for row in rows_below(root, "On average")] == [["Velkin", "20"], ["Orrow", "1"]]
    assert rows_below(root, "Share and reach") == [
        ["Velkin", "80.0%", "", "31", "2"],
        ["Orrow", "20.0%", "", "1,002", "0.5"],
    ]
    assert rows_below(root, "The most frequent ones") == [
        ["Velkin", "Orrow", "1,200"],
        ["Orrow", "Velkin", "300"],
        ["Orrow", "Tavio", "4"],
    ]
    assert rows_below(root, "Quarantine") == [["empty", "66"], ["no time", "34"]]
    assert [row[0] for row in rows_below(root, "The first 12 lines")] == [str(place) for place in range(12)]
    cells = [words(cell) for svg in root.iter("svg") for rect in svg.iter("rect") for cell in rect.iter("title")]
    assert "\u2068Velkin\u2069 → \u2068Orrow\u2069: 1,200" in cells
    assert "\u2068Tavio\u2069 → \u2068Orrow\u2069: 0" in cells
    assert len(cells) == 9
    said = words(root)
    assert "Lines462,335" in said
    assert "Set-top boxes3,934937 on at the end" in said
    assert "Lines in quarantine100empty: 66; no time: 34" in said
    assert "Most viewers50at 20:02" in said
    assert "1,504 changes between 3 pairs of channels; 100% of them are on this map" in said
    assert "in its best day" in said


def test_curves_have_the_heights_of_the_minutes(tmp_path: Path) -> None:
    viewers = [0, 40, 40, 100, 0, 10]
    root = parsed(
        written(write_tables(tmp_path / "tables", {"viewers_by_minute": minute_rows("Velkin", [10, *viewers[1:]])}))
    )
    line = next(node.attrib["d"] for node in root.iter("path") if node.attrib["class"] == "line")
    # 1,440 wide, and 1,000 high, from the top; the scale ends at 100.
    assert line == "M0 900H240V600H720V0H960V1000H1200V900H1440"


def test_page_says_how_it_was_made_and_that_data_is_synthetic(tmp_path: Path) -> None:
    said = words(parsed(written(some_tables(tmp_path / "tables"))))
    for text in ["The data is synthetic", FACTS["url"], FACTS["log"], "1 to 2,311", FACTS["when"], "Spark4.3.0"]:
        assert str(text) in said
    recorded = write_tables(tmp_path / "recorded", {}, {**FACTS, "synthetic": False})
    assert "synthetic" not in words(parsed(written(recorded)))


def test_empty_tables_give_a_page_that_says_so(tmp_path: Path) -> None:
    said = words(parsed(written(write_tables(tmp_path / "tables", {}, {}))))
    assert said.count("Nobody has watched anything yet.") == 2
    for text in [
        "Nobody watches a channel that is known.",
        "There are no windows of time with viewers.",
        "No box has changed its channel yet.",
        "All lines could be read.",
        "Linesnot recorded",
    ]:
        assert text in said
    assert "missing" not in said


def test_tables_that_are_missing_are_named(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    (tables / "changes").mkdir(parents=True)
    said = words(parsed(written(tables)))
    assert "These tables are missing: viewers_by_minute, windows, viewers_now, quarantine." in said


def test_windows_serve_where_there_are_no_days(tmp_path: Path) -> None:
    quarter = timedelta(minutes=15)
    rows = [(EVENING + quarter * i, EVENING + quarter * (i + 1), "Velkin", 600, 0.0, 5 + i) for i in range(3)]
    tables = write_tables(tmp_path / "tables", {"windows": rows})
    for part in (tables / "days").iterdir():
        part.unlink()
    (tables / "days").rmdir()
    root = parsed(written(tables))
    assert rows_below(root, "Share and reach") == [["Velkin", "100.0%", "", "7", "0.5"]]
    assert "in its best 15 minutes" in words(root)


def test_files_that_a_killed_stream_left_are_not_counted(tmp_path: Path) -> None:
    tables = some_tables(tmp_path / "tables")
    listed = tables / "quarantine" / "_spark_metadata"
    listed.mkdir()

    def entered(*names: str) -> str:
        return "\n".join(
            ["v1", *(json.dumps({"path": f"file:///elsewhere/{name}", "action": "add"}) for name in names)]
        )

    (listed / "0").write_text(entered("part-0.parquet"))
    assert read_figures(tables).refused == 2  # of three
    (listed / "1").write_text(entered("part-1.parquet"))
    assert read_figures(tables).refused == 3
    # After some time one file says all that those before it said.
    (listed / "9.compact").write_text(entered("part-1.parquet"))
    assert read_figures(tables).refused == 1
    (listed / "10").write_text(entered("part-0.parquet"))
    (listed / ".10.crc").touch()
    assert read_figures(tables).refused == 3


def test_clocks_that_are_off_do_not_stretch_the_day(tmp_path: Path) -> None:
    long_ago, far_ahead = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59)
    tables = write_tables(
        tmp_path / "tables",
        {
            "viewers_by_minute": [
                *minute_rows("Velkin", [200] * 30),
                *minute_rows("Orrow", [1], long_ago),
                *minute_rows("Orrow", [1], far_ahead),
                *minute_rows("Tavio", [1] * 5, EVENING - timedelta(days=400)),
            ],
            "days": [
                *day_rows(("Velkin", 3600, 9)),
                *day_rows(("Tavio", 3600, 9), start=EVENING - timedelta(days=400)),
            ],
        },
    )
    figures = read_figures(tables)
    assert figures.viewing is not None
    assert (figures.viewing.began, len(figures.viewing.total.values)) == (EVENING, 30)
    assert figures.viewing.days_left_out == 1  # the others are beyond all reason, and not counted
    assert [series.channel for series in figures.viewing.channels] == ["Velkin"]
    assert figures.shares is not None
    assert [share.channel for share in figures.shares.channels] == ["Velkin"]
    assert "1 other day with a few viewers" in words(parsed(written(tables)))


def test_night_that_follows_is_shown_and_long_times_are_averaged(tmp_path: Path) -> None:
    tables = write_tables(tmp_path / "tables", {"viewers_by_minute": minute_rows("Velkin", [10, 20] * 1000)})
    viewing = read_figures(tables).viewing
    assert viewing is not None
    assert viewing.step == timedelta(minutes=2)
    assert viewing.total.values == [15.0] * 1000
    assert len(viewing.total.values) <= POINTS_MAX
    said = words(parsed(written(tables)))
    assert "15 November 2026 to 17 November 2026" in said
    assert "averages of 2 minutes" in said


def test_two_minutes_are_shown_second_by_second(tmp_path: Path) -> None:
    """A minute a step, they would be two steps."""
    spans: list[tuple[float, float | None]] = [(-20, None), (-20, 70), (10.5, None), (10.5, 13.5), (40, 95)]
    minutes = [2, 3 + 1, 2 + 1, 2, 2]
    tables = write_tables(
        tmp_path / "tables",
        {"viewers_by_minute": minute_rows("Velkin", minutes), "intervals": interval_rows("Velkin", *spans)},
    )
    viewing = read_figures(tables).viewing
    assert viewing is not None
    assert (viewing.step, viewing.began) == (timedelta(seconds=1), EVENING - timedelta(seconds=20))
    expected = [2] * 31 + [3] * 29 + [4] * 30 + [3] * 25 + [2]
    assert viewing.total.values == viewing.channels[0].values == expected
    # What a minute began with is what the table says of it.
    assert [viewing.total.values[20 + 60 * minute] for minute in range(2)] == minutes[:2]
    said = words(parsed(written(tables)))
    assert "Boxes on a channel, at the beginning of every second." in said
    assert "From 19:59:40 to 20:01:35" in said


@pytest.mark.parametrize("seed", range(5))
def test_every_step_says_who_watched_when_it_began(seed: int, tmp_path: Path) -> None:
    """Counted anew for each step, and for each minute of the table; some intervals began long before."""
    rng = Random(seed)
    spans: list[tuple[float, float | None]] = []
    for _ in range(200):
        began = rng.choice([-90_000, rng.randrange(-40, 500)])
        spans.append((began, rng.choice([None, rng.randrange(max(0, began), 500) + 4])))

    def watching(second: int) -> int:
        retained = [(began, ended) for began, ended in spans if ended is None or ended - began > 3]
        return sum(began <= second and (ended is None or ended > second) for began, ended in retained)

    minutes = [watching(60 * minute) for minute in range(10)]
    tables = write_tables(
        tmp_path / "tables",
        {"viewers_by_minute": minute_rows("Velkin", minutes), "intervals": interval_rows("Velkin", *spans)},
    )
    viewing = read_figures(tables).viewing
    assert viewing is not None
    assert viewing.step == timedelta(seconds=2)
    seconds = [(viewing.at(place) - EVENING) // timedelta(seconds=1) for place in range(len(viewing.total.values))]
    assert viewing.total.values == [watching(second) for second in seconds]
    assert seconds[0] >= -40
    assert seconds[-1] >= 495


@pytest.mark.parametrize(
    ("minutes", "step_s"), [(1, 1), (3, 1), (5, 2), (15, 5), (59, 15), (61, 30), (121, 60), (1500, 120)]
)
def test_steps_fit_the_time_that_there_is(minutes: int, step_s: int, tmp_path: Path) -> None:
    tables = write_tables(
        tmp_path / "tables",
        {
            "viewers_by_minute": minute_rows("Velkin", [1] * minutes),
            "intervals": interval_rows("Velkin", (0, 60 * minutes - 60))
            if minutes > 1
            else interval_rows("Velkin", (0, None)),
        },
    )
    viewing = read_figures(tables).viewing
    assert viewing is not None
    assert viewing.step == timedelta(seconds=step_s)
    assert viewing.began == EVENING
    assert len(viewing.total.values) <= POINTS_MAX


def test_matrix_keeps_the_channels_with_the_most_changes(tmp_path: Path) -> None:
    names = [f"Kanal {place:02}" for place in range(30)]
    rows = [(a, b, 1 + place) for place, a in enumerate(names) for b in names if a != b]
    figures = read_figures(write_tables(tmp_path / "tables", {"changes": rows}))
    assert figures.changes is not None
    assert figures.changes.channels == names[:9:-1]
    assert len(figures.changes.zaps) == 20 * 19
    assert figures.changes.total == sum(row[2] for row in rows)


def test_folder_without_tables_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "report", "--tables", str(tmp_path), "--output", str(tmp_path / "report.html")]) == 2
    assert "there are no tables of a pipeline here; 'holdfast pipeline run zapviewers'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_tables_of_something_else_are_refused(tmp_path: Path) -> None:
    tables = some_tables(tmp_path / "tables")
    (tables / "changes" / "part-0.parquet").write_bytes(b"no parquet")
    with pytest.raises(PipelineError, match="changes: this can't be read as Parquet"):
        read_figures(tables)
    (tables / "changes" / "part-0.parquet").write_bytes((tables / "viewers_now" / "part-0.parquet").read_bytes())
    (tables / "changes" / "part-1.parquet").unlink()
    with pytest.raises(PipelineError, match="changes: a table of something else: it has no column 'from_channel'"):
        read_figures(tables)
    tables = some_tables(tmp_path / "others")
    (tables / "pipeline.json").write_text('{"lines": "many"}')
    with pytest.raises(PipelineError, match=r"pipeline\.json: Expected `int \| null`"):
        read_figures(tables)


def test_command_writes_the_page_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables, output = some_tables(tmp_path / "tables"), tmp_path / "report.html"
    assert main(["pipeline", "report", "--tables", str(tables), "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"{output}\n"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["report.html"]
    parsed(output.read_text(encoding="utf-8"))


def test_lines_that_are_no_text_are_shown_by_numbers() -> None:
    assert as_text(b"\xff\x00a\r") == r"\xff\x00a\r"
    assert as_text("é\u2028".encode()) == "é\\u2028"
    assert as_text(b"y" * 90) == "y" * 80 + "…"


def test_style_sheet_that_would_need_escaping_is_refused() -> None:
    assert render(element("p", style_sheet('a { font: "B"; }'))) == '<p><style>a { font: "B"; }</style></p>'
    with pytest.raises(ValueError, match="style sheet"):
        style_sheet("</style><script>")
