"""What operators ask of brokers of every scheme, and scenarios in which they ask."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from msgspec.structs import replace

from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import Making
from holdfast.errors import ScenarioError
from holdfast.kernel.inputs import LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Disconnect, RecordingOutbox, Send, Stop
from holdfast.protocols.operating.messages import Change, ChangeBegun, Inspect, Inspected
from holdfast.sim.scenario import Operate
from holdfast.sim.scenario_file import check_scenario
from holdfast.sim.swarm import swarm_of
from tests.schemes.sites import KINDS, initial_site

every_kind = pytest.mark.parametrize("kind", KINDS)
OPERATOR = "operator:o"


class Asked:
    """A broker of the initial site, that an operator has a link to."""

    def __init__(self, kind: str) -> None:
        site = initial_site(kind)
        self.node = site.scheme.make_node(Making(site.told(site.brokers[0]), Random(1), {}))
        self.out = RecordingOutbox(tracing=False)
        self.node.handle([Started(1, "disk")], self.out)
        self.node.handle([LinkUp(1, OPERATOR, 1, Role.OPERATOR, False)], self.out)

    def ask(self, message: Message) -> Message:
        self.out.take_effects()
        self.node.handle([Received(1, OPERATOR, [message])], self.out)
        self.node.check_invariants()
        effects = self.out.take_effects()
        assert not [effect for effect in effects if isinstance(effect, Disconnect | Stop)]
        (said,) = [effect.message for effect in effects if isinstance(effect, Send) and effect.to == OPERATOR]
        return said

    def change(self, action: str, told: Mapping[str, str]) -> str:
        answer = self.ask(Change(7, action, dict(told)))
        assert isinstance(answer, ChangeBegun)
        assert answer.request == 7
        return answer.problem


@every_kind
def test_a_change_that_there_is_not_is_answered_in_words(kind: str) -> None:
    broker = Asked(kind)
    for action in ("", "dance", "x" * 10_000):
        problem = broker.change(action, {"with": "y" * 10_000})
        assert 0 < len(problem) < 1_000


@every_kind
def test_what_a_change_lacks_or_nobody_knows_of_it_is_answered_in_words(kind: str) -> None:
    broker = Asked(kind)
    for action, told in swarm_of(kind).operations.items():
        assert "there is no change" not in broker.change(action, dict.fromkeys(told, "nobody"))
        assert "nothing is known of 'odd'" in broker.change(action, {"odd": "1"})
        for text in ("", "\0", "z" * 10_000, "b1"):
            assert len(broker.change(action, dict.fromkeys(told, text))) < 100_000


@every_kind
def test_operators_are_told_the_scheme_and_texts_and_nothing_changes_by_asking(kind: str) -> None:
    broker = Asked(kind)
    first, second = broker.ask(Inspect(1)), broker.ask(Inspect(1))
    assert isinstance(first, Inspected)
    assert isinstance(second, Inspected)
    assert (first.facts, first.measures) == (second.facts, second.measures)
    assert first.facts["scheme"] == kind
    assert all(type(name) is type(text) is str for name, text in first.facts.items())


@every_kind
def test_a_scenario_in_which_operators_ask_for_what_there_is_not_is_refused(kind: str) -> None:
    for shape in swarm_of(kind).shapes.values():
        drawn = replace(shape.draw(1), operations=[Operate(at_ms=1, action="dance")])
        with pytest.raises(ScenarioError, match=r"there is no change 'dance'|operations are given|have none"):
            check_scenario(drawn, "a.json")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not SCHEMES[kind].has_spares])
def test_a_scenario_has_spare_brokers_only_where_sites_may_have_some(kind: str) -> None:
    drawn = next(iter(swarm_of(kind).shapes.values())).draw(1)
    spare = replace(drawn.brokers[0], id="spare", spare=True)
    with pytest.raises(ScenarioError, match=f"'spare' is spare, and '{kind}' has no spares"):
        check_scenario(replace(drawn, brokers=[*drawn.brokers, spare]), "a.json")
