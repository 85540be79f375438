"""Site files describe networks of brokers: links, graphs that are made, and how events are routed (D0-A1, D1-A10)."""

from __future__ import annotations

import re
from random import Random

import pytest

from holdfast.broker.settings_table import as_toml
from holdfast.broker.site import BrokerEntry, Site, site_from_toml
from holdfast.errors import SiteError
from holdfast.kernel.settings import choices, written
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.failure.settings import DetectorSettings
from holdfast.protocols.routing.network_map import StandInProtocol
from holdfast.protocols.routing.settings import (
    Reliability,
    Remedy,
    RoutingSettings,
    ServiceLevels,
    StandInSettings,
    SubscriptionOrder,
)
from holdfast.schemes.tree.settings import DEFAULTS, OF_SCHEME, SLA, STAND_INS, routing_of, routing_settings
from holdfast.topology.generators import Kind, links_of
from holdfast.topology.graph import BrokerGraph
from tests.repository import ROOT

LINES = (("b1", "b2"), ("b2", "b3"))


def brokers(count: int, *, data: bool = True) -> str:
    """Five lines a broker, the first of them on line 3 of `site`; four without data."""
    tables = [
        f'[[broker]]\nid = "b{n}"\naddress = "h:{100 + n}"\npeer_address = "h:{200 + n}"\n'
        + (f'data = "var/b{n}"\n' if data else "")
        for n in range(1, count + 1)
    ]
    return "".join(tables)


def links(*pairs: tuple[str, str]) -> str:
    return "".join(f'[[link]]\nbetween = ["{one}", "{other}"]\n' for one, other in pairs)


def site(level: str = "none", *, count: int = 3, rest: str = links(*LINES), data: bool = True) -> str:
    return f'[scheme]\nreliability = "{level}"\n' + brokers(count, data=data) + rest


def read(text: str) -> Site:
    return site_from_toml(text, "site.toml", Random)


def refusal(text: str) -> str:
    with pytest.raises(SiteError) as refused:
        read(text)
    return str(refused.value)


@pytest.mark.parametrize("level", Reliability)
def test_a_network_is_read_whole(level: Reliability) -> None:
    """D1-A10: each level by its name."""
    found = read(site(level.value))
    assert routing_settings(found.settings).reliability is level
    assert found.graph == BrokerGraph(["b1", "b2", "b3"], LINES)
    assert routing_of(found.told(found.brokers[1])) == RoutingSettings(
        name="b2",
        graph=found.graph,
        addresses=addresses_of(1, 2, 3, port=200),
        client_addresses=addresses_of(1, 2, 3, port=100),
        network="site",
        reliability=level,
    )


def addresses_of(*numbers: int, port: int) -> dict[str, str]:
    return {f"b{n}": f"h:{port + n}" for n in numbers}


# Five lines.
SPARE = '[[broker]]\nid = "b8"\naddress = "h:108"\npeer_address = "h:208"\nspare = true\n'


def test_a_spare_is_told_of_the_network_and_is_no_part_of_it() -> None:
    for rest in (SPARE + links(*LINES), SPARE + '[topology]\nkind = "chain"\n'):
        found = read(site(rest=rest))
        assert [entry.id for entry in found.members] == ["b1", "b2", "b3"]
        assert found.graph == BrokerGraph(["b1", "b2", "b3"], LINES)
        assert [place.id for place in found.told(found.brokers[0]).places if place.spare] == ["b8"]
        for entry in found.brokers:
            assert routing_of(found.told(entry)) == RoutingSettings(
                name=entry.id,
                graph=found.graph,
                addresses=addresses_of(1, 2, 3, 8, port=200),
                client_addresses=addresses_of(1, 2, 3, 8, port=100),
                network="site",
            )


def test_one_broker_is_no_network_and_has_an_overlay_of_its_own() -> None:
    for text in ('[[broker]]\nid = "b1"\n', '[topology]\nkind = "star"\nbrokers = 1\n'):
        found = read(text)
        assert found.graph == BrokerGraph(["b1"], ())
        assert found.brokers == (BrokerEntry(id="b1"),)
        assert routing_of(found.told(found.brokers[0])) is None


