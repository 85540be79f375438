"""An application that a site names is imported, checked, and hosted: by `broker`, and by `sim`."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.broker.site import ApplicationEntry
from holdfast.cli.applications import application_of
from holdfast.cli.main import BAD_INPUT
from holdfast.errors import SiteError
from tests.cli.test_main import run
from tests.sessions.counting import Counting

SITE = """\
[[broker]]
id = "b1"
[application]
factory = "tests.sessions.counting:Counting"
[application.settings]
every = 3
"""


def lacks_methods() -> Any:
    return SimpleNamespace(topics=frozenset(), execute=print)


def has_wrong_topics() -> Any:
    made = Counting()
    made.topics = ["count"]  # type: ignore[assignment]
    return made


NO_FACTORY = 7


def test_each_broker_gets_one_of_its_own_and_other_processes_too() -> None:
    make = application_of(ApplicationEntry(factory="tests.sessions.counting:Counting", settings={"every": 3}), "x")
    assert make is not None
    assert make() is not make()
    again = pickle.loads(pickle.dumps(make))()
    assert isinstance(again, Counting)
    assert application_of(None, "x") is None


@pytest.mark.parametrize(
    ("factory", "settings", "problem"),
    [
        ("no.such.module:Name", {}, "can't be imported: ModuleNotFoundError: No module named 'no'"),
        ("tests.sessions.counting:Nothing", {}, "'Nothing' of factory 'tests.sessions.counting:Nothing' is not there"),
        ("tests.cli.test_applications:NO_FACTORY", {}, "is nothing that can be called"),
        ("tests.sessions.counting:Counting", {"size": 1}, "refuses its settings: TypeError: "),
        (
            "tests.cli.test_applications:lacks_methods",
            {},
            "gives no application: it has no observe, get_state, set_state",
        ),
        ("tests.cli.test_applications:has_wrong_topics", {}, "its topics are no frozenset of texts"),
    ],
)
def test_what_is_no_application_is_refused_by_name(factory: str, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(SiteError, match=r"^site\.toml: ") as refused:
        application_of(ApplicationEntry(factory=factory, settings=settings), "site.toml")
    assert problem in str(refused.value)


def test_a_broker_whose_application_is_missing_does_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site.toml"
    site.write_text(SITE.replace(":Counting", ":Nothing"))
    assert run("broker", str(site)) == BAD_INPUT
    assert "'Nothing' of factory" in capsys.readouterr().err


def test_a_site_with_an_application_is_simulated_and_its_failures_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, scenario = tmp_path / "site.toml", tmp_path / "scenario.json"
    site.write_text(SITE)
    assert run("sim", str(site), "--seeds", "1..4") == 0
    assert run("sim", str(site), "--replay", "3", "--write-scenario", str(scenario)) == 0
    shown = capsys.readouterr().out
    assert run("sim", "--replay", str(scenario)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == shown.splitlines()[-1]
    assert b"tests.sessions.counting:Counting" in scenario.read_bytes()
    trace = tmp_path / "trace.jsonl"
    assert run("sim", "--replay", str(scenario), "--trace", str(trace)) == 0
    assert '"derived":true' in trace.read_text()
