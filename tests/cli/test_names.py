"""`holdfast names`: who keeps events under which name, and letting them go; on real brokers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import holdfast
from experiments.broker_network import BrokerNetwork
from holdfast.cli.main import main
from tests.runtime.broker_process import BrokerProcess, free_port


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("names")
    with BrokerProcess(folder, entry=f'data = "{folder}/b1"\n', log="warning") as process:
        yield process


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`holdfast names …`: its exit code, and what it wrote."""

    def command(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["names", *arguments])
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


def test_names_are_listed_forgotten_and_taken_away_from_their_readers(broker: BrokerProcess, run: Run) -> None:
    assert run("list", broker.url) == (0, "no named subscriptions\n", "")
    assert json.loads(run("list", broker.url, "--json")[1]) == {"names": []}
    code, shown, problem = run("forget", "risk", broker.url)
    assert (code, shown) == (1, "")
    assert "there is no named subscription 'risk' at b1: it has none" in problem

    with holdfast.blocking.connect(broker.url, name="trader") as bus:
        with bus.subscribe("n > 2", name="audit") as left:
            bus.publish_many([{"n": number} for number in range(10)])
            left.ack(left.next())
        with bus.subscribe("", name="risk", from_="earliest") as events:
            code, shown, _ = run("list", broker.url)
            assert code == 0
            heading, *rows = shown.splitlines()
            assert heading.split()[:4] == ["name", "owner", "acknowledged", "behind"]
            assert [row.split()[:4] for row in rows] == [["risk", "trader", "0", "10"], ["audit", "-", "4", "6"]]
            risk, audit = json.loads(run("list", "--url", broker.url, "--json")[1])["names"]
            assert (risk["broker"], risk["name"], risk["owner"], risk["connected"]) == ("b1", "risk", "trader", True)
            assert (audit["owner"], audit["acknowledged"], audit["behind_events"]) == ("", 4, 6)
            assert (audit["filter"], audit["lost_events"]) == ("n > 2", 0)
            assert 0 < audit["behind_bytes"] < risk["behind_bytes"]
            assert 0 <= audit["unused_s"] <= audit["age_s"] < 600

            code, shown, problem = run("forget", "risk", broker.url)
            assert (code, shown) == (1, "")
            assert "trader reads 'risk' at b1 right now" in problem
            assert "--force" in problem
            events.next()  # nothing happened to it
            assert run("forget", "--url", broker.url, "audit") == (
                0,
                "forgotten: 'audit' at b1, 6 events behind\n",
                "",
            )
            code, shown, _ = run("forget", "risk", broker.url, "--force")
            assert (code, shown) == (0, "forgotten: 'risk' at b1, 10 events behind; trader, who read it, is told\n")
            with pytest.raises(holdfast.Superseded, match="an operator has forgotten the named subscription"):
                list(events)
    assert run("list", broker.url)[1] == "no named subscriptions\n"


def test_a_misspelt_name_brings_those_that_look_alike(broker: BrokerProcess, run: Run) -> None:
    with holdfast.blocking.connect(broker.url) as bus:
        for name in ("billing", "it's 'quoted'\n"):
            with bus.subscribe("", name=name):
                pass
        problem = run("forget", "biling", broker.url)[2]
        assert "there is no named subscription 'biling' at b1; did you mean 'billing'?" in problem
        assert r"it's 'quoted'\n" in run("list", broker.url)[1], "a name may not tear the table apart"
        assert run("forget", "it's 'quoted'\n", broker.url)[0] == 0
        assert run("forget", "billing", broker.url)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("list", "nowhere.toml"), "nowhere.toml"),
        (("list", "holdfast://127.0.0.1:1", "--broker", "b1"), "--broker is of a site file"),
        (("list", "site.toml", "--url", "holdfast://127.0.0.1:1"), "say where once"),
        (("forget", ""), "a name has 1 to 128 bytes"),
        (("forget", "x" * 129), "a name has 1 to 128 bytes"),
    ],
)
def test_wrong_usage_is_said_before_anyone_is_asked(
    arguments: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["names", *arguments]) == 2
    assert problem in capsys.readouterr().err


def test_a_broker_that_does_not_answer_or_keeps_nothing_is_named(tmp_path: Path, run: Run) -> None:
    code, shown, problem = run("list", f"holdfast://127.0.0.1:{free_port()}")
    assert (code, shown) == (1, "")
    assert "refused" in problem
    with BrokerProcess(tmp_path) as process:
        code, shown, problem = run("list", process.url)
        assert (code, "b1 keeps no log, and so no names" in problem) == (0, True)
        assert "keeps no log" in run("forget", "risk", process.url)[2]


def test_brokers_of_a_network_have_their_own_names(tmp_path: Path, run: Run) -> None:
    with BrokerNetwork(tmp_path, (("b1", "b2"),), "buffered") as network:
        asyncio.run(network.begin())
        site = str(network.site)
        for broker, names in (("b1", ("risk", "audit")), ("b2", ("risk",))):
            with holdfast.blocking.connect(network.url(broker)) as bus:
                for name in names:
                    with bus.subscribe("n > 0", name=name):
                        pass
        rows = json.loads(run("list", site, "--json")[1])["names"]
        assert sorted((row["broker"], row["name"]) for row in rows) == [("b1", "audit"), ("b1", "risk"), ("b2", "risk")]
        assert run("list", "--site", site)[1].startswith("broker  name ")
        assert run("list", site, "--broker", "b2")[1].count("risk") == 1
        code, _, problem = run("forget", "risk", site)
        assert (code, problem) == (1, "b1, b2 have a named subscription 'risk' each: say --broker\n")
        assert run("forget", "risk", site, "--broker", "b2")[:2] == (0, "forgotten: 'risk' at b2, 0 events behind\n")
        assert run("forget", "audit", "--site", site)[:2] == (0, "forgotten: 'audit' at b1, 0 events behind\n")
        network.stop("b2")
        code, shown, problem = run("list", site)
        assert (code, "risk" in shown, network.addresses["b2"] in problem) == (1, True, True)
