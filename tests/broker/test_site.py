"""Site files are read whole, or refused with the line and what is allowed there."""

from random import Random

import pytest

from holdfast.broker.registry import SCHEMES
from holdfast.broker.site import ApplicationEntry, BrokerEntry, Site, site_from_toml
from holdfast.errors import SiteError
from holdfast.kernel.settings import written
from holdfast.kernel.time import MILLISECOND as MS
from holdfast.protocols.core.limits import CoreLimits, HostingLimits
from holdfast.schemes.paxos.scheme import DEFAULTS, group_of, paxos_settings
from holdfast.schemes.paxos.settings import PaxosSettings, Protocol
from holdfast.schemes.tree.settings import routing_of
from tests.repository import ROOT

GOOD = """\
name = "quotes"
[scheme]
kind = "tree"
[[broker]]
id = "b1"
address = "127.0.0.1:7500"
data = "var/b1"
[limits]
backlog_events = 500
"""


TREE = SCHEMES["tree"]


def test_a_site_is_read_whole() -> None:
    assert site_from_toml(GOOD, "site.toml") == Site(
        name="quotes",
        scheme=TREE,
        settings=TREE.settings,
        brokers=(BrokerEntry(id="b1", address="127.0.0.1:7500", data="var/b1"),),
        limits=CoreLimits(backlog_events=500),
    )


def test_plaintext_on_public_addresses_is_accepted_in_so_many_words() -> None:
    assert not site_from_toml(GOOD, "site.toml").plaintext
    assert site_from_toml(GOOD + '[security]\nplaintext = "I accept"\n', "site.toml").plaintext


def test_operators_of_other_machines_are_accepted_in_so_many_words() -> None:
    assert not site_from_toml(GOOD + '[security]\nplaintext = "I accept"\n', "site.toml").remote_operators
    assert site_from_toml(GOOD + '[security]\nremote_operators = "I accept"\n', "site.toml").remote_operators


def test_what_is_left_out_has_a_default() -> None:
    site = site_from_toml('[[broker]]\nid = "b1"\n', "site.toml")
    assert site == Site(name="site", scheme=TREE, settings=TREE.settings, brokers=(BrokerEntry(id="b1"),))
    assert not site.brokers[0].durable


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ('kind = "tree"', 'kind = "ring"', 3, "there is no scheme 'ring'; there is tree, paxos"),
        ('kind = "tree"', "kind = 3", 3, "'kind' is 3, and has to be a text"),
        ('kind = "tree"', 'knd = "tree"', 3, "'knd' is not known in [scheme]; known are kind"),
        ('name = "quotes"', 'name = "a b"', 1, "'a b' is no name"),
        ('name = "quotes"', 'nam = "x"', 1, "'nam' is not known; known are name, scheme, broker, limits, security"),
        ('id = "b1"', 'id = "b:1"', 5, "'b:1' is no name"),
        ('id = "b1"', 'data = ""', 4, "a broker has an id"),
        ('id = "b1"', "id = true", 5, "'id' is True, and has to be a text"),
        ("127.0.0.1:7500", "127.0.0.1", 6, "'127.0.0.1' is no address: write host:port"),
        ("127.0.0.1:7500", "127.0.0.1:70000", 6, "'127.0.0.1:70000' is no address"),
        (
            'data = "var/b1"',
            'dta = "var/b1"',
            7,
            "'dta' is not known in [broker]; known are id, address, advertise, peer_address, peer_advertise, data,",
        ),
        ("backlog_events = 500", "backlog_events = 0", 9, "'backlog_events' is 0, and has to be 1 or more"),
        ("backlog_events = 500", "backlog_events = true", 9, "'backlog_events' is True, and has to be a whole number"),
        ("backlog_events = 500", "backlog = 5", 9, "'backlog' is not known in [limits]; known are sessions"),
        ('data = "var/b1"', 'peer_address = "127.0.0.1:0"', 7, "'127.0.0.1:0' is no address"),
        ('data = "var/b1"', 'peer_address = "127.0.0.1:7500"', 7, "brokers and clients have different addresses"),
        (
            "[limits]\nbacklog_events = 500",
            '[security]\nplaintext = "yes"',
            9,
            "'plaintext' is 'yes'; leave it out, or write \"I accept\"",
        ),
        ("[limits]\nbacklog_events = 500", "[security]\ntls = 1", 9, "'tls' is not known in [security]"),
        ("[[broker]]", "[broker]", 4, "'broker' is {'id': 'b1'"),
        ('kind = "tree"', 'kind = "tree', 3, "this is no TOML: "),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, line: int, problem: str) -> None:
    text = GOOD.replace(old, new)
    if 'data = ""' in new:
        text = GOOD.replace('id = "b1"\n', "")
    with pytest.raises(SiteError) as caught:
        site_from_toml(text, "site.toml")
    assert caught.value.line == line
    assert caught.value.problem.startswith(problem)
    assert str(caught.value).startswith(f"site.toml:{line}: {problem}")


