"""`publish`, `subscribe` and `read` as a newcomer types them, with a broker and without one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import read, subscribe
from tests.cli.test_main import run
from tests.runtime.broker_process import BrokerProcess, free_port

CLI = [sys.executable, "-m", "holdfast.cli"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("lines"), entry='data = "data"\n') as process:
        yield process


def command(
    broker: BrokerProcess, *arguments: str, given: bytes | None = b"", code: int = 0
) -> subprocess.CompletedProcess[bytes]:
    name, *rest = arguments
    done = subprocess.run([*CLI, name, "--url", broker.url, *rest], input=given, capture_output=True, timeout=60)
    assert (done.returncode, b"Traceback" in done.stderr) == (code, False), done.stderr.decode()
    return done


def event(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a publisher said of it."""
    return {name: line[name] for name in ("topic", "attributes", "payload", "lifetime_ms") if name in line}


def test_what_read_prints_is_published_again_and_is_the_same_but_for_its_id_and_position(broker: BrokerProcess) -> None:
    lines = (
        b'{"topic": "again", "attributes": {"n": 1, "x": 0.1, "s": "caf\xc3\xa9", "b": true}, "lifetime_ms": 60001}\n'
        b'{"topic": "again", "payload": "AP8=", "attributes": {"a name with spaces": ""}}\n'
    )
    command(broker, "publish", given=lines)
    first = command(broker, "read", "topic = 'again'").stdout
    assert [event(json.loads(line)) for line in first.splitlines()] == [json.loads(x) for x in lines.splitlines()]
    command(broker, "publish", given=first)
    both = [json.loads(line) for line in command(broker, "read", "topic = 'again'").stdout.splitlines()]
    assert [event(line) for line in both[2:]] == [event(line) for line in both[:2]]
    assert len({line["id"] for line in both}) == len({line["position"] for line in both}) == 4


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b'{"topic": "\xff"}', b"line 4: not in UTF-8: the byte 0xff at 12 (invalid start byte)"),
        (b'{"attributes": {"n": 3, "b": NaN}}', b"line 4: attribute 'b' is nan; only finite numbers can be compared"),
    ],
)
def test_a_bad_line_is_named_with_how_many_before_it_were_published(
    broker: BrokerProcess, bad: bytes, problem: bytes
) -> None:
    good = b'{"attributes": {"n": %d, "bad": "' + bad[:9].hex().encode() + b'"}}\n'
    done = command(broker, "publish", given=good % 1 + b"\n" + good % 2 + bad + b"\n" + good % 3, code=2)
    assert done.stderr == b"holdfast: " + problem + b"; the 2 events before it were published\n"
    found = command(broker, "read", f"bad = '{bad[:9].hex()}'").stdout.splitlines()
    assert [json.loads(line)["attributes"]["n"] for line in found] == [1, 2]


@pytest.mark.full
def test_publish_says_that_it_waits_and_goes_on_when_there_is_a_broker(tmp_path: Path) -> None:
    port = free_port()
    where = ["--url", f"holdfast://127.0.0.1:{port}"]
    with subprocess.Popen([*CLI, "publish", *where, "--timeout", "60"], stdin=-1, stderr=-1) as publisher:
        assert publisher.stdin is not None
        assert publisher.stderr is not None
        assert publisher.stderr.readline().startswith(f"waiting for a broker at {where[1]}: ".encode())
        with BrokerProcess(tmp_path, port) as broker:
            assert publisher.communicate(b'{"attributes": {"n": 1}}\n', timeout=60)[1] == b"1 published\n"
            broker.stop()


@pytest.mark.full
def test_publish_gives_up_in_time_and_says_how_much_was_acknowledged(tmp_path: Path) -> None:
    line = b'{"attributes": {"n": 1}}\n'
    with BrokerProcess(tmp_path) as broker:
        where = ["--url", broker.url]
        with (
            subprocess.Popen([*CLI, "subscribe", *where, "--count", "1"], stdout=-1, stderr=-1) as subscriber,
            subprocess.Popen([*CLI, "publish", *where, "--timeout", "0.5"], stdin=-1, stderr=-1) as publisher,
        ):
            assert subscriber.stderr is not None
            assert subscriber.stdout is not None
            assert publisher.stdin is not None
            assert publisher.stderr is not None
            while subscriber.stderr.readline() != b"subscribed\n":
                pass
            publisher.stdin.write(line)
            publisher.stdin.flush()
            assert subscriber.stdout.readline()
            assert subscriber.wait(60) == 0
            broker.kill()
            assert publisher.stderr.readline().startswith(f"waiting for a broker at {broker.url}: ".encode())
            _, said = publisher.communicate(line, timeout=60)
            assert f"holdfast: no broker at {broker.url} answered for 0.5 s".encode() in said
            assert b"; 1 of " in said
            assert publisher.returncode == 2


