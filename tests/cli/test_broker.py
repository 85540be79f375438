"""`holdfast init`, `up`, `broker`, `publish` and `subscribe`, as a user meets them."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import __version__
from holdfast.broker.site import site_from_toml
from holdfast.errors import HandshakeRefused
from holdfast.kernel.links import Role
from holdfast.kernel.settings import written
from holdfast.protocols.client_catalogue import PROTOCOL_VERSIONS
from holdfast.schemes.paxos.settings import Protocol
from holdfast.wire.handshake import Dialling
from holdfast.wire.limits import WireLimits
from tests.cli.test_main import run
from tests.runtime.broker_process import BrokerProcess, free_port


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site")) as process:
        yield process


def holdfast(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast.cli", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=30, check=False)


def test_a_site_file_to_start_from_is_a_site(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert run("init", str(path)) == 0
    site = site_from_toml(path.read_text(), "mine.toml")
    assert (site.name, [entry.id for entry in site.brokers]) == ("my-site", ["b1"])
    assert run("init", str(path)) == 2
    assert "this file exists already" in capsys.readouterr().err
    assert run("sim", str(path), "--seeds", "1..3") == 0
    assert run("init", "-") == 0
    assert path.read_text().replace('"var/mine/b1"     ', '"var/b1"          ') in capsys.readouterr().out


@pytest.mark.parametrize("protocol", Protocol)
def test_a_group_to_start_from_has_the_protocol_that_is_wanted(
    protocol: Protocol, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    assert run("init", str(path), "--protocol", protocol.value) == 0
    site = site_from_toml(path.read_text(), "mine.toml")
    assert (site.scheme.kind, written(site.settings)["protocol"], len(site.brokers)) == ("paxos", protocol.value, 3)
    assert run("init", "-", "--scheme", "tree", "--protocol", protocol.value) == 2
    assert "--protocol is of another scheme: say --scheme paxos" in capsys.readouterr().err


def test_events_go_through_the_shell(broker: BrokerProcess) -> None:
    command = [sys.executable, "-m", "holdfast.cli", "subscribe", "price > 10", "--url", broker.url, "--count", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as subscriber:
        assert subscriber.stderr is not None
        assert subscriber.stderr.readline().startswith("connected: b1 at ")
        assert subscriber.stderr.readline() == "subscribed\n"
        one = holdfast(
            "publish", "--url", broker.url, "--topic", "stock", "--attributes", '{"price": 11.5, "ok": true}'
        )
        assert (one.returncode, one.stderr) == (0, "1 published\n")
        lines = '{"attributes": {"price": 5}}\n\n{"topic": "t", "attributes": {"price": 12}, "payload": "aGk="}\n'
        many = holdfast("publish", "--url", broker.url, given=lines + '{"attributes": {"price": 13}}\n')
        assert (many.returncode, many.stderr) == (0, "3 published\n")
        out, _ = subscriber.communicate(timeout=20)
        assert subscriber.returncode == 0
    events = [json.loads(line) for line in out.splitlines()]
    assert [(e.get("topic"), e["attributes"]["price"], e.get("payload")) for e in events] == [
        ("stock", 11.5, None),
        ("t", 12, "aGk="),
        (None, 13, None),
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("no json\n", "line 1: no JSON: Expecting value (column 1)"),
        ('{"attributes": {"a": [1]}}\n', "line 1: attribute 'a' is an array, not a number, a string or a boolean"),
        ('{"attributes": {}}\n{"colour": 1}\n', "line 2: there is no field 'colour' of events"),
    ],
)
def test_a_line_that_is_no_event_is_named(broker: BrokerProcess, given: str, problem: str) -> None:
    result = holdfast("publish", "--url", broker.url, given=given)
    assert result.returncode == 2
    assert result.stderr.startswith(f"holdfast: {problem}")
    assert "Traceback" not in result.stderr


def test_mistakes_are_explained(broker: BrokerProcess, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = holdfast("subscribe", "price >", "--url", broker.url)
    assert (bad.returncode, "the filter ends too early" in bad.stderr) == (2, True)
    assert run("publish", "--attributes", "[1]") == 2
    assert "--attributes: attributes are an array, and have to be an object" in capsys.readouterr().err
    assert run("subscribe", "--url", "tcp://x") == 2
    assert "'tcp://x' does not begin with holdfast://" in capsys.readouterr().err
    site = tmp_path / "site.toml"
    for text, problem in (
        ('[[broker]]\nid = "b1"\naddress = "0.0.0.0:7411"\n', "would listen on 0.0.0.0:7411 without TLS"),
    ):
        site.write_text(text)
        assert run("up", str(site)) == 2
        assert problem in capsys.readouterr().err
    site.write_bytes(b'name = "\xff"\n')
    for command in ("up", "sim"):
        assert run(command, str(site)) == 2
        assert "this is no UTF-8 text: invalid start byte at byte 8" in capsys.readouterr().err
    site.write_text('[[broker]]\nid = "b1"\n')
    assert run("broker", str(site), "--id", "b9") == 2
    assert "there is no broker 'b9'; there is b1" in capsys.readouterr().err


def test_an_address_that_is_taken_is_named(broker: BrokerProcess, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(f'[[broker]]\nid = "b7"\naddress = "127.0.0.1:{broker.port}"\n')
    result = holdfast("up", str(site), "--log-level", "warning")
    assert result.returncode == 2
    assert result.stderr == (
        f"holdfast: broker 'b7' can't listen on 127.0.0.1:{broker.port}: another process listens there; stop it, or"
        " take another address\n"
    )
    free = f"127.0.0.1:{free_port()}"
    site.write_text(f'[[broker]]\nid = "b7"\naddress = "{free}"\n')
    result = holdfast("up", str(site), "--log-level", "warning", "--metrics", f"127.0.0.1:{broker.port}")
    assert result.stderr.startswith(f"holdfast: /metrics can't listen on 127.0.0.1:{broker.port}: another process")


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        (
            "192.0.2.1:7411",
            "192.0.2.1:7411: this machine has no such address; listen on one that it has, or on 0.0.0.0",
        ),
        ("no-such-host.invalid:7411", "no-such-host.invalid:7411: the name is not known here"),
    ],
)
def test_an_address_that_is_not_this_machines_is_named(address: str, problem: str, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(f'[[broker]]\nid = "b7"\naddress = "{address}"\n[security]\nplaintext = "I accept"\n')
    result = holdfast("up", str(site), "--log-level", "quiet")
    assert result.returncode == 2
    assert result.stderr.startswith(f"holdfast: broker 'b7' can't listen on {problem}")
    assert result.stderr.count("\n") == 1


def test_a_public_address_is_served_if_that_is_accepted_with_a_warning_at_every_start(tmp_path: Path) -> None:
    port, site = free_port(), tmp_path / "site.toml"
    entry = f'[[broker]]\nid = "b1"\naddress = "0.0.0.0:{port}"\n'
    site.write_text(entry + '[security]\nplaintext = "I accept"\n')
    command = [sys.executable, "-m", "holdfast.cli", "up", str(site), "--log", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == f"broker b1 serves holdfast://127.0.0.1:{port}, and listens on 0.0.0.0:{port}\n"
        process.terminate()
        _, errors = process.communicate(timeout=20)
        assert process.returncode == 0
    assert "serves" not in errors  # it was said, on standard output
    rows = [json.loads(line) for line in errors.splitlines()]
    assert set(rows[0]) == {"time", "level", "logger", "message"}
    warnings = [row["message"] for row in rows if row["level"] == "warning"]
    assert warnings == [
        f"broker 'b1' listens on 0.0.0.0:{port} WITHOUT TLS: anyone who reaches it can read and publish"
    ]


def test_a_metrics_address_is_checked_like_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "site.toml"
    site.write_text('[[broker]]\nid = "b1"\n')
    assert run("up", str(site), "--metrics", "9411") == 2
    assert "--metrics is '9411'; write host:port" in capsys.readouterr().err
    assert run("up", str(site), "--metrics", "0.0.0.0:9411") == 2
    assert "/metrics would listen on 0.0.0.0:9411 without TLS" in capsys.readouterr().err


def test_clients_and_brokers_have_listeners_of_their_own(tmp_path: Path) -> None:
    """Hostile input 11: neither is let in by the other's door."""
    peers = free_port()
    with BrokerProcess(tmp_path, entry=f'peer_address = "127.0.0.1:{peers}"\n') as process:
        limits = WireLimits()
        for role, port, served in (
            (Role.CLIENT, peers, "brokers"),
            (Role.OPERATOR, peers, "brokers"),
            (Role.BROKER, process.port, "clients and operators"),
        ):
            dialling = Dialling(role, "x", 1, limits, PROTOCOL_VERSIONS)
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(dialling.opening)
                answer = b"".join(iter(lambda connection=connection: connection.recv(4096), b""))  # type: ignore[misc]
            with pytest.raises(HandshakeRefused, match=f"this listener is for {served}, not for {role.value}s"):
                dialling.feed(answer)
        dialling = Dialling(Role.BROKER, "b2", 1, limits, PROTOCOL_VERSIONS)
        with socket.create_connection(("127.0.0.1", peers), timeout=10) as connection:
            connection.sendall(dialling.opening)
            assert dialling.feed(connection.recv(4096))[0] is not None