def test_a_site_without_a_broker_is_refused() -> None:
    with pytest.raises(SiteError, match=r"site.toml: a site has a broker: add \[\[broker\]\] with an id"):
        site_from_toml('name = "empty"\n', "site.toml")


@pytest.mark.parametrize("second", ['id = "b1"\naddress = "a:1"', 'id = "b2"\naddress = "127.0.0.1:7500"'])
def test_two_brokers_share_neither_name_nor_address(second: str) -> None:
    with pytest.raises(SiteError, match="two brokers"):
        site_from_toml(GOOD + f"[[broker]]\n{second}\n", "site.toml")


def group(*ids: str, scheme: str = "") -> str:
    tables = [
        f'[[broker]]\nid = "{id}"\naddress = "h:{100 + n}"\npeer_address = "h:{200 + n}"\ndata = "{id}"\n'
        for n, id in enumerate(ids)
    ]
    return f'[scheme]\nkind = "paxos"\n{scheme}' + "".join(tables)


def test_a_group_is_read_whole() -> None:
    site = site_from_toml(group("r1", "r2", "r3", scheme='protocol = "multi"\npipeline = 3\n'), "site.toml")
    assert site.scheme is SCHEMES["paxos"]
    assert site.settings == PaxosSettings("", (), Protocol.MULTI, 3)
    members = group_of(site.told(site.brokers[0])).members
    assert [(m.name, m.peer_address, m.client_address) for m in members][1] == ("r2", "h:201", "h:101")
    assert paxos_settings(site_from_toml(group("r1"), "site.toml").settings).protocol is Protocol.BATCH


def test_a_group_may_have_other_times_and_sizes_and_each_replica_is_told_them() -> None:
    said = "heartbeat_ms = 200\npatience_ms = 1500\nbatch_commands = 64\ntrim_every = 100\n"
    site = site_from_toml(group("r1", "r2", "r3", scheme=said), "site.toml")
    told = group_of(site.told(site.brokers[1]))
    assert (told.name, len(told.members), told.heartbeat, told.patience) == ("r2", 3, 200 * MS, 1_500 * MS)
    assert (told.batch_commands, told.trim_every, told.pipeline) == (64, 100, 10)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("heartbeat_ms = 300", "'patience_ms' is 300 (the default), and has to be more than 'heartbeat_ms', 300"),
        ("pipeline = 1001", "'pipeline' is 1001, and has to be 1 to 1000"),
        ("part_bytes = 1", "'part_bytes' is 1, and has to be 1024 or more"),
        (
            "refresh_ms = 1",
            "'refresh_ms' is not known in [scheme]; known are kind, protocol, pipeline,",
        ),
    ],
)
def test_settings_of_a_group_are_checked(said: str, problem: str) -> None:
    with pytest.raises(SiteError) as refused:
        site_from_toml(group("r1", "r2", "r3", scheme=said + "\n"), "site.toml")
    assert refused.value.problem.startswith(problem)
    assert refused.value.line == 3


def test_the_page_on_groups_shows_every_setting_with_its_default() -> None:
    page = (ROOT / "docs" / "groups.md").read_text(encoding="utf-8")
    table = page[page.index("| `[scheme]` |") :].split("\n\n")[0].splitlines()[3:]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]
    shown = {
        key.strip("`"): value.strip("`")
        for names, _, values in rows
        for key, value in zip(names.split(", "), values.split(", "), strict=True)
    }
    assert shown == {key: str(value) for key, value in written(DEFAULTS).items()}