ROUTING = """\
[routing]
advertisements = false
covering = false
ask_neighbours = false
dial_every_ms = 1
refresh_ms = 2
expire_ms = 3
settle_ms = 4
restore_ms = 5
retransmit_ms = 6
store_bytes = 2000000
queue_bytes = 3000000
window_bytes = 11
duplicates_remembered = 7
heartbeat_ms = 8
suspect_ms_min = 9
suspect_ms_max = 10
[standin]
keep_bytes = 12
patience_ms = 13
signal_ms = 14
order = "pending"
[standin.sla]
unreachable_ms = 15
queue_events = 16
oldest_ms = 17
rate = 18
sustained_ms = 19
calm_ms = 20
hand_back = false
start_ms = 21
protocol = "basic"
congestion = "none"
"""


def test_every_setting_of_routing_can_be_set() -> None:
    found = read(site(rest=links(*LINES) + ROUTING))
    settings = routing_of(found.told(found.brokers[0]))
    times = [time * MILLISECOND for time in range(15, 22)]
    watched = ServiceLevels(
        True, times[0], 16, times[2], 18, times[4], times[5], False, times[6], StandInProtocol.BASIC, Remedy.NOTHING
    )  # fmt: skip
    assert settings == RoutingSettings(
        name="b1",
        graph=found.graph,
        addresses=addresses_of(1, 2, 3, port=200),
        client_addresses=addresses_of(1, 2, 3, port=100),
        network="site",
        advertisements=False,
        covering=False,
        ask_neighbours=False,
        dial_every=1 * MILLISECOND,
        refresh=2 * MILLISECOND,
        expire=3 * MILLISECOND,
        settle=4 * MILLISECOND,
        restore=5 * MILLISECOND,
        retransmit=6 * MILLISECOND,
        store_bytes=2_000_000,
        queue_bytes=3_000_000,
        window_bytes=11,
        duplicates_remembered=7,
        detector=DetectorSettings(8 * MILLISECOND, 9 * MILLISECOND, 10 * MILLISECOND),
        stand_ins=StandInSettings(
            True, 12, 13 * MILLISECOND, 14 * MILLISECOND, watched, order=SubscriptionOrder.PENDING
        ),
    )
    given_otherwise = {"name", "graph", "addresses", "client_addresses", "network", "detector", "stand_ins"}
    own = {choice.path for choice in choices(RoutingSettings).values()}
    assert {path[1] for path in own if path[0] == "stand_ins"} == {*StandInSettings.__struct_fields__} - {"in_group"}
    assert {path[2] for path in own if path[:2] == ("stand_ins", "levels")} == set(ServiceLevels.__struct_fields__)
    assert {path[0] for path in own if len(path) == 1} == set(RoutingSettings.__struct_fields__) - given_otherwise
    assert {path[1] for path in own if path[0] == "detector"} == set(DetectorSettings.__struct_fields__)


def test_what_routing_leaves_out_has_a_default() -> None:
    found = read(site(rest=links(*LINES) + "[routing]\nrefresh_ms = 20000\n"))
    settings = routing_settings(found.settings)
    assert (settings.refresh, settings.expire) == (20 * SECOND, 35 * SECOND)


def test_a_fixed_time_of_suspicion_is_possible() -> None:
    text = "[routing]\nsuspect_ms_min = 3000\nsuspect_ms_max = 3000\n"
    assert routing_settings(read(site(rest=links(*LINES) + text)).settings).detector.suspect_after_max == 3 * SECOND


@pytest.mark.parametrize("kind", Kind)
def test_links_are_made_by_a_topology(kind: Kind) -> None:
    text = site("bypass", count=5, rest=f'[topology]\nkind = "{kind.value}"\nseed = 7\n')
    names = [f"b{n}" for n in range(1, 6)]
    assert read(text).links == links_of(kind, names, Random(7))
    if kind.takes_degree:
        assert read(text + "degree = 2\n").links == links_of(kind, names, Random(7), 2.0)


def test_thirty_brokers_take_six_lines() -> None:
    text = '[topology]\nkind = "random-tree"\nbrokers = 30\naddress = "h:7411"\npeer_address = "h:7511"\ndata = "var"\n'
    found = read('[scheme]\nreliability = "buffered"\n' + text)
    assert len(found.brokers) == 30
    assert found.brokers[29] == BrokerEntry(id="b30", address="h:7440", peer_address="h:7540", data="var/b30")
    assert found.graph.is_connected
    assert found.links == links_of(Kind.RANDOM_TREE, [entry.id for entry in found.brokers], Random(1))


