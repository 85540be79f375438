"""What the checker `network` takes for the first use of a topic, and what a wiped disk excuses."""

from __future__ import annotations

import pytest

from holdfast.protocols.routing.gate import filter_of
from holdfast.schemes.tree.network_checker import ANY_TOPIC, _advertised
from holdfast.schemes.tree.outages import Outages
from holdfast.trace.schema import Fault

CHAIN = [("b1", "b2"), ("b2", "b3"), ("b3", "b4")]


@pytest.mark.parametrize("topic", ["", "stock", "a b", "ü"])
def test_an_advertisement_of_a_topic_is_of_that_topic(topic: str) -> None:
    """One that was taken for an advertisement of everything would excuse the loss of first events on all topics."""
    assert _advertised(str(filter_of(topic))) == topic


@pytest.mark.parametrize("text", ["", "price > 50", "topic = 'a' OR topic = 'b'"])
def test_an_advertisement_of_more_is_of_everything(text: str) -> None:
    assert _advertised(text) is ANY_TOPIC


def test_a_wiped_disk_excuses_what_was_accepted_before_on_its_path_and_nothing_else() -> None:
    outages = Outages(("b1", "b2", "b3", "b4"), CHAIN, grace=5, notice=5)
    outages.see(Fault(t=100, component="b3", state="wiped"))
    assert outages.wiped_since("b1", "b4", 99)
    assert not outages.wiped_since("b1", "b4", 101)
    assert not outages.wiped_since("b1", "b2", 99), "another path"
    assert outages.reaches("b4", "b1", 10) >= 100, "it has to be told again"
    assert outages.reaches("b2", "b1", 10) < 100