@pytest.mark.parametrize("size", [1, 3, 4, 5, 7, 9])
def test_a_group_may_have_fast_rounds(size: int) -> None:
    """D4-A4."""
    site = site_from_toml(group(*"abcdefghi"[:size], scheme='protocol = "fast"\n'), "site.toml")
    assert paxos_settings(site.settings).protocol is Protocol.FAST
    assert len(site.brokers) == size


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (group("a", "b"), "site.toml:3: the group has 2 replicas, and has to have one of 1, 3, 4, 5, 7, 9"),
        (group(*"abcdef"), "site.toml:3: the group has 6 replicas"),
        (group(*"abcdefghij"), "site.toml:3: the group has 10 replicas"),
        (
            group("a", "b", "c", scheme='protocol = "raft"\n'),
            "site.toml:3: there is no protocol 'raft'; there is multi, batch, fast",
        ),
        (group("a", scheme="pipeline = 0\n"), "site.toml:3: 'pipeline' is 0, and has to be 1 to 1000"),
        (group("a", scheme='pipeline = "x"\n'), "site.toml:3: 'pipeline' is 'x', and has to be a whole number"),
        (group("a", "b", "c").replace('data = "b"\n', ""), "site.toml:8: replica 'b' has no data"),
        (group("a", "b", "c").replace('data = "b"', 'data = "a"'), "site.toml:12: two replicas keep their data in 'a'"),
        (group("a", "b", "c").replace('peer_address = "h:202"\n', ""), "site.toml:13: replica 'c' has no peer_address"),
        (GOOD.replace('"tree"', '"tree"\npipeline = 3'), "site.toml:4: 'pipeline' is not known in [scheme]"),
        (
            group("a", scheme='reliability = "none"\n'),
            "site.toml:3: 'reliability' is not known in [scheme]; known are kind, protocol, pipeline",
        ),
        (group("a") + "[routing]\n", "site.toml:8: 'routing' is not known in a site of the scheme 'paxos'"),
        (group("a") + '[[link]]\nbetween = ["a", "b"]\n', "site.toml:8: 'link' is not known in a site of the scheme"),
        (group("a") + '[topology]\nkind = "star"\n', "site.toml:8: 'topology' is not known in a site of the scheme"),
    ],
)
def test_what_is_no_group_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SiteError) as caught:
        site_from_toml(text, "site.toml")
    assert str(caught.value).startswith(problem)


HOSTING = (
    GOOD
    + """\
request_bytes = 1000
[application]
factory = "package.module:Name"
[application.settings]
size = 3
"""
)


def test_an_application_is_named_with_its_settings_and_limits() -> None:
    site = site_from_toml(HOSTING, "site.toml")
    assert site.application == ApplicationEntry(factory="package.module:Name", settings={"size": 3})
    assert site.application.name == 'package.module:Name {"size":3}'
    assert (site.limits, site.hosting) == (CoreLimits(backlog_events=500), HostingLimits(request_bytes=1000))
    assert ApplicationEntry(factory="a:b").name == "a:b"


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ('factory = "package.module:Name"', "", 11, "an application has a factory"),
        ("package.module:Name", "package.module", 12, "'package.module' is no factory: write package.module:name"),
        ("package.module:Name", "a-b:c", 12, "'a-b:c' is no factory"),
        ("[application.settings]", "more = 1", 13, "'more' is not known in [application]; known are factory, settings"),
        (
            "request_bytes = 1000",
            "request_bytes = 600000",
            10,
            "'request_bytes' is 600000, and has to be 524288 or less",
        ),
    ],
)
def test_a_mistake_about_the_application_is_named_with_its_line(old: str, new: str, line: int, problem: str) -> None:
    with pytest.raises(SiteError) as refused:
        site_from_toml(HOSTING.replace(old, new), "site.toml")
    assert problem in str(refused.value)
    assert refused.value.line == line