def test_addresses_of_brokers_that_are_made_have_defaults() -> None:
    found = read('[topology]\nkind = "chain"\nbrokers = 200\n')
    assert found.brokers[0] == BrokerEntry(id="b1", address="127.0.0.1:7411", peer_address="127.0.0.1:7611")
    assert found.brokers[199].peer_address == "127.0.0.1:7810"
    last = read(MADE + 'brokers = 3\naddress = "h:65530"\n')
    assert last.brokers[2] == BrokerEntry(id="b3", address="h:65532", peer_address="h:65535")


def test_a_cycle_is_welcome_where_detours_are_made() -> None:
    """D1-A13, D1-A14: the other links are what a detour goes by."""
    ring = links(*LINES, ("b3", "b1"))
    for level in Reliability:
        if level.detours:
            assert read(site(level.value, rest=ring)).graph.has_cycle
        else:
            assert refusal(site(level.value, rest=ring)) == (
                f'site.toml:23: this link closes a cycle, and with reliability "{level.value}" only a tree is used:'
                ' take "bypass" or "bypass+buffered", or leave it out'
            )


def test_data_is_needed_where_events_are_buffered() -> None:
    """D1-B4: what was acknowledged must outlive the broker."""
    for level in Reliability:
        text = site(level.value).replace('data = "var/b2"\n', "")
        if level.buffers:
            assert refusal(text).startswith("site.toml:8: broker 'b2' has no data: with reliability")
        else:
            assert not read(text).brokers[1].durable
    text = '[scheme]\nreliability = "buffered"\n[topology]\nkind = "star"\nbrokers = 3\n'
    assert refusal(text).startswith("site.toml:3: broker 'b1' has no data")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (site("most"), "2: there is no reliability 'most'; there is none, periodic, buffered, bypass, bypass+buffered"),
        (site().replace('"none"', "3"), "2: 'reliability' is 3, and has to be a text"),
        (
            site(rest=""),
            "8: the site has 3 brokers, and nothing says how they are joined: add [[link]] with"
            ' between = ["b1", "b2"], or [topology] with a kind',
        ),
        (site(rest="link = []\n"), "18: 'link' is not known in [broker]"),
        (site(rest=links(("b1", "b2"))), "18: no links lead from 'b1' to 'b3': every broker has to be joined"),
        (
            site(rest=links(*LINES, ("b3", "b4"))),
            "23: a link ends at 'b4', and there is no such broker; there is b1, b",
        ),
        (site(rest=links(*LINES, ("b3", "b3"))), "23: a link joins 'b3' and itself"),
        (site(rest=links(("b2", "b1"), *LINES)), "21: two links join 'b1' and 'b2'"),
        (site(rest="[[link]]\n"), '18: a link has two ends: write between = ["b1", "b2"]'),
        (site(rest='[[link]]\nbetwen = ["b1", "b2"]\n'), "19: 'betwen' is not known in [link]; known are between"),
        (site(rest='[[link]]\nbetween = ["b1"]\n'), "19: a link has two ends"),
        (site(rest='[[link]]\nbetween = "b1-b2"\n'), "19: a link has two ends"),
        (site(rest='[[link]]\nbetween = ["b1", 2]\n'), "19: a link has two ends"),
        (site(rest=links(*LINES) + "delay_ms = 3\n"), "22: 'delay_ms' is not known in [link]; known are between"),
        (
            site(rest='[link]\nbetween = ["b1", "b2"]\n'),
            "18: 'link' is {'between': ['b1', 'b2']}, and has to be an array",
        ),
        ("link = [1]\n" + brokers(2), "1: 'link' is an array of tables: write [[link]]"),
        (
            site().replace('peer_address = "h:203"\n', ""),
            "13: broker 'b3' has no peer_address: the others of its network connect there",
        ),
        (site().replace("var/b3", "var/b2"), "17: two brokers keep their data in 'var/b2'"),
        (site().replace("h:203", "h:101"), "16: two brokers have the address 'h:101'"),
        (
            site().replace('data = "var/b3"', "spare = true"),
            "21: broker 'b3' is a spare, and has no links until `holdfast network add-broker` has added it",
        ),
        (
            site("buffered", rest=SPARE + links(*LINES)),
            "18: broker 'b8' has no data: with reliability \"buffered\" it answers for events until the next broker",
        ),
        (
            site(rest=SPARE.replace('peer_address = "h:208"\n', "") + links(*LINES)),
            "18: broker 'b8' has no peer_address: the others of its network connect there",
        ),
        (
            site(count=1, rest=SPARE),
            "12: spares are added to a network, which begins with two brokers or more; this site has one broker, 'b1',",
        ),
        (
            '[[broker]]\nid = "b1"\nspare = true\n',
            "3: spares are added to a network, which begins with two brokers or more; this site has none without them",
        ),
        (
            site(rest=SPARE + links(*LINES) + '[[publisher]]\nhome = "b8"\n'),
            "28: broker 'b8' is a spare; there is b1, b2, b3",
        ),
        (
            site(rest=links(*LINES) + '[application]\nfactory = "a:b"\n'),
            "22: an application is hosted by one broker, or by a group: each broker of a network would host its own",
        ),
        (site("buffered", count=1, rest=""), "2: 'reliability' is 'buffered', of a network; the site has one broker"),
        (
            site(count=1, rest="[routing]\ncovering = true\n"),
            "8: [routing] is of a network; the site has one broker, and there is nothing to route",
        ),
        (site(count=1, rest=links(("b1", "b2"))), "9: a link ends at 'b2', and there is no such broker; there is b1"),
    ],
)
def test_what_is_no_network_is_refused_with_its_line(text: str, problem: str) -> None:
    assert refusal(text).startswith(f"site.toml:{problem}")