def test_version_says_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("version", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["holdfast"] == __version__
    assert set(facts) == {"holdfast", "protocol", "python", "index", "events", "loop"}
    assert run("version") == 0
    assert capsys.readouterr().out.startswith(f"holdfast   {__version__}\n")


def test_a_broker_that_is_told_to_stop_says_so(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, free_port()) as process:
        assert process.stop() == 0


def test_a_broker_ignores_a_hangup_and_says_so(tmp_path: Path) -> None:
    """Whoever sends SIGHUP wants something read again, and must not lose the broker by it."""
    with BrokerProcess(tmp_path, log="info") as process:
        process.process.send_signal(signal.SIGHUP)
        said = process.logged("SIGHUP")
        assert said.endswith("SIGHUP: nothing is read again while a broker runs; restart it for a changed site file")
        asked = holdfast("publish", "--url", process.url, "--attributes", '{"n": 1}')
        assert (asked.returncode, asked.stderr) == (0, "1 published\n")
        assert process.stop() == 0


def test_a_broker_whose_terminal_was_closed_stops(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(f'[[broker]]\nid = "b1"\naddress = "127.0.0.1:{free_port()}"\n')
    terminal, its = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "holdfast.cli", "up", str(site)], stdout=its, stderr=its) as process:
        os.close(its)
        said = b""
        while not said.endswith(b"keeps nothing over a restart\r\n"):
            said += os.read(terminal, 4096)
        os.close(terminal)
        process.send_signal(signal.SIGHUP)
        try:
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
