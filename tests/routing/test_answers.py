"""What is kept for a neighbour that has not answered an advertisement, and that nothing is kept for one that has."""

from __future__ import annotations

from holdfast.kernel.inputs import LinkDown, TimerFired
from holdfast.kernel.outbox import Effect
from holdfast.model import Filter
from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.local import EntryIds
from holdfast.protocols.routing.messages import Forward, Routes, Settled
from holdfast.protocols.routing.router import Router
from tests.routing.test_store import ADVERTISEMENT, LINKS, Middle, batch, sent


def waiting(node: Middle) -> int:
    return int(node.node.measure()["feeds_events"])


def expected(node: Middle) -> int:
    return int(node.node.measure()["routes_expected"])


def unlink(node: Middle, peer: str) -> list[Effect]:
    return node.keep(node.handle(LinkDown(LINKS[peer], peer, "gone")))


def answered() -> Middle:
    """b3 has answered what b1 advertises, and wants nothing of it."""
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    node.settle(node.link("b3", 0, Routes(full=True)))
    assert expected(node) == 0
    return node


def test_whoever_has_not_answered_counts_as_wanting_what_is_advertised_and_its_neighbour_asks_for_it() -> None:
    node = Middle()
    effects = node.link("b1", 0, ADVERTISEMENT)
    (telling, news) = [routes for to, routes in sent(effects, Routes) if to == "b1"]
    assert [text for _, text in (*telling.subscriptions, *news.subscriptions)] == ["topic = 't'"]
    node.hear("b1", Forward(1, batch(1)))
    assert (waiting(node), expected(node)) == (1, 1)


def test_the_subscription_goes_when_the_answer_comes() -> None:
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    effects = node.settle(node.link("b3", 0, Routes(full=True)))
    assert [(to, len(routes.unsubscribed)) for to, routes in sent(effects, Routes)] == [("b1", 1)]


def test_what_was_answered_stays_so_while_the_neighbour_is_away() -> None:
    node = answered()
    unlink(node, "b3")
    node.hear("b1", Forward(1, batch(1)))
    assert (waiting(node), expected(node)) == (0, 0)


def test_what_was_answered_stays_so_over_a_restart() -> None:
    node = Middle(answered().disk, life=2)
    node.link("b1")
    node.hear("b1", Forward(1, batch(1)))
    assert (waiting(node), expected(node)) == (0, 0)


def test_an_advertisement_that_was_taken_back_and_comes_again_is_to_be_answered_again_also_after_a_restart() -> None:
    """The neighbour took back what it wanted with the advertisement."""
    node = answered()
    (taken,) = [routes for to, routes in sent(node.hear("b1", Routes(unadvertised=["b1.1.1"])), Routes) if to == "b3"]
    assert taken.unadvertised == ["b1.1.1"]
    node = Middle(node.disk, life=2)
    node.link("b1", 0, Routes(advertisements=[("b1.1.2", "topic = 't'")], full=True))
    node.hear("b1", Forward(1, batch(1)))
    assert (waiting(node), expected(node)) == (1, 1)


def test_an_advertisement_that_an_answered_one_covers_is_answered() -> None:
    node = answered()
    unlink(node, "b3")
    node.hear("b1", Routes(advertisements=[("b1.1.2", "topic = 't' AND n > 1")]))
    assert expected(node) == 0
    node.hear("b1", Routes(unadvertised=["b1.1.1"]))
    assert expected(node) == 0, "b3 has not heard of it, and wants what it wanted"
    node.hear("b1", Routes(advertisements=[("b1.1.3", "topic = 'u'")]))
    assert expected(node) == 1


def test_an_answer_to_an_advertisement_that_is_gone_by_then_is_nothing() -> None:
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    effects = node.link("b3", 0, Routes(full=True))
    (ticket,) = [routes.ticket for to, routes in sent(effects, Routes) if to == "b3" and routes.ticket]
    node.hear("b1", Routes(unadvertised=["b1.1.1"]))
    node.hear("b3", Settled(ticket))
    node.hear("b3", Settled(ticket))
    assert expected(node) == 0


def test_an_answer_on_an_earlier_link_does_not_count_for_what_was_told_on_this_one() -> None:
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    effects = node.link("b3", 0, Routes(full=True))
    (ticket,) = [routes.ticket for to, routes in sent(effects, Routes) if to == "b3" and routes.ticket]
    unlink(node, "b3")
    effects = node.link("b3", 0, Routes(full=True))
    node.hear("b3", Settled(ticket))
    assert expected(node) == 1
    node.settle(effects)
    assert expected(node) == 0


def test_who_does_not_answer_for_long_gets_everything() -> None:
    """Someone beyond it is slow; nobody is to wait for that."""
    node = Middle()
    node.link("b1", 0, ADVERTISEMENT)
    node.hear("b1", Forward(1, batch(1)))
    assert sent(node.link("b3", 0, Routes(full=True)), Forward) == []
    assert sent(node.keep(node.handle(TimerFired(("forwarding", "held", "b3")))), Forward) == [
        ("b3", Forward(1, batch(1)))
    ]


def test_what_hides_an_advertisement_is_answered_by_a_new_neighbour_only_if_that_is_too() -> None:
    """b4 is beyond b2, and about to be a neighbour: what it advertises itself comes from b2's side, too, and hides what
    b3 has advertised since. b4 has heard nothing of that."""
    ids = EntryIds("b1")
    ids.begin(1)
    answers = Answers(("b2", "b3"), ids)
    router = Router(("b2", "b3"), answers=answers)
    answers.begin(router, {}, {})
    wide = Filter("topic = 't'")
    router.advertise("b2", "b4.1.1", wide)
    router.advertise("b3", "b3.1.1", wide)
    router.add_neighbour("b4")
    router.merge("b4", {"b4.1.1": wide}, {})
    answers.add(router, "b4", lambda entry, filter: entry == "b4.1.1")
    assert answers.are_due("b4")
    router.unadvertise("b2", "b4.1.1")
    assert answers.are_due("b4")
    assert answers.unanswered(router, "b4") == ["topic = 't'"]
