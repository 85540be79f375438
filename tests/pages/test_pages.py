"""The blocks of the pages run as printed, in order, in a fresh folder."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

from holdfast.cli.main import make_parser
from tests.pages.blocks import JSON, KINDS, SHELL, TOML, Block, blocks_of, lacks
from tests.pages.run import needs_spark, run_python, run_session
from tests.repository import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
# Pages that run as they stand. On the others blocks are only read: they need a cluster, much time, or a reader's files.
RUN = ["README.md"] + [
    f"docs/{name}.md"
    for name in (
        "start",
        "choose",
        "client",
        "groups",
        "operations",
        "p2s",
        "positions",
        "qos",
        "simulator",
        "spark",
        "standins",
    )
]
PAGE_S_MAX = 600
TIMES_IN_A_ROW = 10

# Pages use the ports that users use. A loopback of its own keeps a page from brokers that run on this machine.
_OWN_LOOPBACK = ["unshare", "--map-root-user", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
_PORTS = [*range(7411, 7416), *range(7511, 7516)]


@cache
def has_own_loopback() -> bool:
    with suppress(FileNotFoundError):
        return subprocess.run([*_OWN_LOOPBACK, "true"], check=False, capture_output=True).returncode == 0
    return False


@contextmanager
def loopback() -> Iterator[list[str]]:
    """The beginning of a command that has the pages' ports for itself. Where that takes a right that we lack, those of
    the machine are used by one page at a time, unless something else has them."""
    if has_own_loopback():
        yield _OWN_LOOPBACK
        return
    with (Path(tempfile.gettempdir()) / "holdfast-pages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for port in _PORTS:
            with socket.socket() as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    tried.bind(("127.0.0.1", port))
                except OSError:
                    pytest.skip(f"something has port {port}, which pages use; they need it, or unshare(1) and ip(8)")
        yield []


def run_page(page: Path, folder: Path, *options: str) -> None:
    """Fails with the first block that does not do what the page says. Ends all that the page has started."""
    with loopback() as prefix:
        command = [*prefix, sys.executable, "-m", "tests.pages.run", str(page), str(folder), *options]
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            said, _ = process.communicate(timeout=PAGE_S_MAX)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode == 0, said


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    assert [(block.line, block.kind) for block in blocks_of(page.read_text()) if block.kind not in KINDS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_file_of_a_page_can_be_read(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also on pages whose blocks need what a test lacks."""
    for block in blocks_of(page.read_text()):
        if block.kind == TOML:
            tomllib.loads(block.text)
        elif block.kind == JSON:
            json.loads(block.text)
        elif block.kind == SHELL:
            unread = [command for command in holdfast_commands(block.text) if not is_read(command)]
            assert unread == [], f"line {block.line}: {capsys.readouterr().err}"


def holdfast_commands(script: str) -> list[list[str]]:
    """The arguments of each `holdfast` in a script."""
    found: list[list[str]] = []
    for line in script.splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        command: list[str] | None = None
        for word in words:
            if set(word) <= set("&;|<>()"):
                command = None
            elif command is not None:
                command.append(word)
            elif word.rpartition("/")[2] == "holdfast":
                found.append(command := [])
    return found


def is_read(command: list[str]) -> bool:
    """Whether the command line is one of Holdfast's."""
    try:
        make_parser(command).parse_args(command)
    except SystemExit as ended:
        return ended.code == 0  # --help
    return True


def test_a_command_that_there_is_not_is_found() -> None:
    script = "x/holdfast up & y=$!  # serve\nholdfast read  and more words; holdfast fly\n"
    commands = holdfast_commands(script)
    assert commands == [["up"], ["read", "and", "more", "words"], ["fly"]]
    assert [is_read(command) for command in commands] == [True, False, False]


def test_the_readme_runs_as_printed_but_for_spark(tmp_path: Path) -> None:
    run_page(ROOT / "README.md", tmp_path / "page", "--without-spark")


def is_about_spark(name: str) -> bool:
    return any(map(needs_spark, blocks_of((ROOT / name).read_text())))


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in RUN if not is_about_spark(name)])
def test_a_page_runs_as_printed(tmp_path: Path, name: str) -> None:
    run_page(ROOT / name, tmp_path / "page")


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("name", [name for name in RUN if is_about_spark(name)])
def test_a_page_runs_as_printed_with_spark(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyspark", reason="the page is about Spark")
    run_page(ROOT / name, tmp_path / "page")


@pytest.mark.long  # some minutes a page: finds what a race breaks once in a while
@pytest.mark.parametrize("name", RUN)
def test_a_page_runs_ten_times_in_a_row(tmp_path: Path, name: str) -> None:
    for time in range(TIMES_IN_A_ROW):
        run_page(ROOT / name, tmp_path / f"page-{time}")


def page_of(text: str, folder: Path) -> Path:
    page = folder / "page.md"
    page.write_text(text)
    return page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```sh\ntrue\nfalse\n```\n", "a command exited with 1"),
        ("```sh\necho 1\n```\n```output\n2\n```\n", "it does not print: 2"),
        ("```sh\n(echo 'holdfast: no such port' >&2; exit 2) & wait\n```\n", "it complains: holdfast: no such port"),
        ("```python\nx = 2\n```\n```python\nx + 1  # 4\n```\n", "gives 3"),
        ("```pycon\n>>> 1 + 1\n3\n```\n", "Got:\n    2"),
        ("```toml\n[scheme\n```\n", "TOMLDecodeError"),
    ],
)
def test_a_page_that_does_not_do_what_it_shows_is_found(text: str, said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import tests.pages.run as r; r.OUTPUT_S_MAX = 0.1; raise SystemExit(r.main())"]
    page = page_of(text, tmp_path)
    ran = subprocess.run(
        [*command, str(page), str(tmp_path / "folder")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert said in ran.stdout


def test_blocks_are_read_with_their_lines_and_without_the_indentation_of_a_list() -> None:
    text = "a\n```sh\nls\n```\n1. b\n\n   ```toml\n   x = [\n     1]\n   ```\n"
    assert blocks_of(text) == [Block("sh", 3, "ls\n"), Block("toml", 8, "x = [\n  1]\n")]


def test_printed_lines_are_found_in_order_whatever_is_between() -> None:
    printed = "one  of 3\nnoise\ntook 4.25 s\n"
    assert lacks("one of …\ntook 1.0 s\n", printed) == ""
    assert lacks("took 1.0 s\none of …\n", printed) == "one of …"
    assert lacks("one of 4\n", printed) == "one of 4"


def test_a_wrong_result_in_a_block_is_found() -> None:
    assert run_python("1 + 1  # 3", {}) == ["1 + 1  # 3\n  gives 2"]
    assert run_python("x = 2\nx  # 2, of course", {}) == []
    assert run_session(">>> 2\n2\n", {}) == ""