def test_brokers_are_listed_where_one_is_unknown_and_not_where_a_link_is_wrong() -> None:
    assert refusal(site(rest=links(*LINES, ("b3", "b3")))).endswith("a link joins 'b3' and itself")
    assert refusal(site(rest=links(*LINES, ("b3", "b9")))).endswith("there is b1, b2, b3")


def topology(rest: str, *, level: str = "none", count: int = 3) -> str:
    """Its table is on line 18."""
    return site(level, count=count, rest=f"[topology]\n{rest}")


MADE = '[scheme]\nkind = "tree"\n[topology]\nkind = "star"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (topology(""), "18: a topology has a kind: one of star, chain, random-tree, random-graph, transit-stub"),
        (topology('kind = "ring"\n'), "19: there is no topology 'ring'; there is star, chain, random-tree"),
        (topology("kind = 3\n"), "19: 'kind' is 3, and has to be a text"),
        (topology('kind = "star"\nsize = 3\n'), "20: 'size' is not known in [topology]; known are kind, seed, degree"),
        (topology('kind = "star"\nseed = -1\n'), "20: 'seed' is -1, and has to be 0 or more"),
        (topology('kind = "star"\nseed = 1.5\n'), "20: 'seed' is 1.5, and has to be a whole number"),
        (topology('kind = "star"\ndegree = 2\n'), "20: a star has no degree to choose"),
        (
            topology('kind = "random-graph"\ndegree = 2.9\n'),
            "20: the degree of 3 brokers is from 1.33333, a tree's, to",
        ),
        (topology('kind = "random-graph"\ndegree = true\n'), "20: 'degree' is True, and has to be a number"),
        (
            topology('kind = "random-graph"\n'),
            '19: the topology has a cycle, and with reliability "none" only a tree is used: take "bypass" or'
            ' "bypass+buffered", or a kind without cycles',
        ),
        (topology('kind = "transit-stub"\ndegree = 2.0\n'), "20: the topology has a cycle"),
        (topology('kind = "star"\n' + links(("b1", "b2"))), "18: links are listed by [[link]], or made by [topology];"),
        (topology('kind = "star"\nbrokers = 3\n'), "3: brokers are listed by [[broker]], or made by [topology]"),
        (topology('kind = "star"\ndata = "var"\n'), "20: 'data' in [topology] is of brokers that are made there"),
        (topology('kind = "star"\naddress = "h:1"\n'), "20: 'address' in [topology] is of brokers that are made there"),
        (MADE, "0: a site has a broker"),
        (MADE + "brokers = 0\n", "5: 'brokers' is 0, and has to be 1 to 10000"),
        (MADE + "brokers = 10001\n", "5: 'brokers' is 10001, and has to be 1 to 10000"),
        (MADE + 'brokers = "b1"\n', "5: 'brokers' is 'b1', and has to be a whole number"),
        (MADE + 'brokers = 3\naddress = "h"\n', "6: 'h' is no address: write host:port"),
        (MADE + 'brokers = 3\npeer_address = "h:0"\n', "6: 'h:0' is no address: write host:port"),
        (MADE + 'brokers = 3\naddress = "h:65531"\n', "6: 6 addresses from h:65531 on would go beyond the last port"),
        (
            MADE + 'brokers = 3\naddress = "h:10"\npeer_address = "h:65534"\n',
            "7: 3 addresses from h:65534 on would go beyond the last port, 65535",
        ),
        (MADE + 'brokers = 9\naddress = "h:1"\npeer_address = "h:5"\n', "6: two brokers have the address 'h:5'"),
        (
            MADE.replace("star", "transit-stub") + "brokers = 1001\n",
            "5: a transit-stub has 1 to 1000 brokers, not 1001",
        ),
    ],
)
def test_a_topology_that_can_not_be_made_is_refused_with_its_line(text: str, problem: str) -> None:
    assert refusal(text).startswith(f"site.toml:{problem}".replace(":0:", ":"))


