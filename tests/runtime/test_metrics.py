"""`/metrics`, `/healthz` and what operators see of a real broker process."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.broker.measures import MEASURES, MEASURES_BY_REASON
from holdfast.kernel.links import Role
from holdfast.schemes.tree.measures import MEASURES as NETWORK_MEASURES
from holdfast.wire.handshake import MAGIC, Reason
from tests.runtime.broker_process import BrokerProcess, free_port

REFUSAL = re.compile(r'^holdfast_refusals_total\{broker="b1",reason="([a-z]+)"\} ([0-9]+)$', re.MULTILINE)
SAMPLE = re.compile(r'holdfast_[a-z_]+(\{broker="b1"(,reason="[a-z]+")?\})? [0-9.]+')


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, metrics_port: int) -> Iterator[BrokerProcess]:
    options = ("--metrics", f"127.0.0.1:{metrics_port}")
    with BrokerProcess(tmp_path_factory.mktemp("site"), options=options) as process:
        yield process


def get(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return str(answer.read().decode())


def raw(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def samples(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not SAMPLE.fullmatch(line)] == []
    rows = (line.rsplit(" ", 1) for line in lines)
    return {name.partition("{")[0].removeprefix("holdfast_"): float(value) for name, value in rows}


def test_everything_that_is_measured_is_shown_with_its_kind_and_meaning(
    broker: BrokerProcess, metrics_port: int
) -> None:
    text = get(metrics_port, "/metrics")
    shown = samples(text)
    elsewhere = ("log_", "named_", "staged_", "replica_", "application_")
    always = {name for name in MEASURES if not name.startswith(elsewhere)}
    assert not set(NETWORK_MEASURES) & set(shown)  # a broker alone is no network
    assert always | set(MEASURES_BY_REASON) <= set(shown)
    for name in shown:
        kind = "counter" if name.endswith("_total") else "gauge"
        assert f"# TYPE holdfast_{name} {kind}\n" in text
        assert f"# HELP holdfast_{name} " in text


def test_measures_follow_what_happens(broker: BrokerProcess, metrics_port: int) -> None:
    before = samples(get(metrics_port, "/metrics"))
    with holdfast.blocking.connect(broker.url) as bus, bus.subscribe("n > 1") as events:
        bus.publish_many({"n": n} for n in range(5))
        for _ in range(3):
            events.next(timeout_s=10)
        now = samples(get(metrics_port, "/metrics"))
    assert now["events_accepted_total"] - before["events_accepted_total"] == 5
    assert now["events_sent_total"] - before["events_sent_total"] == 3
    assert (now["subscriptions"], now["clients_connected"], now["connections"]) == (1, 1, 1)
    assert now["bytes_read_total"] > before["bytes_read_total"]
    assert now["bytes_written_total"] > before["bytes_written_total"]


def test_a_refused_connection_is_counted(broker: BrokerProcess, metrics_port: int) -> None:
    before = samples(get(metrics_port, "/metrics"))["connections_refused_total"]
    assert b"this is no Holdfast handshake" in raw(broker.port, b"GET / HTTP/1.1\r\n\r\n")
    assert samples(get(metrics_port, "/metrics"))["connections_refused_total"] == before + 1


def refusals(text: str) -> dict[str, int]:
    return {reason: int(count) for reason, count in REFUSAL.findall(text)}


def test_refusals_are_counted_by_reason(broker: BrokerProcess, metrics_port: int) -> None:
    before = refusals(get(metrics_port, "/metrics"))
    assert set(before) == {reason.value for reason in Reason} - {"closing"}
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"nonsense", MAGIC[Role.BROKER]):
        raw(broker.port, said)
    text = get(metrics_port, "/metrics")
    after = refusals(text)
    grown = {reason: count - before[reason] for reason, count in after.items() if count != before[reason]}
    assert grown == {"protocol": 2, "role": 1}
    assert samples(text)["connections_refused_total"] == sum(after.values())


def test_a_living_broker_is_healthy(broker: BrokerProcess, metrics_port: int) -> None:
    assert get(metrics_port, "/healthz") == "ok\n"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /other HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", b"405"),
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET " + b"x" * 5000, b"400"),
        (b"HEAD /healthz HTTP/1.0\r\n\r\n", b"200"),
    ],
    ids=["another path", "another method", "no request", "too long", "head"],
)
def test_other_requests_are_answered_and_the_connection_is_closed(
    broker: BrokerProcess, metrics_port: int, request_bytes: bytes, status: bytes
) -> None:
    answer = raw(metrics_port, request_bytes)
    assert answer.split(b" ")[1] == status
    if status == b"200":
        assert answer.endswith(b"\r\n\r\n")


def test_without_being_asked_for_there_is_no_such_port(tmp_path: Path, broker: BrokerProcess) -> None:
    with BrokerProcess(tmp_path) as quiet:
        assert len(listening(quiet.process.pid)) == 1
    assert len(listening(broker.process.pid)) == 2


def listening(process: int) -> list[str]:
    """The sockets that a process listens on (state 0A in /proc)."""
    links = {os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir()}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in links]


def holdfast_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_status_shows_brokers_links_rates_and_backlog(broker: BrokerProcess) -> None:
    with holdfast.blocking.connect(broker.url, name="watcher") as bus, bus.subscribe("n > 1"):
        shown = holdfast_command("status", broker.url)
        told = holdfast_command("status", broker.url, "--json")
    assert (shown.returncode, told.returncode) == (0, 0)
    assert "\x1b" not in shown.stdout
    heading, row, *_ = shown.stdout.splitlines()
    assert heading.split()[:3] == ["broker", "address", "state"]
    assert row.split()[:3] == ["b1", f"127.0.0.1:{broker.port}", "up"]
    assert "client:watcher" in shown.stdout
    (one,) = json.loads(told.stdout)["brokers"]
    assert (one["state"], one["measures"]["subscriptions"], one["scheme"]) == ("up", 1, "tree")
    fates = {f"events_{fate}" for fate in ("on_time", "expired", "dropped")}
    assert set(one["rates"]) == {"events_accepted", "events_sent", "events_repeated", *fates}
    assert "client:watcher" in {link["peer"] for link in one["links"]}


def test_status_shows_how_much_came_on_time_and_for_whom_it_did_not(tmp_path: Path) -> None:
    """D1-B10, live: here half of what is published has expired when it comes."""
    with (
        BrokerProcess(tmp_path) as process,
        holdfast.blocking.connect(process.url, name="clock") as bus,
        bus.subscribe("n > 0") as lucky,
        bus.subscribe("n > 1") as unlucky,
    ):
        bus.publish({"n": 1})
        bus.publish({"n": 2}, lifetime=1e-9)  # over before anyone can have it
        bus.publish({"n": 3})
        assert [lucky.next().attributes["n"] for _ in range(2)] == [1, 3]
        assert unlucky.next().attributes["n"] == 3
        for _ in range(100):  # what they received is confirmed within moments
            told = holdfast_command("status", process.url, "--json", "--subscriptions", "5")
            (one,) = json.loads(told.stdout)["brokers"]
            if one["measures"]["events_on_time_total"] == 3:
                break
        shown = holdfast_command("status", process.url, "--subscriptions", "5")
    assert {name: one["measures"][f"events_{name}_total"] for name in ("on_time", "expired", "dropped")} == {
        "on_time": 3,
        "expired": 2,
        "dropped": 0,
    }
    assert one["measures"]["on_time_of_arrived_per_mille"] == 600
    fates = [(s["client"], s["filter"], s["on_time"], s["expired"]) for s in one["subscriptions"]]
    assert fates == [("clock", "n > 1", 1, 1), ("clock", "n > 0", 2, 1)], "the least on time first"
    assert "60.00%" in shown.stdout.splitlines()[1]
    assert "50.00%" in shown.stdout


def test_status_of_a_broker_that_is_not_there_fails(tmp_path: Path) -> None:
    port = free_port()
    site = tmp_path / "site.toml"
    site.write_text(f'[[broker]]\nid = "b9"\naddress = "127.0.0.1:{port}"\n')
    shown = holdfast_command("status", str(site))
    assert shown.returncode == 1
    assert "unreachable" in shown.stdout
    assert "b9" in shown.stdout


def test_status_says_if_another_broker_answers(broker: BrokerProcess, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(f'[[broker]]\nid = "b9"\naddress = "127.0.0.1:{broker.port}"\n')
    shown = holdfast_command("status", str(site))
    assert shown.returncode == 1
    assert f"b1 answers at 127.0.0.1:{broker.port}, not b9" in shown.stdout


def test_bench_measures_a_running_broker(broker: BrokerProcess) -> None:
    told = holdfast_command("bench", "--url", broker.url, "--events", "2000", "--rate", "200", "--json")
    assert told.returncode == 0, told.stderr
    result = json.loads(told.stdout)
    assert (result["events"], result["subscribers"]) == (2000, 1)
    assert min(result["published_per_s"], result["received_per_s"], result["latency_us_p50"]) > 0


def test_bench_says_if_there_is_no_broker() -> None:
    told = holdfast_command("bench", "--url", "holdfast://nowhere", "--events", "0")
    assert (told.returncode, "0 is less than 1" in told.stderr) == (2, True)
