"""Site files are read whole, or refused with the line and what is allowed there."""

import pytest

from holdfast.broker.site import ApplicationEntry, BrokerEntry, Scheme, Site, site_from_toml
from holdfast.errors import SiteError
from holdfast.protocols.paxos.settings import Protocol
from holdfast.protocols.sessions.limits import CoreLimits, HostingLimits

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


def test_a_site_is_read_whole() -> None:
    assert site_from_toml(GOOD, "site.toml") == Site(
        name="quotes",
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
    assert site == Site(name="site", brokers=(BrokerEntry(id="b1"),))
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
            "'dta' is not known in [broker]; known are id, address, peer_address, data, spare, mtbf, mttr,",
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
    assert site.is_group
    assert site.scheme == Scheme(kind="paxos", protocol=Protocol.MULTI, pipeline=3)
    assert [(m.name, m.peer_address, m.client_address) for m in site.members][1] == ("r2", "h:201", "h:101")
    assert site_from_toml(group("r1"), "site.toml").scheme.protocol is Protocol.BATCH


@pytest.mark.parametrize("size", [1, 3, 4, 5, 7, 9])
def test_a_group_may_have_fast_rounds(size: int) -> None:
    """D4-A4."""
    site = site_from_toml(group(*"abcdefghi"[:size], scheme='protocol = "fast"\n'), "site.toml")
    assert site.scheme.protocol is Protocol.FAST
    assert len(site.members) == size


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
