"""A client that learns its scheme from the first broker that it reaches, over the link that it goes on with."""

from random import Random
from typing import Any

import pytest

from holdfast.broker.any_client import AnyClient, spoken_in
from holdfast.broker.registry import SCHEMES, Schemes
from holdfast.broker.scheme_client import SchemeClient, client_catalogue_of
from holdfast.kernel.inputs import ConnectFailed, Input, LinkDown, LinkUp, Received, Started, TimerFired
from holdfast.kernel.links import Role
from holdfast.kernel.node import Node
from holdfast.kernel.outbox import Complete, Connect, Disconnect, Outbox
from holdfast.kernel.time import MILLISECOND, SECOND
from holdfast.protocols.client_catalogue import CLIENT_CATALOGUE
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.conversation import ClientSettings
from holdfast.protocols.sessions.messages import CloseSession, OpenSession, SessionClosed, SessionOpened, Subscribe
from holdfast.protocols.sessions.requests import (
    Close,
    Closed,
    Connected,
    Disconnected,
    MakeSubscription,
    NewEvent,
    NotReached,
    Published,
    PublishEvents,
    SchemeChanged,
    SchemeFound,
)
from tests.sessions.bench import Bench, ClientBench, sent, shown

INSTANCE = ClientBench().part._instance
OPENED = SessionOpened(5, 0, 100, 9)
LOST = "no answer in time"


def bench(*addresses: str, **settings: Any) -> ClientBench:
    """A client that was started."""
    made = ClientBench(*addresses, make=AnyClient, **settings)
    made.handle(Started(3))
    return made


def connected(*addresses: str, scheme: str = "tree", **settings: Any) -> ClientBench:
    """One with a session at b1, a:1."""
    made = bench(*addresses, **settings)
    made.handle(made.up(scheme=scheme))
    made.say(OPENED)
    return made


def report(result: Any) -> tuple[str, int, Any]:
    return ("complete", requests.UNSOLICITED, result)


def publish(*numbers: int) -> PublishEvents:
    return PublishEvents([NewEvent({"n": n}) for n in numbers])


# ---------------------------------------------------------------------------------------------------- first contact
@pytest.mark.parametrize("scheme", SCHEMES.kinds)
def test_the_link_that_told_the_scheme_is_the_session_s(scheme: str) -> None:
    client = ClientBench("a:1", make=AnyClient)
    assert shown(client.handle(Started(3))) == [Connect("", "a:1")]
    opened = shown(client.handle(client.up(scheme=scheme)))
    assert opened == [report(SchemeFound(scheme)), ("b1", OpenSession(INSTANCE))]
    assert report(Connected("a:1", "b1", False)) in client.say(OPENED)  # a scheme's client may say more then


def test_what_was_asked_before_there_was_a_broker_is_asked_then_in_order() -> None:
    client = bench()
    assert client.ask(publish(1, 2), MakeSubscription("n > 0")) == []
    assert client.ask(publish(3)) == []
    client.handle(client.up())
    said = sent(client.say(OPENED), "b1")
    assert said == [Subscribe(1, "n > 0", window=1024), ("Publish", 1, [1, 2, 3], 0)]


def test_all_of_one_turn_is_heard_in_order() -> None:
    client = ClientBench("a:1", make=AnyClient)
    up = client.up()
    down = LinkDown(up.link, "b1", "gone")
    effects = client.handle(Started(3), up, Received(up.link, "b1", [OPENED]), down)
    reports = [effect.result for effect in effects if isinstance(effect, Complete)]
    assert reports == [SchemeFound("tree"), Connected("a:1", "b1", False), Disconnected("gone")]


def test_a_link_that_is_gone_at_once_is_followed_by_another_attempt() -> None:
    client = bench()
    up = client.up()
    effects = client.handle(up, LinkDown(up.link, "b1", "gone"))
    assert report(NotReached("a:1", "gone")) in shown(effects)
    assert Connect("", "a:1") in client.advance(SECOND)
    assert shown(client.handle(client.up())) == [("b1", OpenSession(INSTANCE))]


def test_addresses_are_tried_in_turn_and_failures_reported() -> None:
    client = ClientBench("a:1", "a:2", make=AnyClient, opening_max_with_choice=5 * SECOND)
    tried = [effect.address for effect in client.handle(Started(1)) if isinstance(effect, Connect)]
    reports = []
    for _ in range(3):
        reports += shown(client.handle(ConnectFailed("", tried[-1], "refused", "limit")))
        tried += [effect.address for effect in client.advance(SECOND) if isinstance(effect, Connect)]
    assert tried == ["a:1", "a:2", "a:1", "a:2"]
    assert reports == [report(NotReached(address, "refused", "limit")) for address in ("a:1", "a:2", "a:1")]


def test_a_broker_that_does_not_answer_is_left_and_welcome_when_it_does() -> None:
    client = bench("a:1", "a:2")
    assert shown(client.advance(SECOND)) == [report(NotReached("a:1", LOST))]
    assert Connect("", "a:2") in client.advance(100 * MILLISECOND)
    assert sent(shown(client.handle(client.up())), "b1") != []
    assert not [key for key in client.timers if key[0] == "contact"]
    # What comes of the other attempt is not wanted any more.
    late = client.up("b2", "a:2")
    assert shown(client.handle(late)) == [Disconnect(late.link, "not wanted any more")]