def test_a_topology_is_not_made_without_random_numbers() -> None:
    with pytest.raises(SiteError, match=r"site.toml:18: this site is made with random numbers, and its reader was g"):
        site_from_toml(topology('kind = "star"\n'), "site.toml")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (
            "refresh = 3\n",
            "23: 'refresh' is not known in [routing]; known are advertisements, covering, ask_neighbours",
        ),
        ("covering = 1\n", "23: 'covering' is 1, and has to be true or false"),
        ("settle_ms = 0.5\n", "23: 'settle_ms' is 0.5, and has to be a whole number"),
        ("settle_ms = 0\n", "23: 'settle_ms' is 0, and has to be 1 or more"),
        ("heartbeat_ms = -5\n", "23: 'heartbeat_ms' is -5, and has to be 1 or more"),
        ("restore_ms = 2592000001\n", "23: 'restore_ms' is 2592000001, and has to be 2592000000 or less"),
        ("duplicates_remembered = 0\n", "23: 'duplicates_remembered' is 0, and has to be 1 or more"),
        ("queue_bytes = 1000\n", "23: 'queue_bytes' is 1000, and has to be 1047552 or more"),
        ("store_bytes = 1047551\n", "23: 'store_bytes' is 1047551, and has to be 1047552 or more"),
        (
            "covering = true\nexpire_ms = 10000\n",
            "24: 'expire_ms' is 10000, and has to be more than 'refresh_ms', 10000 (the default)",
        ),
        ("refresh_ms = 60000\n", "23: 'expire_ms' is 35000 (the default), and has to be more than 'refresh_ms', 60000"),
        (
            "heartbeat_ms = 100\nsuspect_ms_min = 100\n",
            "24: 'suspect_ms_min' is 100, and has to be more than 'heartbeat_ms', 100",
        ),
        ("suspect_ms_max = 1999\n", "23: 'suspect_ms_max' is 1999, and has to be not less than 'suspect_ms_min', 2000"),
    ],
)
def test_a_mistake_about_routing_is_named_with_its_line(table: str, problem: str) -> None:
    assert refusal(site(rest=links(*LINES) + "[routing]\n" + table)).startswith(f"site.toml:{problem}")


def test_the_page_for_operators_shows_all_settings_with_their_defaults() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| .* \| ([^|]+) \|$", page, re.MULTILINE))
    shown = {
        name: value.replace(",", "").strip("`")
        for names, values in rows.items()
        for name, value in zip(re.findall(r"\w+", names), values.split(" and "), strict=False)
    }
    sizes = {"store_bytes": "256 MiB", "queue_bytes": "8 MiB", "window_bytes": "4 MiB", "keep_bytes": "8 MiB"}
    assert written(DEFAULTS).keys() >= OF_SCHEME
    for key, value in written(DEFAULTS).items():
        if key in OF_SCHEME or key in (STAND_INS, SLA):
            continue
        assert shown[key] == sizes.get(key, as_toml(value)), key
    assert (DEFAULTS.store_bytes, DEFAULTS.queue_bytes, DEFAULTS.window_bytes) == (
        256 * 1024**2,
        8 * 1024**2,
        4 * 1024**2,
    )


def test_the_network_that_the_page_for_operators_shows_is_one() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (text,) = (block.removeprefix("toml\n") for block in page.split("```")[1::2] if block.startswith("toml\n[scheme]"))
    assert len(read(text).brokers) == 30
