"""docs/trace.md tells of every kind, field and checker, and shows what is really printed."""

from __future__ import annotations

import re

import msgspec
import pytest

from holdfast.cli.main import main
from holdfast.sim.swarm import checkers_of
from holdfast.trace.schema import ROW_TYPES, Header
from tests.cli.test_trace import trace_bytes
from tests.repository import ROOT
from tests.trace.example import example_run

PAGE = (ROOT / "docs" / "trace.md").read_text(encoding="utf-8")


def fields(row_type: type[msgspec.Struct]) -> list[str]:
    """The fields as the page marks them."""
    found = msgspec.structs.fields(row_type)
    return [f"`{field.name}`{'' if field.required else ' ?'}" for field in found if field.name != "t"]


def test_every_kind_and_field_is_in_the_table() -> None:
    table = re.findall(r"^\| (`\w+`)? ?\| (`\w+`(?: \?)?)? ?\| \S.* \|$", PAGE, re.MULTILINE)
    expected = []
    for row_type in ROW_TYPES:
        expected.append((f"`{row_type.kind}`", ""))
        expected += [("", name) for name in fields(row_type)]
    assert table == expected


def test_every_field_of_the_header_is_in_the_table() -> None:
    table = re.findall(r"^\| (`\w+`(?: \?)?) \| [^|]+ \|$", PAGE.partition("## Checkers")[0], re.MULTILINE)
    # A reader insists on the first two, though a header that is made in code has them by default.
    assert table == ["`format`", "`version`", *fields(Header)[2:]]


def test_every_checker_is_in_the_table() -> None:
    """Those of all schemes, then those of one."""
    table = re.findall(r"^\| `([\w:-]+)` \| [^|]+ \|$", PAGE.partition("## Checkers")[2], re.MULTILINE)
    known = {**checkers_of("paxos"), **checkers_of("tree")}
    assert table == [f"{name}:{entry.argument}" if entry.argument else name for name, entry in known.items()]


def test_the_page_shows_what_is_printed(
    capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("docs") / "stocks.jsonl"
    path.write_bytes(trace_bytes(example_run()))
    shown = re.findall(r"```text\n\$ holdfast (.*)\n((?:.*\n)*?)```", PAGE)
    assert len(shown) == 3
    for command, output in shown:
        assert main(command.replace("stocks.jsonl.gz", str(path)).split()) == 0
        assert capsys.readouterr().out == output
