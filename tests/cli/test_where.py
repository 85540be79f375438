"""Commands find the brokers of a site file, or the one of them that is asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.main import UsageError
from holdfast.cli.where import addresses_at, url_of
from holdfast.errors import SiteError
from tests.cli.test_main import run
from tests.runtime.broker_process import free_port

IDS = ("b1", "b2", "b3")


def write_chain(path: Path) -> dict[str, int]:
    """A site of three brokers in a row, and the ports of their clients."""
    ports = {id: free_port() for id in IDS}
    tables = [
        f'[[broker]]\nid = "{id}"\naddress = "127.0.0.1:{port}"\npeer_address = "127.0.0.1:{free_port()}"\n'
        f'data = "var/{id}"\n'
        for id, port in ports.items()
    ]
    path.write_text("".join(tables) + '[topology]\nkind = "chain"\n')
    return ports


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, int]]]:
    """The site's file and ports, served by `holdfast up`."""
    path = tmp_path_factory.mktemp("network") / "site.toml"
    ports = write_chain(path)
    command = [sys.executable, "-m", "holdfast.cli", "up", str(path), "--log-level", "warning"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            waiting = [f"broker {id} serves holdfast://127.0.0.1:{port}\n" for id, port in ports.items()]
            for line in process.stdout:
                waiting = [other for other in waiting if other != line]
                if not waiting:
                    break
            yield str(path), ports
        finally:
            process.terminate()


def test_a_networks_client_is_at_home_at_one_broker_the_first_or_the_one_that_is_asked_for(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    ports = write_chain(site)
    assert url_of(str(site)) == f"holdfast://127.0.0.1:{ports['b1']}"
    assert url_of(str(site), "b2") == f"holdfast://127.0.0.1:{ports['b2']}"
    assert addresses_at(str(site)) == [(id, f"127.0.0.1:{port}") for id, port in ports.items()]
    assert addresses_at(str(site), "b3") == [("b3", f"127.0.0.1:{ports['b3']}")]


def test_a_url_is_taken_as_it_is_and_names_no_broker() -> None:
    assert url_of("holdfast://h:1,h:2") == "holdfast://h:1,h:2"
    assert addresses_at("holdfast://h:1,h:2") == [("", "h:1"), ("", "h:2")]
    for refused in (url_of, addresses_at):
        with pytest.raises(UsageError, match="--broker is of a site file, and holdfast://h:1 is none"):
            refused("holdfast://h:1", "b1")


def test_an_id_that_no_broker_has_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    write_chain(site)
    with pytest.raises(SiteError) as refused:
        url_of(str(site), "b9")
    assert str(refused.value) == f"{site}: there is no broker 'b9'; there is b1, b2, b3"


@pytest.mark.parametrize("command", ["publish", "subscribe", "read", "bench"])
def test_every_command_of_clients_explains_a_wrong_choice(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site.toml"
    write_chain(site)
    assert run(command, "--site", str(site), "--broker", "b9") == 2
    assert "there is no broker 'b9'; there is b1, b2, b3" in capsys.readouterr().err
    assert run(command, "--broker", "b1") == 2
    assert "--broker is of a site file: say --site too" in capsys.readouterr().err
    assert run(command, "--url", "holdfast://127.0.0.1:1", "--broker", "b1") == 2
    assert "--broker is of a site file: say --site too" in capsys.readouterr().err
    assert run(command, "--url", "holdfast://127.0.0.1:1", "--site", str(site)) == 2
    assert "not allowed with argument --url" in capsys.readouterr().err
    assert run(command, "--site", str(tmp_path / "none.toml")) == 2
    assert "none.toml: No such file" in capsys.readouterr().err


def test_status_explains_a_wrong_choice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "site.toml"
    write_chain(site)
    assert run("status", str(site), "--broker", "b9") == 2
    assert "there is no broker 'b9'; there is b1, b2, b3" in capsys.readouterr().err
    assert run("status", "holdfast://127.0.0.1:1", "--broker", "b1") == 2
    assert "--broker is of a site file, and holdfast://127.0.0.1:1 is none" in capsys.readouterr().err


def test_an_event_is_published_at_the_broker_that_was_chosen(
    network: tuple[str, dict[str, int]], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Its log has the event; that of a broker where nobody asked for it has not."""
    site, _ = network
    assert run("publish", "--site", site, "--broker", "b2", "--topic", "t", "--attributes", '{"n": 7}') == 0
    capfdbinary.readouterr()
    read = {}
    for broker in IDS:
        assert run("read", "--site", site, "--broker", broker) == 0
        read[broker] = [json.loads(line)["attributes"] for line in capfdbinary.readouterr().out.splitlines()]
    assert read == {"b1": [], "b2": [{"n": 7}], "b3": []}


def test_status_shows_all_brokers_or_the_one_that_was_chosen(
    network: tuple[str, dict[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    site, ports = network
    assert run("status", site, "--json") == 0
    assert [row["broker"] for row in json.loads(capsys.readouterr().out)["brokers"]] == list(IDS)
    assert run("status", site, "--broker", "b2", "--json") == 0
    (row,) = json.loads(capsys.readouterr().out)["brokers"]
    assert (row["broker"], row["address"], row["state"]) == ("b2", f"127.0.0.1:{ports['b2']}", "up")


def test_bench_measures_the_broker_that_was_chosen(
    network: tuple[str, dict[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    site, _ = network
    assert run("status", site, "--broker", "b3", "--json") == 0
    before = json.loads(capsys.readouterr().out)["brokers"][0]["measures"]["events_accepted_total"]
    options = ("--events", "500", "--rate", "200", "--json")
    assert run("bench", "--site", site, "--broker", "b3", *options) == 0
    assert json.loads(capsys.readouterr().out)["events"] == 500
    assert run("status", site, "--broker", "b3", "--json") == 0
    after = json.loads(capsys.readouterr().out)["brokers"][0]["measures"]["events_accepted_total"]
    assert after - before >= 500


def test_status_says_of_an_empty_log_that_it_has_no_events(
    network: tuple[str, dict[str, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("status", network[0], "--broker", "b1") == 0
    assert "b1: log: no events; 0 named subscriptions" in capsys.readouterr().out
