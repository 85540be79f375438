"""What `holdfast status` shows of a network: from what its brokers say; and of real ones, of which one is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.broker_network import BrokerNetwork
from holdfast.broker.status import Tone
from holdfast.cli.status import section_text
from holdfast.schemes.tree.measures import MEASURES
from holdfast.schemes.tree.scheme import SCHEME
from holdfast.schemes.tree.status import HEADINGS, network_sections
from tests.cli.test_main import run

NEAR = {"b1": "b2", "b2": "b1, b3", "b3": "b2"}


def row(name: str, up: str | None = None, suspected: str = "", **measures: int) -> dict[str, Any]:
    """A broker of a chain of three that answers; with links to all its neighbours unless it says otherwise."""
    return {
        "broker": name,
        "reliability": "buffered",
        "neighbours": NEAR[name],
        "neighbours_up": NEAR[name] if up is None else up,
        "neighbours_suspected": suspected,
        "measures": dict.fromkeys(MEASURES, 0) | measures,
        "rates": {"events_arrived": 10.4, "events_forwarded": 20.6},
    }


def silent(name: str) -> dict[str, Any]:
    return {"broker": name, "state": "unreachable", "reason": "connection refused"}


def network_part(rows: list[dict[str, Any]]) -> str:
    return "".join(map(section_text, network_sections(rows)))


def test_a_network_that_is_whole_has_nothing_to_complain_of() -> None:
    lines = network_part(
        [row("b1"), row("b2", routes=12, feeds_events=3_000, events_lost_total=7), row("b3")]
    ).splitlines()
    assert lines[1].split() == HEADINGS
    assert lines[3].split() == ["b2", "b1,", "b3", "12", "0", "0", "0", "10", "21", "3,000", "0", "7", "0"]
    assert lines[5:] == ["reliability buffered: 3 of 3 brokers answer, 2 of 2 links are up"]


def test_a_broker_that_is_down_is_shown_with_what_its_neighbours_say() -> None:
    lines = network_part([row("b1", feeds_events=5), row("b2", up="b1", feeds_events=20), silent("b3")]).splitlines()
    assert lines[3].split()[:5] == ["b2", "b1,", "b3", "(down)", "0"]
    assert lines[4].split() == ["b3", "?", *["-"] * 10]
    assert lines[5:] == [
        "reliability buffered: 2 of 3 brokers answer, 1 of 2 links are up",
        "b3 is down, say b2; 20 events wait there",
    ]


def test_a_broker_that_is_silent_here_and_linked_there_is_not_said_to_be_down() -> None:
    shown = network_part([row("b1"), row("b2", suspected="b3"), silent("b3")])
    assert "b1, b3 (suspected)" in shown
    assert "b3 does not answer, and is linked with b2: it hangs, or operators can't reach it" in shown


def test_a_link_that_is_cut_between_brokers_that_are_up_is_named() -> None:
    shown = network_part([row("b1"), row("b2", up="b1"), row("b3", up="")])
    assert "3 of 3 brokers answer, 1 of 2 links are up" in shown
    assert "the link between b2 and b3 is down, and both are up" in shown


def mapped(name: str, number: int = 3, /, **facts: str) -> dict[str, Any]:
    """A broker of the chain, which has a map of that number."""
    said = {"map": str(number), "members": "b1, b2, b3", "keeper": "b1", "links": "b1-b2, b2-b3"}
    return row(name) | said | facts


def outside(name: str, **facts: Any) -> dict[str, Any]:
    """A broker that has no neighbours."""
    nobody = {"broker": name, "neighbours": "", "neighbours_up": ""}
    return mapped("b1") | nobody | facts


def remarks(*rows: dict[str, Any]) -> list[tuple[str, Tone]]:
    return [(remark.text, remark.tone) for section in network_sections(rows) for remark in section.remarks]


WHOLE = "reliability buffered: 3 of 3 brokers answer, 2 of 2 links are up"
MAP = ("map 3; b1 keeps the order of changes", Tone.PLAIN)


def test_a_network_that_was_never_changed_says_nothing_of_its_map() -> None:
    assert remarks(*(mapped(name, 0) for name in NEAR)) == [(WHOLE, Tone.PLAIN)]


def test_a_change_that_is_under_way_is_shown_by_the_newest_map_and_who_has_an_older_one_is_named() -> None:
    change = {"change": "b3 moves from b2 to b1; 2 more steps", "change_problem": "b2 is down"}
    assert remarks(mapped("b1", 2, change="old"), mapped("b2", **change), mapped("b3")) == [
        (WHOLE, Tone.PLAIN),
        MAP,
        ("change: b3 moves from b2 to b1; 2 more steps", Tone.PLAIN),
        ("it waits: b2 is down", Tone.WARNING),
        ("b1: has not heard of map 3 yet", Tone.WARNING),
    ]


def test_who_stands_in_for_whom_is_shown_and_a_broker_that_rests_is_not_missed() -> None:
    told = {"members": "b1, b2, b8", "links": "b1-b2, b2-b8", "resting": "b3 by b8, b9"}
    rows = [*(mapped(name, **told) for name in ("b1", "b2")), silent("b3"), silent("b9")]
    assert ("b8 stands in for b3", Tone.PLAIN) in remarks(*rows)
    assert not any("b9" in text for text, _ in remarks(*rows))
    assert {name: SCHEME.is_missed(name, rows) for name in ("b3", "b9", "b8")} == {"b3": False, "b9": False, "b8": True}


def test_who_answers_and_is_no_member_is_named_and_told_to_stop_if_it_does_not_know() -> None:
    spare = outside("b8", map="0", problem="no member of this network yet")
    removed = outside("b7", map="2", members="b1, b2, b3, b7")
    assert remarks(*map(mapped, NEAR), spare, removed) == [
        (WHOLE, Tone.PLAIN),
        MAP,
        ("b7: no member any more, and has not heard of it: stop it", Tone.ALARM),
        ("b8: no member of this network yet", Tone.PLAIN),
    ]


def test_members_that_the_site_file_does_not_list_are_named_and_so_is_how_it_differs() -> None:
    told = {"members": "b1, b2, b3, b9", "difference": "it does not list b9, a member"}
    assert remarks(*(mapped(name, **told) for name in NEAR)) == [
        (WHOLE, Tone.PLAIN),
        MAP,
        ("not asked, and a member: b9", Tone.PLAIN),
        ("b1, b2, b3: it does not list b9, a member", Tone.WARNING),
    ]
    assert remarks(mapped("b2", **told, neighbours="", neighbours_up=""))[1:] == [
        MAP,
        ("b2: it does not list b9, a member", Tone.WARNING),
    ]


def test_a_broker_that_is_no_member_is_not_missed_and_a_member_is() -> None:
    rows = [*map(mapped, ("b1", "b2")), silent("b3"), silent("b8")]
    missed = {name: SCHEME.is_missed(name, rows) for name in ("b1", "b3", "b8", "")}
    assert missed == {"b1": True, "b3": True, "b8": False, "": True}
    assert remarks(*rows)[0][0] == "reliability buffered: 2 of 3 brokers answer, 2 of 2 links are up"
    assert SCHEME.is_missed("b8", [silent("b1"), silent("b8")])


def test_brokers_that_are_no_network_have_no_such_part() -> None:
    alone = {"broker": "b1", "scheme": "tree", "measures": {}}
    assert network_part([alone, silent("b2")]) == ""


@pytest.fixture
def network(tmp_path: Path) -> Iterator[BrokerNetwork]:
    """A chain of three real brokers."""
    with BrokerNetwork(tmp_path, (("b1", "b2"), ("b2", "b3")), "buffered", "dial_every_ms = 100\n") as network:
        asyncio.run(network.begin())
        yield network


def test_status_shows_a_killed_broker_and_what_its_neighbours_see(
    network: BrokerNetwork, capsys: pytest.CaptureFixture[str]
) -> None:
    site = str(network.site)
    assert run("status", site) == 0
    assert WHOLE in capsys.readouterr().out.splitlines()
    asyncio.run(network.kill("b3"))
    assert run("status", site) == 1
    shown = capsys.readouterr().out.splitlines()
    assert "reliability buffered: 2 of 3 brokers answer, 1 of 2 links are up" in shown
    assert "b3 is down, say b2" in shown
    assert [line.split()[:4] for line in shown if line.startswith("b2 ")][1] == ["b2", "b1,", "b3", "(down)"]
    assert run("status", site, "--broker", "b2") == 0
    assert "reliability buffered: 1 of 1 brokers answer, 1 of 2 links are up" in capsys.readouterr().out


def test_who_watches_sees_a_broker_go_and_come_back(network: BrokerNetwork) -> None:
    command = [sys.executable, "-m", "holdfast.cli", "status", str(network.site), "--watch", "--every", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        shown = (line.rstrip("\n") for line in watching.stdout)  # ends, and so fails, if the command does
        try:
            assert WHOLE in shown
            network.stop("b3")
            assert "b3 is down, say b2" in shown
            network.start("b3")
            assert WHOLE in shown
        finally:
            watching.terminate()