def test_after_the_first_the_other_addresses_come_in_their_order() -> None:
    client = bench("a:1", "a:2", "a:3")
    client.handle(ConnectFailed("", "a:1", "refused"))
    client.advance(SECOND)
    client.handle(client.up("b2", "a:2"))
    tried = []
    client.handle(client.down("b2"))
    for _ in range(3):
        tried += [effect.address for effect in client.advance(200 * MILLISECOND) if isinstance(effect, Connect)]
        client.handle(ConnectFailed("", tried[-1], "refused"))
    assert tried == ["a:3", "a:1", "a:2"]


def test_a_timer_that_had_fired_already_when_the_broker_answered_does_no_harm() -> None:
    client = bench()
    late = TimerFired(("contact", "dialled"))
    assert shown(client.handle(client.up(), late)) == [report(SchemeFound("tree")), ("b1", OpenSession(INSTANCE))]
    assert client.handle(late) == []


def test_a_client_that_is_closed_before_it_reached_anyone_answers_everything() -> None:
    client = bench()
    answers = client.ask(publish(1), Close())
    assert answers == [
        ("complete", 1, Published([(0, None, "the client was closed")])),
        ("complete", 2, Closed()),
    ]
    assert client.timers == {}
    late = client.up()
    assert shown(client.handle(late)) == [Disconnect(late.link, "not wanted any more")]
    assert client.ask(publish(2)) == [("complete", 3, Published([(0, None, "the client is closed")]))]


@pytest.mark.parametrize(
    ("scheme", "role", "reason", "refusal"),
    [
        ("x" * 99, Role.BROKER, f"b1 is of the scheme '{'x' * 64}', which is not known here; known are ", "scheme"),
        ("", Role.BROKER, "b1 names no scheme: it is of an earlier version", "scheme"),
        ("tree", Role.CLIENT, "b1 is no broker", "role"),
    ],
    ids=["unknown", "none", "a client"],
)
def test_what_a_client_can_t_go_on_with_is_told_and_the_next_address_tried(
    scheme: str, role: Role, reason: str, refusal: str
) -> None:
    client = bench("a:1", "a:2")
    up = client.up(scheme=scheme, role=role)
    closed, told = shown(client.handle(up))
    assert isinstance(closed, Disconnect)
    assert closed.link == up.link
    assert told == report(NotReached("a:1", closed.reason, refusal))
    assert closed.reason.startswith(reason)
    assert client.handle(LinkDown(up.link, "b1", closed.reason)) == []
    assert Connect("", "a:2") in client.advance(SECOND)
    assert shown(client.handle(client.up("b2", "a:2")))[0] == report(SchemeFound("tree"))


# ------------------------------------------------------------------------------------------------------------- later
def test_a_broker_of_another_scheme_ends_the_client() -> None:
    client = connected()
    client.ask(publish(1))
    client.handle(client.down())
    client.advance(SECOND)
    up = client.up(scheme="paxos")
    effects = shown(client.handle(up))
    assert effects == [
        Disconnect(up.link, "b1 is of the scheme 'paxos', and not of 'tree'"),
        report(SchemeChanged("a:1", "paxos", "tree")),
        ("complete", 1, Published([(0, None, "the client was closed")])),
        report(Closed()),
    ]
    assert client.handle(LinkDown(up.link, "b1", "gone")) == []
    assert shown(client.advance(60 * SECOND)) == []
    again = client.up(scheme="paxos")
    assert shown(client.handle(again)) == [Disconnect(again.link, "b1 is of the scheme 'paxos', and not of 'tree'")]


@pytest.mark.parametrize("scheme", ["", "unheard-of"])
def test_a_broker_of_no_known_scheme_is_passed_over_later_too(scheme: str) -> None:
    client = connected("a:1", "a:2")
    client.handle(client.down())
    client.advance(SECOND)
    up = client.up("b2", "a:2", scheme)
    why = f"b2 is of the scheme {scheme!r}, and not of 'tree'"
    assert shown(client.handle(up)) == [Disconnect(up.link, why), report(NotReached("a:2", why, "scheme"))]
    assert Connect("", "a:1") in client.advance(SECOND)


def test_a_replica_of_another_scheme_beside_the_session_ends_the_client_with_a_goodbye() -> None:
    client = bench()
    first = client.up(scheme="paxos")
    client.handle(first)
    client.say(SessionOpened(5, 0, 100, 9, direct=("a:2",)))
    up = client.up("b2", "a:2", "tree")
    assert shown(client.handle(up)) == [
        Disconnect(up.link, "b2 is of the scheme 'tree', and not of 'paxos'"),
        report(SchemeChanged("a:2", "tree", "paxos")),
        ("b1", CloseSession()),
    ]
    closed = shown(client.handle(Received(first.link, "b1", [SessionClosed()])))
    assert report(Closed()) in closed


