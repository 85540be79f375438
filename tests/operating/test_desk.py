"""Operators are told how a broker is; nobody else is, and nothing changes by asking."""

from random import Random

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.client_assembly import make_operator
from holdfast.broker.measures import MEASURES, NODE_MEASURES
from holdfast.cli.status import HEADINGS
from holdfast.kernel.inputs import ConnectFailed, LinkDown, LinkUp, Received, Requested, Started
from holdfast.kernel.links import Role
from holdfast.kernel.outbox import NOW, Complete, Connect, Disconnect, RecordingOutbox, Send
from holdfast.kernel.parts import Assembly
from holdfast.kernel.time import SECOND
from holdfast.protocols.operating.changes import NO_CHANGES
from holdfast.protocols.operating.messages import Change, ChangeBegun, Inspect, Inspected, LinkReport
from holdfast.protocols.operating.operator import AskBroker, AskToChange, Unreachable
from holdfast.protocols.sessions.messages import OpenSession, Publish, Subscribe
from holdfast.schemes.tree.parts import make_broker
from tests.sessions.bench import batch
from tests.sessions.counting import Counting

OPERATOR = "operator:o"


def broker(application: Counting | None = None) -> tuple[Assembly, RecordingOutbox]:
    settings = BrokerSettings("b1", application="" if application is None else "counting")
    node, out = make_broker(settings, Random(1), {}, application), RecordingOutbox(tracing=False)
    out.now = 5 * SECOND
    node.handle([Started(77)], out)
    out.now = 7 * SECOND
    node.handle([LinkUp(1, "client:p", 1, Role.CLIENT, False)], out)
    out.now = 8 * SECOND
    node.handle([LinkUp(2, OPERATOR, 1, Role.OPERATOR, False)], out)
    return node, out


def inspected(node: Assembly, out: RecordingOutbox, links: int = 100, application: bool = False) -> Inspected:
    out.take_effects()
    node.handle([Received(2, OPERATOR, [Inspect(9, links, application)])], out)
    (send,) = [effect for effect in out.take_effects() if isinstance(effect, Send)]
    assert (send.to, send.after) == (OPERATOR, NOW)
    assert isinstance(send.message, Inspected)
    return send.message


def test_an_operator_is_told_who_is_there_and_what_is_measured() -> None:
    node, out = broker()
    said = [OpenSession(1), Subscribe(1, "n > 1"), Publish(1, batch(1, 2, 3))]
    node.handle([Received(1, "client:p", said)], out)
    answer = inspected(node, out)
    assert (answer.request, answer.broker, answer.incarnation, answer.uptime) == (9, "b1", 77, 3 * SECOND)
    assert set(answer.measures) == {
        name for name in NODE_MEASURES if not name.startswith(("log_", "named_", "staged_", "replica_", "application_"))
    }
    wanted = {"sessions": 1, "clients_connected": 1, "subscriptions": 1, "events_accepted_total": 3}
    wanted |= {"events_sent_total": 2, "backlog_events": 2, "backlog_events_longest": 2, "advertisements": 0}
    assert {name: answer.measures[name] for name in wanted} == wanted
    assert answer.facts == {"scheme": "tree", "durable": "no"}
    waiting = out.queues["client:p"]
    assert answer.links == (
        LinkReport("client:p", "client", 1 * SECOND, len(waiting), waiting.bytes),
        LinkReport(OPERATOR, "operator", 0, 0, 0),
    )


def test_no_more_links_are_told_of_than_asked_for_those_with_most_waiting_first() -> None:
    node, out = broker()
    node.handle([LinkUp(3, "client:q", 1, Role.CLIENT, False)], out)
    node.handle([Received(3, "client:q", [OpenSession(1)])], out)
    answer = inspected(node, out, links=1)
    assert (answer.links_total, [link.peer for link in answer.links]) == (3, ["client:q"])
    assert inspected(node, out, links=-5).links == ()


def test_the_state_of_a_hosted_application_is_told_if_it_is_asked_for() -> None:
    application = Counting()
    node, out = broker(application)
    assert "application_digest" not in inspected(node, out).facts
    before = inspected(node, out, application=True).facts
    assert before["application"] == "counting"
    assert inspected(node, out, application=True).facts == before
    application.count += 1
    assert inspected(node, out, application=True).facts["application_digest"] != before["application_digest"]
    assert inspected(*broker(), application=True).facts == {"scheme": "tree", "durable": "no"}


