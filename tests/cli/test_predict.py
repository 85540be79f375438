"""`holdfast predict`, as people call it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from holdfast.cli import predict
from holdfast.cli.main import main

SITE = """
[scheme]
kind = "tree"
reliability = "buffered"
[topology]
kind = "chain"
brokers = 3
data = "var"
[[class]]
name = "low-end"
availability = 0.9
period = "7d"
[[class]]
name = "wan"
availability = 0.99
period = "60000s"
[prediction]
brokers = "low-end"
links = "wan"
[[publisher]]
home = "b1"
topic = "t"
[[subscriber]]
home = "b2"
topic = "t"
count = 20
[[subscriber]]
home = "b3"
topic = "t"
name = "desk"
[[subscriber]]
home = "b3"
topic = "u"
"""


@pytest.fixture
def site(tmp_path: Path) -> str:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    return str(path)


def test_the_weakest_come_first_with_what_would_help(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    """D1-D15: the golden values, in a table."""
    assert main(["predict", site]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "how likely an event is delivered within 60 min; weakest first, by buffered"
    assert lines[2:6] == [
        "home topic subscribers none periodic buffered bypass bypass+buffered",
        "desk at b3 t 1 0.000000 0.714493 0.738250 0.714493 0.738250",
        "b2 t 20 0.000000 0.801900 0.815139 0.801900 0.815139",
        "b3 u 1 - - - - -",
    ]
    assert "what would help most at buffered" in lines[7]
    assert [line.split()[0] for line in lines[10:12]] == ["b1", "b2"]


def test_as_json_and_as_csv(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", site, "--json", "--level", "periodic", "--lifetime", "10min"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["lifetime_s"] == 600
    assert [one["reliability"] for one in document["subscribers"]] == [
        {"periodic": pytest.approx(0.7144929)},
        {"periodic": pytest.approx(0.8019)},
        {"periodic": None},
    ]
    assert document["helps"]["level"] == "periodic"
    assert document["helps"]["parts"][0]["gain"] > 0
    assert main(["predict", site, "--csv", "--level", "buffered", "--level", "bypass"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["home"], row["level"]) for row in rows][:2] == [("b3", "buffered"), ("b3", "bypass")]
    assert float(rows[0]["reliability"]) == pytest.approx(0.7382496220, abs=1e-9)
    assert rows[-1]["reliability"] == ""


@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_picture(site: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"network.{form}"
    assert main(["predict", site, "--plot", str(path)]) == 0
    assert f"drawn: {path}" in capsys.readouterr().out
    assert path.stat().st_size > 1_000


def test_a_group_is_on_with_a_majority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "group.toml"
    replica = '[[broker]]\nid = "r{0}"\naddress = "127.0.0.1:74{0}"\npeer_address = "127.0.0.1:75{0}"\ndata = "r{0}"\n'
    times = 'mtbf = "9h"\nmttr = "1h"\n'
    path.write_text('[scheme]\nkind = "paxos"\n' + "".join(replica.format(n) + times for n in (11, 12, 13)))
    assert main(["predict", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["majority_is_on"] == pytest.approx(0.9**3 + 3 * 0.9**2 * 0.1)
    assert facts["majority_is_on"] < facts["in_time"] < 1
    assert main(["predict", str(path)]) == 0
    assert "a majority of the 3 replicas is on: 0.972000" in capsys.readouterr().out
    assert main(["predict", str(path), "--csv"]) == 2
    assert main(["predict", str(path), "--delays"]) == 0
    assert "0.999 of all publications are accepted within" in capsys.readouterr().out


def test_replicas_that_fail_together_are_no_majority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two of three in one rack: the group is on with the rack and one of them and the third, or both of them."""
    path = tmp_path / "group.toml"
    replica = '[[broker]]\nid = "r{0}"\naddress = "127.0.0.1:74{0}"\npeer_address = "127.0.0.1:75{0}"\ndata = "r{0}"\n'
    times = 'mtbf = "9h"\nmttr = "1h"\n'
    rack = '[[together]]\nname = "rack"\nbrokers = ["r11", "r12"]\nmtbf = "4h"\nmttr = "1h"\n'
    path.write_text('[scheme]\nkind = "paxos"\n' + "".join(replica.format(n) + times for n in (11, 12, 13)) + rack)
    assert main(["predict", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["majority_is_on"] == pytest.approx(0.8 * (0.9**3 + 3 * 0.9**2 * 0.1))


def test_one_broker_has_one_reliability(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "one.toml"
    path.write_text('[[broker]]\nid = "b1"\nmtbf = "9h"\nmttr = "1h"\n')
    assert main(["predict", str(path)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[2:4] == ["home topic subscribers reliability", "b1 - 1 0.900000"]
    assert main(["predict", str(path), "--delays"]) == 2
    assert "this site has one broker" in capsys.readouterr().err


def test_delays_of_events_that_wait(site: str, capsys: pytest.CaptureFixture[str]) -> None:
    """D1-D12: of accepted events; what is at once is the share of paths that are on."""
    assert main(["predict", site, "--json", "--delays"]) == 0
    desk = json.loads(capsys.readouterr().out)["subscribers"][0]["delays"]["buffered"]
    assert desk["accepted"] == pytest.approx(0.9)
    assert desk["at_once"] == pytest.approx(0.7144929 / 0.9)
    assert desk["percentiles_s"]["0.5"] == 0 < desk["percentiles_s"]["0.9"] < desk["percentiles_s"]["0.999"]
    assert main(["predict", site, "--csv", "--delays"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["p99_s"] != "" for row in rows[:5]] == [False, False, True, False, True]
    assert main(["predict", site, "--delays"]) == 0
    assert "how long events are under way" in capsys.readouterr().out
    assert main(["predict", site, "--delays", "--level", "periodic"]) == 2


def test_samples_observed_times_local_links_and_racks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """D1-F4 and D1-H1, in one site file, with files beside it."""
    site = SITE[: SITE.index("[[publisher]]")] + (
        '[[class]]\nname = "seen"\nobserved = "times.csv"\n'
        '[[together]]\nname = "rack"\nbrokers = ["b2", "b3"]\navailability = 0.98\nperiod = "7d"\n'
        '[[publisher]]\nhome = "b1"\nsample = "events.jsonl"\nlocal = "wan"\n'
        '[[subscriber]]\nhome = "b3"\nfilter = "price > 100"\nlocal = "seen"\n'
        '[[subscriber]]\nhome = "b3"\nfilter = "price > 1000"\n'
    )
    (tmp_path / "times.csv").write_text("state,seconds,ended\n" + "on,900,yes\noff,100,yes\n" * 9 + "on,90,no\n")
    (tmp_path / "events.jsonl").write_text('{"attributes": {"price": 101.5}}\n\n{"attributes": {"price": 99}}\n')
    path = tmp_path / "site.toml"
    path.write_text(site)
    assert main(["predict", str(path), "--json", "--level", "periodic"]) == 0
    document = json.loads(capsys.readouterr().out)
    first, second = (one["reliability"]["periodic"] for one in document["subscribers"])
    assert first == pytest.approx(0.7144929 * 0.98 * 0.99 * (910 / 1_010), abs=2e-4)
    assert second is None
    assert "rack" in [one["part"] for one in document["helps"]["parts"]]
    (tmp_path / "events.jsonl").write_text('{"attributes": 1}\n')
    assert main(["predict", str(path)]) == 2
    assert "events.jsonl:1: Expected `object`" in capsys.readouterr().err
    (tmp_path / "events.jsonl").write_bytes(b"\xff")
    assert main(["predict", str(path)]) == 2
    assert "events.jsonl: this is no UTF-8 text: invalid start byte at byte 0" in capsys.readouterr().err
    (tmp_path / "events.jsonl").unlink()
    assert main(["predict", str(path)]) == 2
    assert "events.jsonl: No such file or directory" in capsys.readouterr().err


def test_wrong_input_is_explained(site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silent = tmp_path / "silent.toml"
    silent.write_text('[[broker]]\nid = "b1"\n')
    wrong = {
        ("predict", str(silent)): "does not say how its brokers and links fail",
        ("predict", site, "--lifetime", "soon"): "has to be a time with its unit",
        ("predict", site, "--plot", str(tmp_path / "x.gif")): "has to end in one of .svg, .png, .pdf",
        ("predict", site, "--plot", str(tmp_path / "none" / "x.svg")): "No such file or directory",
        ("predict", str(tmp_path / "none.toml")): "No such file or directory",
    }
    for arguments, problem in wrong.items():
        assert main(list(arguments)) == 2
        assert problem in capsys.readouterr().err


def test_a_site_from_standard_input_may_be_no_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    assert main(["predict", "-"]) == 2
    assert "-: this is no UTF-8 text: invalid start byte at byte 0" in capsys.readouterr().err


def test_what_is_not_installed_is_named(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(predict, "find_spec", lambda name: None if name == "scipy" else True)
    assert main(["predict", site]) == 2
    assert "predictions need scipy: pip install 'holdfast[qos]'" in capsys.readouterr().err