def test_a_link_that_came_too_late_to_be_the_first_ends_nothing_whatever_its_scheme() -> None:
    client = bench("a:1", "a:2")
    client.advance(2 * SECOND)  # the first was given up, and the second is dialled
    client.handle(client.up("b2", "a:2"))
    client.say(OPENED, broker="b2")
    late = LinkUp(99, "b1", 1, Role.BROKER, True, "a:1", "paxos")
    assert shown(client.handle(late)) == [Disconnect(99, "b1 is of the scheme 'paxos', and not of 'tree'")]
    assert sent(client.ask(publish(1)), "b2")


def test_what_is_not_to_be_tried_again_is_refused_while_there_is_no_broker() -> None:
    client = bench()
    refused = Published([(0, None, requests.NOT_CONNECTED), (1, None, requests.NOT_CONNECTED)])
    assert client.ask(PublishEvents(publish(1, 2).events, retry=False)) == [("complete", 1, refused)]


def test_no_more_is_kept_than_may_wait() -> None:
    client = bench(waiting_max=3)
    assert client.ask(publish(1, 2), publish(3)) == []
    refused = Published([(0, None, "more than waiting_max events, 3, wait to be sent")])
    assert client.ask(publish(4)) == [("complete", 3, refused)]
    client.handle(client.up())
    assert [row[2] for row in sent(client.say(OPENED), "b1") if row[0] == "Publish"] == [[1, 2, 3]]


def test_a_client_that_is_dialled_is_not_taken_for_a_broker() -> None:
    client = connected("a:1", "a:2")
    client.handle(client.down())
    client.advance(SECOND)
    up = client.up("client:x", "a:2", role=Role.CLIENT)
    effects = shown(client.handle(up))
    assert effects == [Disconnect(up.link, "no broker"), report(NotReached("a:2", "client:x is no broker", "role"))]


@pytest.mark.parametrize("is_early", [True, False])
def test_a_client_whose_scheme_takes_no_links_closes_those_that_come(is_early: bool) -> None:
    client = bench() if is_early else connected()
    reason = (
        "this client has not reached a broker yet"
        if is_early
        else "clients of the scheme 'tree' take no links from clients"
    )
    up = LinkUp(9, "client:x", 1, Role.CLIENT, False)
    assert shown(client.handle(up)) == [Disconnect(9, reason)]
    assert client.handle(LinkDown(9, "client:x", reason)) == []


class Heard:
    """A node that writes down what it hears."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        self.inputs += inputs

    def check_invariants(self) -> None:
        pass

    def measure(self) -> dict[str, int]:
        return {"heard": len(self.inputs)}


class OneScheme(Schemes):
    """A registry of a scheme whose clients take links from clients."""

    def __init__(self, node: Node) -> None:
        super().__init__({"test": "none"})
        self._client = SchemeClient(lambda *_: node, client_catalogue_of("test"), frozenset({Role.CLIENT}))

    def client(self, kind: str) -> SchemeClient:
        return self._client


def test_a_scheme_s_client_gets_the_links_that_it_takes_and_no_others() -> None:
    heard = Heard()
    node = AnyClient(ClientSettings("c", ("a:1",)), Random(1), {}, OneScheme(heard))
    client = Bench(node)
    client.handle(Started(1))
    assert node.measure() == {}
    up = LinkUp(1, "b1", 1, Role.BROKER, True, "a:1", "test")
    taken, refused = (LinkUp(2, "client:x", 1, Role.CLIENT, False), LinkUp(3, "b2", 1, Role.BROKER, False))
    client.handle(up)
    reason = "clients of the scheme 'test' take no links from brokers"
    assert shown(client.handle(taken, refused)) == [Disconnect(3, reason)]
    dialled = LinkUp(4, "client:y", 1, Role.CLIENT, True, "a:4", "test")
    other = LinkUp(5, "client:z", 1, Role.CLIENT, True, "a:5", "tree")
    why = "client:z is of the scheme 'tree', and not of 'test'"
    assert shown(client.handle(dialled, other)) == [Disconnect(5, why)]
    assert heard.inputs == [Started(1), up, taken, dialled, ConnectFailed("client:z", "a:5", why, "scheme")]
    assert (node.measure(), node.measure_each()) == ({"heard": 5}, {})


# ------------------------------------------------------------------------------------------------------- catalogues
def test_clients_speak_what_all_do_with_those_whose_scheme_is_not_known() -> None:
    assert spoken_in("nothing") is CLIENT_CATALOGUE
    assert [spoken_in(kind).scheme for kind in SCHEMES.kinds] == list(SCHEMES.kinds)


@pytest.mark.parametrize("kind", SCHEMES.kinds)
def test_a_scheme_s_clients_speak_nothing_that_its_brokers_do_not(kind: str) -> None:
    client, broker = SCHEMES.client(kind).catalogue, SCHEMES[kind].catalogue
    assert client.scheme == broker.scheme == kind
    assert client.messages.types.items() <= broker.messages.types.items()
    assert client.large_kinds == broker.large_kinds & client.messages.types.keys()
    assert client.versions == broker.versions