def test_without_a_broker_publish_gives_up_after_its_timeout(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"holdfast://127.0.0.1:{free_port()}"
    assert run("publish", "--url", url, "--timeout", "0.2", "--attributes", "{}") == 2
    assert capsys.readouterr().err.startswith(f"holdfast: no broker at {url} answered within 0.2 s: ")
    for wrong in ("0", "-1", "nan", "soon"):
        assert run("publish", "--timeout", wrong) == 2
        assert f"{wrong!r} is no number of seconds above 0" in capsys.readouterr().err


@pytest.mark.parametrize("module", [subscribe, read])
def test_a_text_that_is_no_filter_is_told_before_a_broker_is_looked_for(
    module: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "bus_at", None)  # a call of it would raise something else
    assert run(module.__name__.rpartition(".")[2], "price >") == 2
    assert capsys.readouterr().err == (
        "holdfast: the filter ends too early (line 1, column 8)\n"
        "  expected: an attribute, a literal, '(', NOT or a sign\n"
        "  price >\n"
        "         ^\n"
    )


@pytest.mark.full
def test_whoever_closes_the_output_or_interrupts_gets_no_traceback(broker: BrokerProcess) -> None:
    line = b'{"topic": "head", "attributes": {"n": 1}}\n'
    command(broker, "publish", given=line * 5000)
    reading = subprocess.Popen([*CLI, "read", "--url", broker.url, "topic = 'head'"], stdout=-1, stderr=-1)
    assert reading.stdout is not None
    reading.stdout.readline()
    reading.stdout.close()
    assert reading.stderr is not None
    with reading.stderr as stderr:
        assert stderr.read() == b""
    assert reading.wait(60) == 141
    with subprocess.Popen([*CLI, "publish", "--url", broker.url], stdin=-1, stderr=-1) as publisher:
        assert publisher.stdin is not None
        publisher.stdin.write(b'{"topic": "interrupted", "attributes": {"n": 1}}\n')
        publisher.stdin.flush()
        arrived = command(
            broker, "subscribe", "topic = 'interrupted'", "--name", "i", "--from", "earliest", "--count", "1"
        )
        assert b'"interrupted"' in arrived.stdout
        publisher.send_signal(signal.SIGINT)
        assert publisher.stderr is not None
        assert publisher.stderr.read() == b"interrupted: 1 of 1 events were acknowledged\n"
        assert publisher.wait(60) == 130


@pytest.mark.parametrize(("arguments", "said"), [(["publish"], b"0 published\n"), (["read", "topic = 'none'"], b"")])
def test_a_command_that_was_started_without_standard_streams_has_nothing_to_read_and_writes_to_nobody(
    broker: BrokerProcess, arguments: list[str], said: bytes
) -> None:
    program = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *CLI, *arguments, "--url", broker.url]
    done = subprocess.run(program, stderr=-1, timeout=60)
    assert (done.returncode, done.stderr) == (0, said)


@pytest.mark.parametrize("count", ["-1", "1.5", "many"])
def test_a_count_of_events_that_is_none_is_refused(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("subscribe", f"--count={count}") == 2
    assert f"argument --count: {count!r} is no whole number" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["²", "0", "-1", "9" * 5000, "yesterday"])
def test_a_place_that_is_none_is_refused(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("read", f"--start={place}") == 2
    assert "is no position and no time" in capsys.readouterr().err


@pytest.mark.full
@pytest.mark.parametrize("options", [[], ["--name", "n"]])
def test_an_interrupt_ends_a_subscriber_whose_broker_is_gone(tmp_path: Path, options: list[str]) -> None:
    with BrokerProcess(tmp_path, entry='data = "data"\n') as broker:
        arguments = [*CLI, "subscribe", "--url", broker.url, *options]
        with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=-1) as subscriber:
            assert subscriber.stderr is not None
            while subscriber.stderr.readline() != b"subscribed\n":
                pass
            broker.kill()
            assert subscriber.stderr.readline().startswith(b"disconnected: ")
            subscriber.send_signal(signal.SIGINT)
            try:
                assert subscriber.wait(30) == 130
            finally:
                subscriber.kill()


@pytest.mark.parametrize("name", ["", "n" * 129, "\udcff"])
def test_a_name_that_no_subscription_can_have_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("subscribe", f"--name={name}", "--url", "holdfast://127.0.0.1:1", "--timeout", "0.1") == 2
    assert "argument --name: a subscription's name has 1 to 128 bytes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["subscribe", "read"])
def test_a_filter_without_quotes_is_told_that_it_needs_them(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, "topic", "=", "stock") == 2
    assert "unrecognized arguments: = stock; a filter is one argument: put quotes around it" in capsys.readouterr().err
    assert run("publish", "stock") == 2
    assert "publish: unrecognized arguments: stock; events are read from standard input" in capsys.readouterr().err