# --------------------------------------------------------------------------------------------------------- addresses
def on_all_addresses(*told: str) -> str:
    """Three replicas that listen alike; each says what it is given."""
    tables = [
        f'[[broker]]\nid = "r{n}"\ndata = "r{n}"\naddress = "0.0.0.0:7411"\npeer_address = "[::]:7511"\n{lines}\n'
        for n, lines in enumerate(told, 1)
    ]
    return '[scheme]\nkind = "paxos"\n' + "".join(tables)


def advertised(n: int) -> str:
    return f'advertise = "h{n}:7411"\npeer_advertise = "h{n}:7511"'


def test_what_brokers_advertise_is_what_others_are_told_and_they_may_listen_alike() -> None:
    site = site_from_toml(on_all_addresses(*map(advertised, (1, 2, 3))), "site.toml")
    assert [(place.client_address, place.peer_address) for place in site.told(site.brokers[0]).places] == [
        (f"h{n}:7411", f"h{n}:7511") for n in (1, 2, 3)
    ]
    assert {(entry.address, entry.peer_address) for entry in site.brokers} == {("0.0.0.0:7411", "[::]:7511")}


def test_brokers_of_a_network_dial_what_others_advertise() -> None:
    tables = [
        f'[[broker]]\nid = "b{n}"\naddress = "0.0.0.0:7411"\npeer_address = "0.0.0.0:7511"\n{advertised(n)}\n'
        for n in (1, 2)
    ]
    site = site_from_toml("".join(tables) + '[[link]]\nbetween = ["b1", "b2"]\n', "site.toml")
    routing = routing_of(site.told(site.brokers[0]))
    assert routing is not None
    assert routing.addresses == {"b1": "h1:7511", "b2": "h2:7511"}
    assert routing.client_addresses == {"b1": "h1:7411", "b2": "h2:7411"}


@pytest.mark.parametrize(
    ("told", "line", "problem"),
    [
        ("", 6, "broker 'r1' listens on 0.0.0.0:7411, and clients would be sent there; say where it is: advertise ="),
        ('advertise = "h1:7411"', 7, "broker 'r1' listens on [::]:7511, and other brokers would be sent there; say"),
        ('advertise = "0.0.0.0:7411"', 8, "'advertise' is '0.0.0.0:7411', where nobody can be sent"),
        ('advertise = "h1"', 8, "'h1' is no address: write host:port"),
        (advertised(2), 15, "two brokers have the address 'h2:7411'"),
    ],
)
def test_a_broker_among_others_says_where_it_is(told: str, line: int, problem: str) -> None:
    with pytest.raises(SiteError) as caught:
        site_from_toml(on_all_addresses(told, advertised(2), advertised(3)), "site.toml")
    assert caught.value.problem.startswith(problem)
    assert caught.value.line == line


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "0", "[::ffff:0.0.0.0]", "[0:0:0:0:0:0:0:0]"])
def test_a_broker_among_others_is_refused_on_every_form_of_all_addresses(host: str) -> None:
    with pytest.raises(SiteError, match="would be sent there"):
        site_from_toml(group("a").replace("h:100", f"{host}:100"), "site.toml")


@pytest.mark.parametrize(("address", "found"), [("0.0.0.0:7500", "127.0.0.1:7500"), ("[::]:7500", "[::1]:7500")])
def test_a_single_broker_may_listen_on_all_addresses_and_is_found_on_its_own_machine(address: str, found: str) -> None:
    entry = site_from_toml(GOOD.replace("127.0.0.1:7500", address), "site.toml").brokers[0]
    assert (entry.address, entry.advertised, entry.peer_advertised) == (address, found, "")


def test_brokers_that_a_topology_makes_count_up_what_they_advertise() -> None:
    made = '[topology]\nkind = "chain"\nbrokers = 2\naddress = "0.0.0.0:7411"\n'
    with pytest.raises(SiteError, match=r"site.toml:4: broker 'b1' listens on 0.0.0.0:7411, and clients would"):
        site_from_toml(made, "site.toml", Random)
    site = site_from_toml(made + 'advertise = "h:8411"\n', "site.toml", Random)
    assert [(e.advertised, e.peer_advertised) for e in site.brokers] == [("h:8411", "h:8413"), ("h:8412", "h:8414")]
    assert [(e.address, e.peer_address) for e in site.brokers][1] == ("0.0.0.0:7412", "0.0.0.0:7414")