def test_a_broker_on_its_own_is_not_changed() -> None:
    node, out = broker()
    out.take_effects()
    node.handle([Received(2, OPERATOR, [Change(9, "add-broker", {"id": "b2"})])], out)
    assert out.take_effects() == [Send(OPERATOR, ChangeBegun(9, NO_CHANGES), after=NOW)]


def test_what_is_asked_for_is_what_the_broker_is_told() -> None:
    node, out = operator()
    node.handle([LinkUp(1, "b1", 1, Role.BROKER, True, "a:1")], out)
    node.handle([Requested(1, AskToChange("add", {"id": "r4"}))], out)
    assert out.take_effects() == [Send("b1", Change(1, "add", {"id": "r4"}), after=NOW)]
    node.handle([Received(1, "b1", [ChangeBegun(1, "no")])], out)
    assert out.take_effects() == [Complete(1, ChangeBegun(1, "no"))]


def test_a_client_that_asks_is_cut_off() -> None:
    node, out = broker()
    out.take_effects()
    node.handle([Received(1, "client:p", [Inspect(1)])], out)
    problem = "protocol error: Inspect is not for this node to receive from client:p"
    assert [effect for effect in out.take_effects() if isinstance(effect, Disconnect)] == [Disconnect(1, problem)]


def test_an_operator_that_publishes_is_cut_off() -> None:
    node, out = broker()
    out.take_effects()
    node.handle([Received(2, OPERATOR, [OpenSession(1)])], out)
    assert [effect.link for effect in out.take_effects() if isinstance(effect, Disconnect)] == [2]


def test_nothing_is_left_of_an_operator_that_leaves() -> None:
    node, out = broker()
    inspected(node, out)
    node.handle([LinkDown(2, OPERATOR, "gone")], out)
    assert OPERATOR not in out.queues
    node.handle([LinkUp(4, OPERATOR, 2, Role.OPERATOR, False)], out)
    node.handle([Received(4, OPERATOR, [Inspect(1)])], out)
    assert len(out.queues[OPERATOR]) == 1


# ------------------------------------------------------------------------------------------------------ the operator
def operator() -> tuple[Assembly, RecordingOutbox]:
    node, out = make_operator("a:1"), RecordingOutbox(tracing=False)
    node.handle([Started(1)], out)
    assert out.take_effects() == [Connect("", "a:1")]
    return node, out


def test_what_was_asked_before_there_was_a_link_is_asked_then() -> None:
    node, out = operator()
    node.handle([Requested(1, AskBroker(7, True))], out)
    assert out.take_effects() == []
    node.handle([LinkUp(1, "b1", 1, Role.BROKER, True, "a:1")], out)
    assert out.take_effects() == [Send("b1", Inspect(1, 7, True), after=NOW)]
    answer = Inspected(1, "b1", 1, 2, {}, {}, 0)
    node.handle([Received(1, "b1", [answer, answer])], out)
    assert out.take_effects() == [Complete(1, answer)]


def test_everyone_who_waits_hears_that_the_broker_is_gone_and_so_does_who_asks_later() -> None:
    for loss in (ConnectFailed("", "a:1", "refused"), LinkDown(1, "b1", "refused")):
        node, out = operator()
        node.handle([Requested(1, AskBroker()), loss, Requested(2, AskBroker())], out)
        assert out.take_effects() == [Complete(1, Unreachable("refused")), Complete(2, Unreachable("refused"))]


def test_no_measure_claims_to_know_of_events_that_never_arrived() -> None:
    """Real-time reliability (D1-B10) counts all that was published, and a broker knows what reached it: what it shows
    reads best when the network fails. So it is called by what it counts."""
    claims = {name: meaning for name, meaning in MEASURES.items() if "reliability" in name or "reliability" in meaning}
    assert claims == {}
    assert "arrived" in MEASURES["on_time_of_arrived_per_mille"]
    assert "on time" not in HEADINGS
    assert "on time, of arrived" in HEADINGS
