"""`holdfast zap publish | watch | ask`, against a broker that `holdfast init --application zapviewers` describes."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.broker.registry import SCHEMES
from holdfast.broker.site import site_from_toml
from holdfast.cli.applications import application_of
from holdfast.cli.init import APPLICATIONS
from holdfast.cli.main import INTERRUPTED
from holdfast.cli.terminal import InPlace
from tests.cli.test_main import run
from tests.runtime.broker_process import BrokerProcess

APPLICATION = APPLICATIONS["zapviewers"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site"), rest=APPLICATION.replace("= 1000", "= 1")) as process:
        assert run("zap", "publish", process.url, "--boxes", "2000", "--speed", "max", "--count", "5000") == 0
        yield process


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert run("zap", *arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("scheme", ["tree", "paxos"])
def test_init_gives_a_site_with_the_application(scheme: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("init", "--scheme", scheme, "--application", "zapviewers", "-") == 0
    site = site_from_toml(capsys.readouterr().out, "site.toml")
    assert site.application is not None
    assert application_of(site.application, "site.toml") is not None
    assert site.scheme is SCHEMES[scheme]
    assert run("init", "--scheme", scheme, "-") == 0
    assert "[application]" not in capsys.readouterr().out


def test_publish_says_what_was_acknowledged_and_how_long_it_took(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    site = tmp_path / "site.toml"
    site.write_text(f'[[broker]]\nid = "b1"\naddress = "{broker.url.removeprefix("holdfast://")}"\n')
    small = ("--publishers", "2", "--boxes", "1000", "--rate", "100000", "--count", "501")
    shown = said(capsys, "publish", str(site), *small)
    assert re.match(r"\d+ publications with 501 lines acknowledged in [\d.]+ s, ", shown)
    assert re.search(
        r"latency p50 [\d.]+ ms, p90 [\d.]+ ms, p99 [\d.]+ ms, max [\d.]+ ms \(synthetic, run \w{8}\)", shown
    )


def test_what_was_published_can_be_asked_for(broker: BrokerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    top = json.loads(said(capsys, "ask", "top", broker.url, "--json", "--n", "3"))
    assert len(top["top"]) == 3
    channel, viewers = top["top"][0]
    assert said(capsys, "ask", "viewers", channel, broker.url) == f"{viewers:,}\n"
    assert json.loads(said(capsys, "ask", "viewers", "Nowhere", broker.url, "--json"))["viewers"] == 0
    counts = said(capsys, "ask", "counts", broker.url)
    assert f"lines      {top['lines']:,}\n" in counts
    assert "malformed  0\n" in counts
    table = said(capsys, "ask", "top", broker.url, "--n", "3").splitlines()
    assert table[1].split() == ["1", *channel.split(), f"{viewers:,}"]
    assert table[-1].startswith(f"{top['viewers']:,} viewers on ")


def test_watch_begins_with_what_is_the_case(broker: BrokerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    top = json.loads(said(capsys, "ask", "top", broker.url, "--json"))
    channel, viewers = top["top"][0]
    shown = said(capsys, "watch", broker.url, "--once")
    assert shown.startswith(f"position {top['position']:,}: {top['viewers']:,} viewers; {channel} {viewers:,}, ")
    assert shown.count("\n") == 1
    assert (
        said(capsys, "watch", broker.url, "--channel", channel, "--count", "1") == f"{channel}: {viewers:,} viewers\n"
    )
    assert said(capsys, "watch", broker.url, "--count", "0") == ""


def test_watch_goes_on_with_what_is_told(broker: BrokerProcess) -> None:
    command = [sys.executable, "-m", "holdfast.cli", "zap", "watch", broker.url, "--count", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        shown = [watching.stdout.readline()]
        assert (
            run("zap", "publish", broker.url, "--boxes", "2000", "--seed", "9", "--speed", "max", "--count", "3000")
            == 0
        )
        shown += watching.stdout.readlines()
    assert watching.returncode == 0
    positions = [int(text.split()[1].replace(",", "").rstrip(":")) for text in shown]
    assert len(positions) == 3
    assert positions == sorted(set(positions))


def test_on_a_terminal_a_page_takes_the_place_of_the_one_before(broker: BrokerProcess) -> None:
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    command = [sys.executable, "-m", "holdfast.cli", "zap", "watch", broker.url, "--count", "2"]
    with subprocess.Popen(command, stdout=theirs, env=environment) as watching:
        os.close(theirs)
        shown = os.read(ours, 100_000)
        while b" 10  " not in shown:
            shown += os.read(ours, 100_000)
        assert (
            run("zap", "publish", broker.url, "--boxes", "2000", "--seed", "4", "--speed", "max", "--count", "3000")
            == 0
        )
        try:
            while more := os.read(ours, 100_000):
                shown += more
        except OSError:  # how Linux says that the other side is closed
            pass
    os.close(ours)
    assert watching.returncode == 0
    first, second = shown.decode().split("\x1b[11F\x1b[J")
    assert [page.count("\r\n") for page in (first, second)] == [11, 11]


def test_where_there_is_no_terminal_nothing_is_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    screen = InPlace()
    screen.show(["one"])
    screen.show(["two"], above=["said"])
    assert capsys.readouterr().out == "one\nsaid\ntwo\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["publish", "--publishers", "25"], "25 publishers: there may be 1 to 24"),
        (["publish", "--boxes", "180001"], "at most 180,000"),
        (["publish", "--first-box", "6553600"], "numbers from 0 to 6,553,599"),
        (["publish", "--speed", "0"], "'0' is no speed"),
        (["publish", "--rate", "0"], "has to be more than 0"),
        (["publish", "--speed", "2", "--rate", "5"], "not allowed with argument"),
        (["publish", "nowhere.toml"], "nowhere.toml: No such file"),
        (["ask", "everything"], "invalid choice"),
    ],
)
def test_options_that_do_not_fit_are_explained(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = run("zap", *arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    assert code == 2
    assert problem in capsys.readouterr().err


def test_a_broker_without_the_application_is_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with BrokerProcess(tmp_path) as none:
        for verb in (["watch", none.url], ["ask", "top", none.url]):
            assert run("zap", *verb) == 2
            assert "hosts no application" in capsys.readouterr().err


def test_an_interrupted_publish_says_what_was_acknowledged(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    def lines() -> int:
        return int(json.loads(said(capsys, "ask", "top", broker.url, "--json"))["lines"])

    before = lines()
    command = [
        sys.executable,
        "-m",
        "holdfast.cli",
        "zap",
        "publish",
        broker.url,
        "--boxes",
        "2000",
        "--duration",
        "1h",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as publishing:
        try:
            while lines() == before:
                assert publishing.poll() is None
            publishing.send_signal(signal.SIGINT)
            shown, _ = publishing.communicate(timeout=60)
        finally:
            publishing.kill()  # or a failure would be waited for, for an hour
    assert publishing.returncode == INTERRUPTED
    assert re.match(r"\d+ publications with [\d,]+ lines acknowledged", shown)


def test_status_shows_the_state_of_the_application_if_asked(
    broker: BrokerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = json.loads(said(capsys, "ask", "counts", broker.url, "--json"))["digest"]
    assert run("status", broker.url, "--application") == 0
    assert f"its state is {digest[:32]} after " in capsys.readouterr().out
    assert run("status", broker.url) == 0
    assert "its state" not in capsys.readouterr().out
