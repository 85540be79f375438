"""`holdfast init` writes networks that can be run, and broken, as they are."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from holdfast.apps.directory import Directory
from holdfast.broker.registry import SCHEMES
from holdfast.broker.site import Site, site_from_toml
from holdfast.cli.applications import make_application
from holdfast.kernel.settings import choices
from holdfast.protocols.routing.settings import Reliability, ServiceLevels, StandInSettings
from holdfast.runtime.site_file import read_site
from holdfast.schemes.tree.init_text import links_listed
from holdfast.schemes.tree.settings import DEFAULTS, NOT_LEVELS, NOT_ROUTING, NOT_STAND_INS, routing_settings
from holdfast.topology.generators import Kind
from tests.cli.test_main import run


def written(tmp_path: Path, *options: str) -> Site:
    path = tmp_path / "mine.toml"
    path.unlink(missing_ok=True)
    assert run("init", str(path), *options) == 0
    return read_site(str(path))


def test_a_tree_to_start_from_has_four_brokers_one_of_them_between_the_others(tmp_path: Path) -> None:
    site = written(tmp_path, "--scheme", "tree")
    assert routing_settings(site.settings).reliability is Reliability.BUFFERED
    assert site.links == (("b1", "b2"), ("b2", "b3"), ("b2", "b4"))
    assert [(entry.id, entry.address, entry.peer_address) for entry in site.brokers] == [
        (f"b{n}", f"127.0.0.1:{7410 + n}", f"127.0.0.1:{7510 + n}") for n in (1, 2, 3, 4)
    ]
    assert [entry.data for entry in site.brokers] == [str(tmp_path / f"var/mine/b{n}") for n in (1, 2, 3, 4)]


def test_sites_that_are_tried_one_after_the_other_have_folders_of_their_own(tmp_path: Path) -> None:
    """Else a network would begin with the events of the broker that was tried before it."""
    folders = []
    for name, options in {"one": (), "net": ("--scheme", "tree"), "group": ("--scheme", "paxos")}.items():
        path = tmp_path / f"{name}.toml"
        assert run("init", str(path), *options) == 0
        folders += [entry.data for entry in read_site(str(path)).brokers]
    assert len(set(folders)) == len(folders) == 1 + 4 + 3


def test_a_group_has_as_many_replicas_as_are_wanted(tmp_path: Path) -> None:
    site = written(tmp_path, "--scheme", "paxos", "--brokers", "5")
    assert [entry.id for entry in site.brokers] == ["r1", "r2", "r3", "r4", "r5"]
    assert site.brokers[4].peer_address == "127.0.0.1:7515"


def test_a_directory_is_a_group_that_hosts_it_at_ports_beside_those_of_networks(tmp_path: Path) -> None:
    """D0-A10."""
    site = written(tmp_path, "--scheme", "directory")
    assert [(entry.id, entry.address, entry.peer_address) for entry in site.brokers] == [
        (f"d{n}", f"127.0.0.1:{7610 + n}", f"127.0.0.1:{7710 + n}") for n in (1, 2, 3)
    ]
    assert site.scheme is SCHEMES["paxos"]
    assert site.application is not None
    assert isinstance(make_application(site.application.factory, site.application.settings, "site.toml"), Directory)
    network = written(tmp_path, "--scheme", "standin")
    taken = {address for entry in network.brokers for address in (entry.address, entry.peer_address)}
    assert not taken & {address for entry in site.brokers for address in (entry.address, entry.peer_address)}


def test_without_options_there_is_one_broker_as_ever(tmp_path: Path) -> None:
    one = written(tmp_path)
    assert [entry.id for entry in one.brokers] == ["b1"]
    assert written(tmp_path, "--brokers", "1") == one
    assert written(tmp_path, "--scheme", "tree", "--brokers", "1") == one


@pytest.mark.parametrize("level", Reliability)
@pytest.mark.parametrize("brokers", [2, 3, 4, 7, 100])
def test_every_level_gets_links_that_suit_it(brokers: int, level: Reliability, tmp_path: Path) -> None:
    """D1-A14: a detour needs another way, so there is one around every broker."""
    site = written(tmp_path, "--brokers", str(brokers), "--reliability", level.value)
    assert len(site.brokers) == brokers
    assert routing_settings(site.settings).reliability is level
    assert site.graph.is_connected
    assert site.graph.has_cycle is (level.detours and brokers > 2)


@pytest.mark.parametrize("count", range(3, 8))
def test_around_any_broker_of_a_ring_there_is_another_way(count: int) -> None:
    links = links_listed(count, Reliability.BYPASS)
    assert [sum(broker in link for link in links) for broker in range(1, count + 1)] == [2] * count


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("brokers", [4, 30, 150])
def test_a_topology_is_written_in_place_of_links(kind: Kind, brokers: int, tmp_path: Path) -> None:
    site = written(tmp_path, "--topology", kind.value, "--brokers", str(brokers))
    text = (tmp_path / "mine.toml").read_text()
    assert ("\n[[link]]" in text, "\n[[broker]]" in text) == (False, False)
    assert len(site.brokers) == brokers
    assert site.graph.is_connected
    assert site.graph.has_cycle is (kind is Kind.RANDOM_GRAPH)
    assert routing_settings(site.settings).reliability.detours is (kind is Kind.RANDOM_GRAPH)


def test_detours_get_a_transit_stub_graph_with_links_to_make_them_by(tmp_path: Path) -> None:
    assert written(tmp_path, "--topology", "transit-stub", "--reliability", "bypass").graph.has_cycle


def test_the_settings_that_are_shown_in_comments_are_all_there_are_and_the_defaults(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("init", "--scheme", "tree", "-") == 0
    text = capsys.readouterr().out
    begin, end = text.index("# [routing]"), text.index("[limits]")
    uncommented = text[:begin] + re.sub(r"^# ", "", text[begin:end], flags=re.MULTILINE) + text[end:]
    assert site_from_toml(uncommented, "site.toml", Random).settings == replace(
        DEFAULTS, reliability=Reliability.BUFFERED
    )
    assert [key for key in choices(type(DEFAULTS)) if key not in NOT_ROUTING] == re.findall(
        r"^(\w+) = ", uncommented[begin : uncommented.index("[limits]")], re.MULTILINE
    )
    for line in ("# refresh_ms = 10000 ", "# heartbeat_ms = 500 ", "# covering = true "):
        assert line in text


def test_a_site_with_stand_ins_has_seven_members_and_two_spares_that_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = written(tmp_path, "--scheme", "standin")
    watched = ServiceLevels(enabled=True)
    assert routing_settings(site.settings).stand_ins == StandInSettings(enabled=True, levels=watched)
    assert routing_settings(site.settings).reliability is Reliability.BUFFERED
    assert [entry.id for entry in site.brokers] == [f"b{n}" for n in range(1, 10)]
    assert [entry.id for entry in site.brokers if entry.spare] == ["b8", "b9"]
    assert len(site.links) == 6
    level = written(tmp_path, "--scheme", "standin", "--brokers", "3", "--reliability", "none")
    assert [entry.id for entry in level.members] == ["b1", "b2", "b3"]
    capsys.readouterr()
    assert run("init", "--scheme", "standin", "-") == 0
    text = capsys.readouterr().out
    begin, end = text.index("\n[standin]"), text.index("[limits]")
    uncommented = text[:begin] + re.sub(r"^# ", "", text[begin:end], flags=re.MULTILINE) + text[end:]
    assert site_from_toml(uncommented, "site.toml", Random).settings == site.settings
    listed = [key for key in choices(type(DEFAULTS)) if key not in NOT_STAND_INS]
    listed += [key for key in choices(type(DEFAULTS)) if key not in NOT_LEVELS]
    said = re.findall(r"^(\w+) = ", uncommented[begin : uncommented.index("[limits]")], re.MULTILINE)
    assert said == listed


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            "--scheme standin --reliability bypass",
            "these options do not go together: with reliability 'bypass' events go",
        ),
        ("--scheme standin --topology star", "--topology lists no brokers, and so no spares: leave it out"),
        ("--scheme standin --brokers 99", "--brokers is 99, and 2 spares; more than 100 are not listed"),
        ("--scheme standin --brokers 1", "these options do not go together: spares are added to a network"),
        ("--brokers 0", "--brokers is 0, and has to be 1 or more"),
        ("--brokers 101", "--brokers is 101; more than 100 are not listed: say --topology too"),
        ("--brokers 10001 --topology star", "these options do not go together: 'brokers' is 10001, and has to be 1 to"),
        ("--scheme paxos --brokers 11", "--brokers is 11; a group has at most 9 replicas"),
        ("--scheme paxos --reliability none", "--reliability is of another scheme: say --scheme tree"),
        ("--scheme paxos --topology star", "--topology is of another scheme: say --scheme tree"),
        (
            "--brokers 1 --reliability buffered",
            "these options do not go together: 'reliability' is 'buffered', of a net",
        ),
        ("--topology random-graph --reliability none", "these options do not go together: the topology has a cycle"),
        ("--brokers 3 --application zapviewers", "these options do not go together: an application is hosted by one"),
        ("--reliability some", "argument --reliability: invalid choice: 'some'"),
        ("--topology ring", "argument --topology: invalid choice: 'ring'"),
        ("--brokers some", "argument --brokers: invalid int value: 'some'"),
    ],
)
def test_options_that_do_not_go_together_are_refused_and_nothing_is_written(
    options: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    assert run("init", str(path), *options.split()) == 2
    assert problem in capsys.readouterr().err
    assert not path.exists()
