"""Runs the blocks of a page in order, in one folder, one shell and one Python, as a reader would: each has to succeed.

python -m tests.pages.run README.md FOLDER [--without-spark]

It prints the first block that does not do what the page says, and exits with 1. Whoever calls it ends what the page has
left running: all of it is in the process group of this one.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import contextlib
import doctest
import inspect
import json
import os
import subprocess
import sys
import time
import tomllib
import traceback
import types
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from tests.pages.blocks import JSON, OUTPUT, PYTHON, SESSION, SHELL, TOML, Block, blocks_of, lacks
from tests.repository import ROOT

_AWAITING = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
BLOCK_S_MAX = 240.0
OUTPUT_S_MAX = 30.0
LOOK_EVERY_S = 0.02
# What a command says when it fails, also one in the background, whose exit code nobody sees.
_COMPLAINT = "holdfast: "


class DiffersError(Exception):
    """A block does not do what the page says."""


class PageRun:
    """The state of a reader: a folder, a shell with its jobs, Python's names, and what the last block printed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, Any] = {"__name__": "page"}
        self._printed = folder.parent / f"{folder.name}.printed"
        self._printed.touch()
        self._begin = 0
        with self._printed.open("ab") as output:
            self._shell = subprocess.Popen(
                ["bash", "-e"], stdin=subprocess.PIPE, stdout=output, stderr=output, text=True, cwd=folder
            )

    def run(self, block: Block, shown: str) -> None:
        """`shown` is what the page says that the block prints."""
        match block.kind:
            case "sh":
                self._begin = self._printed.stat().st_size
                self._run_shell(block)
                self._complain_unless_shown(shown)
            case "python":
                self._begin = self._printed.stat().st_size
                with self._printed.open("a") as output, contextlib.redirect_stdout(output):
                    differences = run_python(block.text, self._names)
                if differences:
                    raise DiffersError("\n".join(differences))
            case "pycon":
                problem = run_session(block.text, self._names)
                if problem:
                    raise DiffersError(problem)
            case "output":
                self._await(block.text)
            case "toml":
                tomllib.loads(block.text)
            case "json":
                json.loads(block.text)

    def printed(self) -> str:
        """All that was printed since the last block that ran began."""
        return self._printed.read_bytes()[self._begin :].decode(errors="replace")

    def _run_shell(self, block: Block) -> None:
        script = self._folder.parent / f"{self._folder.name}.{block.line}.sh"
        script.write_text(block.text)
        done = script.with_suffix(".done")
        assert self._shell.stdin is not None
        self._shell.stdin.write(f". {script} < /dev/null\necho > {done}\n")
        self._shell.stdin.flush()
        deadline = time.monotonic() + BLOCK_S_MAX
        while not done.exists():
            if self._shell.poll() is not None:
                raise DiffersError(f"a command exited with {self._shell.returncode}")
            if time.monotonic() > deadline:
                raise DiffersError(f"not done after {BLOCK_S_MAX:g} s")
            time.sleep(LOOK_EVERY_S)

    def _complain_unless_shown(self, shown: str) -> None:
        for line in self.printed().splitlines():
            if line.startswith(_COMPLAINT) and lacks(line, shown):
                raise DiffersError(f"it complains: {line}")

    def _await(self, shown: str) -> None:
        """What runs in the background may print it a moment later."""
        deadline = time.monotonic() + OUTPUT_S_MAX
        while lacking := lacks(shown, self.printed()):
            if time.monotonic() > deadline:
                raise DiffersError(f"it does not print: {lacking}")
            time.sleep(LOOK_EVERY_S)


def run_python(source: str, names: dict[str, Any]) -> list[str]:
    """Runs statements; where one shows its result in a comment, compares. Gives what differs.

    They may await something, as they may in `python -m asyncio`.
    """
    differences = []
    lines = source.splitlines()
    for statement in ast.parse(source).body:
        last = lines[(statement.end_lineno or statement.lineno) - 1]
        shown = last.partition("  # ")[2].strip()
        code = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        if isinstance(statement, ast.Expr) and shown:
            value = _evaluate(compile(ast.Expression(statement.value), "page", "eval", _AWAITING), names)
            if value is not None and not shown.startswith(repr(value)):
                differences.append(f"{code}\n  gives {value!r}")
        else:
            _evaluate(compile(code, "page", "exec", _AWAITING), names)
    return differences


def _evaluate(code: types.CodeType, names: dict[str, Any]) -> Any:
    value = eval(code, names)
    return asyncio.run(_awaited(value)) if code.co_flags & inspect.CO_COROUTINE else value


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


def run_session(text: str, names: dict[str, Any]) -> str:
    """Runs a session with >>>; "" if it goes as it is shown."""
    said: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, names, "page", None, None)
    outcome = doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False)
    return "".join(said) if outcome.failed or not outcome.attempted else ""


def needs_spark(block: Block) -> bool:
    return block.kind == PYTHON and "spark" in block.text


def run_page(page: Path, folder: Path, with_spark: bool) -> None:
    """Runs a page's blocks. DiffersError, with the block and its line, at the first that does not do what it says."""
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    reader = PageRun(folder)
    ran = True
    for number, block in enumerate(blocks):
        if block.kind in (SHELL, PYTHON):
            ran = with_spark or not needs_spark(block)
        if not ran:
            continue
        following = blocks[number + 1] if number + 1 < len(blocks) else None
        shown = following.text if following is not None and following.kind == OUTPUT else ""
        begun = time.monotonic()
        try:
            reader.run(block, shown)
        except Exception as problem:
            said = str(problem) if isinstance(problem, DiffersError) else traceback.format_exc()
            raise DiffersError(
                f"{page.name}, line {block.line}: {said}\n--- {block.kind}\n{block.text}--- printed\n{reader.printed()}"
            ) from problem
        if block.kind in (SHELL, PYTHON, SESSION, OUTPUT, TOML, JSON):
            print(f"{page.name}, line {block.line}: {block.kind}, {time.monotonic() - begun:.1f} s", flush=True)


def prepare(folder: Path) -> None:
    """What a reader has after ./demo: the environment and the examples; and a home that nobody has used."""
    folder.mkdir(parents=True)
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "examples").symlink_to(ROOT / "examples")
    os.environ["HOME"] = str(folder / "home")
    os.environ.pop("XDG_STATE_HOME", None)
    os.environ["PATH"] = f"{folder}/.venv/bin:{os.environ['PATH']}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--without-spark", action="store_true")
    arguments = parser.parse_args()
    page, folder = arguments.page.resolve(), arguments.folder.resolve()
    prepare(folder)
    os.chdir(folder)
    try:
        run_page(page, folder, not arguments.without_spark)
    except DiffersError as problem:
        print(problem)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
