"""What a site file says of how parts fail and of who publishes: read with care, refused with the line."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.broker.quality import LIFETIME_S, MeanTimes, ObservedTimes, Quality, TogetherEntry, seconds_of
from holdfast.broker.site import Site, site_from_toml
from holdfast.errors import SiteError

NETWORK = """
[[broker]]
id = "b1"
peer_address = "127.0.0.1:7501"
mtbf = "7d"
mttr = "4h"
[[broker]]
id = "b2"
address = "127.0.0.1:7412"
peer_address = "127.0.0.1:7502"
class = "good"
[[broker]]
id = "b3"
address = "127.0.0.1:7413"
peer_address = "127.0.0.1:7503"
[[link]]
between = ["b1", "b2"]
availability = 0.99
period = "60000s"
[[link]]
between = ["b2", "b3"]
"""
CLASSES = """
[[class]]
name = "good"
availability = 0.999
period = "2w"
[[class]]
name = "poor"
mtbf = "9h"
mttr = "1h"
"""


def read(text: str) -> Site:
    return site_from_toml(text, "site.toml", Random)


def test_parts_say_it_themselves_or_by_a_class_or_never_fail() -> None:
    quality = read(NETWORK + CLASSES).quality
    assert quality.brokers["b1"] == MeanTimes(7 * 86_400, 4 * 3_600)
    good, link = quality.brokers["b2"], quality.links["b1", "b2"]
    assert isinstance(good, MeanTimes)
    assert isinstance(link, MeanTimes)
    assert [good.on_s, good.off_s] == pytest.approx([0.999 * 14 * 86_400, 0.001 * 14 * 86_400])
    assert [link.on_s, link.off_s] == pytest.approx([59_400, 600])
    assert len(quality.links) == 1
    assert "b3" not in quality.brokers
    assert quality.lifetime_s == LIFETIME_S


def test_a_class_for_all_that_say_nothing() -> None:
    quality = read(NETWORK + CLASSES + '[prediction]\nbrokers = "poor"\nlinks = "good"\nlifetime = "10min"').quality
    assert quality.brokers["b3"] == MeanTimes(9 * 3_600, 3_600)
    assert quality.brokers["b1"] == MeanTimes(7 * 86_400, 4 * 3_600), "its own word counts"
    assert set(quality.links) == {("b1", "b2"), ("b2", "b3")}
    assert quality.lifetime_s == 600


def test_brokers_that_a_topology_makes_and_replicas_have_classes_too() -> None:
    made = '[topology]\nkind = "chain"\nbrokers = 3\n[prediction]\nbrokers = "poor"\nlinks = "poor"\n'
    quality = read(made + CLASSES).quality
    assert (set(quality.brokers), len(quality.links)) == ({"b1", "b2", "b3"}, 2)
    replica = '[[broker]]\nid = "r{0}"\naddress = "127.0.0.1:74{0}"\npeer_address = "127.0.0.1:75{0}"\ndata = "r{0}"\n'
    group = "".join(replica.format(n) for n in (11, 12, 13))
    quality = read('[scheme]\nkind = "paxos"\n' + group + CLASSES + '[prediction]\nbrokers = "poor"\n').quality
    assert set(quality.brokers) == {"r11", "r12", "r13"}


def test_publishers_and_subscribers() -> None:
    quality = read(
        NETWORK + CLASSES + '[[publisher]]\nhome = "b1"\ntopic = "t"\nrate = 2\n'
        '[[subscriber]]\nhome = "b3"\ntopic = "t"\ncount = 9\nname = "desk"\n[[subscriber]]\nhome = "b2"\n'
    ).quality
    assert [(one.home, one.topic, one.rate) for one in quality.publishers] == [("b1", "t", 2)]
    assert [(one.home, one.count, one.name) for one in quality.subscribers] == [("b3", 9, "desk"), ("b2", 1, "")]


def test_what_fails_together_and_what_was_observed() -> None:
    quality = read(
        NETWORK
        + CLASSES
        + '[[together]]\nname = "rack"\nbrokers = ["b1", "b2"]\nlinks = [["b2", "b1"]]\nclass = "poor"\n'
        '[[class]]\nname = "seen"\nobserved = "times.csv"\n'
        '[[publisher]]\nhome = "b1"\nsample = "e.jsonl"\nlifetime = "1min"\nlocal = "seen"\n'
        '[[subscriber]]\nhome = "b2"\nfilter = "price > 1"\nlocal = "poor"\n'
    ).quality
    poor = MeanTimes(9 * 3_600, 3_600)
    assert quality.together == (TogetherEntry("rack", poor, ("b1", "b2"), (("b1", "b2"),)),)
    (publisher,), (subscriber,) = quality.publishers, quality.subscribers
    assert (publisher.sample, publisher.lifetime_s, publisher.local) == ("e.jsonl", 60, ObservedTimes("times.csv"))
    assert (subscriber.filter, subscriber.local) == ("price > 1", poor)


def test_a_site_that_says_nothing_has_no_quality() -> None:
    assert read('[[broker]]\nid = "b1"\n').quality == Quality()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7d", 604_800), ("1.5 h", 5_400), ("250ms", 0.25), ("3min", 180), ("2w", 1_209_600), (" 5 s ", 5)],
)
def test_times_have_units(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "7", "d", "7 days", "-1s", "1e3s", "1h30min", "7D", "nan s"])
def test_what_is_no_time(text: str) -> None:
    assert seconds_of(text) is None


@pytest.mark.parametrize(
    ("more", "line", "problem"),
    [
        ('[[class]]\nmtbf = "1h"\n', 1, "a class has a name"),
        ('[[class]]\nname = "x"\n', 1, "a class says how its parts fail"),
        ('[[class]]\nname = "x"\nclass = "y"\n', 1, "a class is of no other class"),
        ('[[class]]\nname = "x"\nmtbf = "1h"\n', 3, "mtbf alone does not tell how it fails"),
        ('[[class]]\nname = "x"\nmtbf = "1"\nmttr = "1h"\n', 3, "'mtbf' is '1', and has to be a time with its unit"),
        (
            '[[class]]\nname = "x"\navailability = 1.5\nperiod = "1h"\n',
            3,
            "'availability' is 1.5, and has to be above 0",
        ),
        ('[[class]]\nname = "x"\nmtbf = "0s"\nmttr = "1h"\n', 3, "a part that is never on is no part"),
        ('[prediction]\nbrokers = "x"\n', 2, "there is no class 'x'; there is none"),
        ('[prediction]\nlifetime = "soon"\n', 2, "'lifetime' is 'soon'"),
        ('[prediction]\nlifetme = "1h"\n', 2, "'lifetme' is not known in [prediction]"),
        ('[[publisher]]\ntopic = "t"\n', 1, "a publisher has a home"),
        ('[[publisher]]\nhome = "b9"\n', 2, "there is no broker 'b9'; there is b1, b2, b3"),
        ('[[publisher]]\nhome = "b1"\nrate = -1.0\n', 3, "'rate' is -1.0"),
        ('[[subscriber]]\nhome = "b1"\ncount = 0\n', 3, "'count' is 0"),
        ('[[publisher]]\nhome = "b1"\nlifetime = "1"\n', 3, "'lifetime' is '1'"),
        ('[[publisher]]\nhome = "b1"\nsample = "x"\ntopic = "t"\n', 4, "topics of their own"),
        ('[[publisher]]\nhome = "b1"\nlocal = "x"\n', 3, "there is no class 'x'"),
        ('[[subscriber]]\nhome = "b1"\nfilter = "price >"\n', 3, "'filter': "),
        ('[[class]]\nname = "x"\nobserved = "f"\nmtbf = "1h"\n', 4, "mtbf, observed do not go together"),
        ('[[together]]\nbrokers = ["b1"]\nmtbf = "1h"\nmttr = "1h"\n', 1, "has a name"),
        ('[[together]]\nname = "r"\nbrokers = ["b1"]\n', 1, "what is shared says how it fails"),
        ('[[together]]\nname = "r"\nmtbf = "1h"\nmttr = "1h"\nbrokers = ["b9"]\n', 5, "there is no broker 'b9'"),
        ('[[together]]\nname = "r"\nmtbf = "1h"\nmttr = "1h"\nlinks = ["b1"]\n', 5, "by its two ends"),
        (
            '[[together]]\nname = "r"\nmtbf = "1h"\nmttr = "1h"\nlinks = [["b1", "b3"]]\n',
            5,
            "no link between b1 and b3",
        ),
        ("publisher = [1]\n", 0, ""),
    ],
)
def test_what_is_refused(more: str, line: int, problem: str) -> None:
    plain = NETWORK.replace('class = "good"\n', "")
    text = plain + more if line else more + plain
    with pytest.raises(SiteError) as refused:
        read(text)
    if line:
        assert refused.value.line == len(plain.splitlines()) + line
        assert problem in str(refused.value)
    else:
        assert "write [[publisher]]" in str(refused.value)


def test_a_part_has_one_word() -> None:
    text = NETWORK.replace('class = "good"', 'class = "good"\nmtbf = "1h"\nmttr = "1h"') + CLASSES
    with pytest.raises(SiteError, match="leave out one of both"):
        read(text)
