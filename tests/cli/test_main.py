"""`holdfast` itself: usage, exit codes, and what becomes of errors."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from holdfast import __version__
from holdfast.cli import main as main_module
from holdfast.cli.main import SUBCOMMANDS, main
from tests.repository import PACKAGE, ROOT
from tests.trace.test_format import GOLDEN


def run(*arguments: str) -> int:
    """The exit code, also where argparse ends the process."""
    try:
        return main(arguments)
    except SystemExit as ending:
        return int(str(ending.code))


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"holdfast {__version__}\n"


def test_help_lists_the_commands_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    out = " ".join(capsys.readouterr().out.split())
    codes = "exit codes: 0 all is well, 1 a check failed, 2 wrong usage or bad input, 3 a broker stopped by itself"
    assert codes in out
    assert [name for name, does in SUBCOMMANDS.items() if f" {name} {does}" not in out] == []


@pytest.mark.parametrize(
    "arguments", [(), ("nonsense",), ("trace",), ("trace", "story"), ("trace", "check"), ("--what",)]
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("usage: holdfast")
    assert "error: " in captured.err


@pytest.mark.parametrize("name", sorted(SUBCOMMANDS))
def test_every_subcommand_has_its_module(name: str) -> None:
    assert (PACKAGE / "cli" / f"{name}.py").is_file()
    assert callable(import_module(f"holdfast.cli.{name}").add_arguments)


def test_only_the_module_that_was_asked_for_is_imported() -> None:
    program = (
        "import sys; from holdfast.cli.main import make_parser; make_parser(['--version']); "
        "print('holdfast.cli.trace' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_installed_command_is_this_one() -> None:
    script = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["holdfast"]
    module, _, function = script.partition(":")
    assert getattr(import_module(module), function) is main


def holdfast(*arguments: str, output: int = subprocess.PIPE) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "holdfast.cli", *arguments]
    return subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True)


def test_the_package_can_be_run() -> None:
    process = holdfast("trace", "summary", "--trace", str(GOLDEN))
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.startswith("run golden/1, system paxos, seed 17\n")


def test_whoever_closes_our_output_gets_no_traceback() -> None:
    process = holdfast("trace", "summary", "--trace", str(GOLDEN))
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as stderr:
        assert stderr.read() == ""
    assert process.wait() == 141


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main_module, "make_parser", interrupted)
    assert main([]) == 130


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    absent = tmp_path / "absent.jsonl"
    assert run("trace", "summary", "--trace", str(absent)) == 2
    assert capsys.readouterr().err == f"holdfast: {absent}: No such file or directory\n"
    assert run("trace", "summary", "--trace", str(tmp_path)) == 2
    assert capsys.readouterr().err == f"holdfast: {tmp_path}: Is a directory\n"
