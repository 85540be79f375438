"""What the README and the docstrings show is what happens."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.broker.measures import NETWORK_MEASURES
from holdfast.cli.main import main
from tests.repository import ROOT


def python_blocks(text: str) -> list[str]:
    """The Python blocks of a page, without their fences."""
    return [block.partition("\n")[2] for block in text.split("```")[1::2] if block.startswith("python\n")]


def run_block(source: str, names: dict[str, Any]) -> list[str]:
    """Runs a block; where a line shows its result in a comment, compares. Gives what differs."""
    differences = []
    lines = source.splitlines()
    for statement in ast.parse(source).body:
        last = lines[(statement.end_lineno or statement.lineno) - 1]
        shown = last.partition("  # ")[2].strip()
        code = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        if isinstance(statement, ast.Expr) and shown:
            value = eval(compile(ast.Expression(statement.value), "README", "eval"), names)
            if value is not None and not shown.startswith(repr(value)):
                differences.append(f"{code}\n  gives {value!r}")
        else:
            exec(compile(code, "README", "exec"), names)
    return differences


def test_the_readme_shows_what_happens() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the README matches an Arrow record batch")
    names: dict[str, Any] = {"record_batch": pyarrow.record_batch({"price": [1, 101]})}
    blocks = python_blocks((ROOT / "README.md").read_text())
    assert len(blocks) == 2
    differences = [difference for block in blocks for difference in run_block(block, names)]
    unshown = [d for d in differences if "match_batch" not in d and "match_columns" not in d]
    assert unshown == []


def test_a_wrong_result_in_the_readme_is_found() -> None:
    assert run_block("1 + 1  # 3", {}) == ["1 + 1  # 3\n  gives 2"]
    assert run_block("x = 2\nx  # 2, of course", {}) == []


@pytest.mark.parametrize("module", ["holdfast.model.filter", "holdfast.matching.index"])
def test_docstrings_show_what_happens(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(module), extraglobs={"Filter": holdfast.Filter})
    assert outcome.attempted > 0
    assert outcome.failed == 0


def commands_of(text: str) -> list[tuple[list[str], list[str]]]:
    """The commands of a page that end by themselves, each with the lines of output that are shown under it."""
    found: list[tuple[list[str], list[str]]] = []
    for block in text.split("```")[1::2]:
        for line in block.splitlines():
            if line.startswith((".venv/bin/holdfast sim ", ".venv/bin/holdfast trace ")):
                found.append((shlex.split(line.partition("  #")[0])[1:], []))
            elif found and line and block.lstrip().startswith(".venv/bin/holdfast sim"):
                found[-1][1].append(line)
    return found


def test_the_readmes_commands_print_what_it_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    commands = commands_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(commands) >= 3
    for arguments, shown in commands:
        assert main(arguments) == 0, arguments
        printed = re.sub(r"[\d.]+ s$", "…", capsys.readouterr().out, flags=re.MULTILINE).splitlines()
        for line in shown:
            assert re.sub(r"[\d.]+ s$", "…", line) in printed


def test_the_states_of_the_machines_are_drawn_from_their_tables() -> None:
    command = [sys.executable, "scripts/state_diagrams.py", "--check"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0, "run python scripts/state_diagrams.py"


def test_the_page_on_the_public_interface_says_what_the_docstrings_say() -> None:
    command = [sys.executable, "scripts/api_docs.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, check=False)
    assert result.returncode == 0, "run python scripts/api_docs.py"


def test_every_measure_of_a_network_is_on_the_page_for_operators() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in NETWORK_MEASURES if f"`{name}`" not in page] == []
