"""Scenario files: what is written is read back, and what is wrong is refused with what, where and what to do."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ScenarioError
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim.run import run_scenario
from holdfast.sim.scenario import Broker, Scenario
from holdfast.sim.scenario_file import check_scenario, scenario_from_json, scenario_to_json

WHERE = "a.json"
DOCUMENT: dict[str, Any] = {
    "format": "holdfast-scenario",
    "version": 2,
    "name": "small",
    "seed": 1,
    "brokers": [{"id": "b1", "durable": True}, {"id": "b2"}],
    "clients": [{"id": "c1", "brokers": ["b1"]}, {"id": "c2", "brokers": ["b1", "b2"], "light": True}],
    "network": {
        "latency": {"model": "uniform", "low_us": 1, "high_us": 9},
        "adversary": {"loss": 0.5},
        "bytes_per_second": 9,
    },
    "actions": [
        {"do": "subscribe", "at_ms": 0, "client": "c2", "name": "s", "filter": "price > 1", "window": 3},
        {"do": "publish", "at_ms": 5, "client": "c1", "events": [{"attributes": {"price": 2}}]},
    ],
    "faults": [
        {"fault": "cut", "at_ms": 1, "for_ms": 2, "source": "c1", "target": "b1"},
        {"fault": "disk-slow", "at_ms": 1, "for_ms": 2, "host": "b1"},
        {"fault": "kill", "at_ms": 1, "for_ms": 2, "host": "c1"},
    ],
    "safety_ms": 10,
    "checkers": ["no-loss", "weak-ordered:b2"],
}  # fmt: skip


def _with(path: str, value: object) -> bytes:
    """The document with one field changed, or left out for `...`; the path is as in error messages."""
    document = json.loads(json.dumps(DOCUMENT))
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = document
    for step in steps:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(document).encode()


@given(st.integers(0, 2**32))
def test_what_is_written_is_read_back(seed: int) -> None:
    scenario = OneBrokerShape().draw(seed)
    text = scenario_to_json(scenario)
    assert scenario_from_json(text, WHERE) == scenario
    assert scenario_to_json(scenario_from_json(text, WHERE)) == text


def test_a_file_says_what_it_is() -> None:
    document = json.loads(scenario_to_json(OneBrokerShape().draw(1)))
    assert (document["format"], document["version"]) == ("holdfast-scenario", 2)


def test_a_file_with_every_part_is_read() -> None:
    scenario = scenario_from_json(json.dumps(DOCUMENT), WHERE)
    assert [client.light for client in scenario.clients] == [False, True]
    assert scenario_from_json(scenario_to_json(scenario), WHERE) == scenario


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        # what it is
        ("version", 3, "version 3, not 'holdfast-scenario' version 2"),
        ("version", ..., "version 0"),
        ("format", "holdfast-trace", "this is 'holdfast-trace'"),
        ("format", ..., "this is ''"),
        # fields
        ("colour", "red", "unknown field `colour`"),
        ("brokers.0.colour", "red", "unknown field `colour`"),
        ("network.adversary.colour", "red", "unknown field `colour`"),
        ("actions.0.colour", "red", "unknown field `colour`"),
        ("faults.0.colour", "red", "unknown field `colour`"),
        ("name", ..., "missing required field `name`"),
        ("actions.1.events", ..., "missing required field `events`"),
        ("seed", "one", "Expected `int`, got `str` - at `$.seed`"),
        ("brokers", {}, "$.brokers"),
        ("clients.0.brokers", "b1", "$.clients[0].brokers"),
        ("actions.0.do", "dance", "'dance' - at `$.actions[0].do`"),
        ("actions.0.overflow", "cry", "'cry' - at `$.actions[0].overflow`"),
        ("actions.1.events.0.attributes.price", [1], "$.actions[1].events[0]"),
        ("faults.0.fault", "flood", "'flood' - at `$.faults[0].fault`"),
        ("network.latency.model", "warp", "'warp' - at `$.network.latency.model`"),
        ("network.latency.low_us", 10, "high_us"),
        # values
        ("actions.0.at_ms", -1, ">= 0 - at `$.actions[0].at_ms`"),
        ("faults.0.at_ms", -1, ">= 0 - at `$.faults[0].at_ms`"),
        ("faults.0.for_ms", -1, ">= 0 - at `$.faults[0].for_ms`"),
        ("safety_ms", -1, "$.safety_ms"),
        ("liveness_ms", -1, "$.liveness_ms"),
        ("actions.0.window", 0, "$.actions[0].window"),
        ("actions.0.window", 65_537, "$.actions[0].window"),
        ("actions.1.events.0.payload_bytes", -1, "payload_bytes"),
        ("actions.1.events.0.lifetime_ms", -1, "lifetime_ms"),
        ("faults.1.times", 0, "$.faults[1].times"),
        ("network.adversary.loss", 1.5, "$.network.adversary.loss"),
        ("network.adversary.late_us_max", -1, "late_us_max"),
        ("network.bytes_per_second", -1, "bytes_per_second"),
        ("brokers.0.backlog_events", 0, "backlog_events"),
        ("brokers.0.snapshot_every", 0, "snapshot_every"),
        ("brokers.0.gather_us", -1, "gather_us"),
        ("brokers.0.sync_us", [9, 1], "sync_us of broker 'b1' is (9, 1)"),
        ("brokers.0.sync_us", [-1, 1], "sync_us"),
        ("clients.0.publish_window", 0, "publish_window"),
        # names
        ("clients.0.id", "b1", "2 hosts are called 'b1'"),
        ("brokers.1.id", "b1", "2 hosts are called 'b1'"),
        ("clients.1.id", "", "'' is no name for a host"),
        ("clients.1.id", "c:2", "'c:2' is no name for a host"),
        ("clients.1.id", "c/2", "'c/2' is no name for a host"),
        ("clients.1.id", "c>2", "'c>2' is no name for a host"),
        ("clients.0.brokers", ["b9"], "client 'c1' connects to 'b9'"),
        ("clients.0.brokers", ["c2"], "client 'c1' connects to 'c2'"),
        ("clients.0.brokers", [], "client 'c1' has no broker"),
        ("clients.1.consume_after_us", 1, "client 'c2' is light and takes its time"),
        ("clients.1.gather_us", 1, "client 'c2' is light and takes its time"),
        ("actions.0.client", "c9", "an action is by 'c9'"),
        ("actions.0.client", "b1", "an action is by 'b1'"),
        ("actions.1.client", "c2", "client 'c2' does more than subscribe, and is light"),
        ("faults.0.source", "c9", "a fault concerns 'c9'"),
        ("faults.0.target", "b9", "a fault concerns 'b9'"),
        ("faults.0.target", "c1", "a fault lies between 'c1' and itself"),
        ("faults.1.host", "b2", "the disk of 'b2', which has none"),
        ("faults.1.host", "c1", "the disk of 'c1', which has none"),
        ("faults.2.host", "nobody", "a fault concerns 'nobody'"),
        ("checkers", ["perfection"], "perfection"),
        ("checkers", ["weak-ordered"], "weak-ordered"),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_with_what_where_and_what_to_do(path: str, value: object, problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_from_json(_with(path, value), WHERE)
    error = caught.value
    assert problem in error.problem
    assert error.where == WHERE
    assert len(error.remedy.split()) > 2
    assert str(error) == f"{WHERE}: {error.problem}; {error.remedy}"


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format": 1}', b"[" * 100_000, b'{"x":' * 100_000, "{'name': 1}"],
)
def test_what_is_no_scenario_at_all_is_refused(text: bytes | str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_from_json(text, WHERE)
    assert caught.value.where == WHERE


def test_a_newer_version_is_told_by_its_number_even_if_it_has_fields_of_its_own() -> None:
    newer = {**DOCUMENT, "version": 3, "weather": "bad"}
    with pytest.raises(ScenarioError, match="version 3"):
        scenario_from_json(json.dumps(newer), WHERE)


def test_a_scenario_that_was_made_in_a_program_is_checked_too() -> None:
    scenario = Scenario(
        name="made",
        seed=1,
        brokers=[Broker(id="b1", gather_us=-1)],
        clients=[],
        actions=[],
        faults=[],
        safety_ms=1,
        checkers=[],
    )
    with pytest.raises(ScenarioError, match="gather_us"):
        check_scenario(scenario, WHERE)
    with pytest.raises(ScenarioError, match=r"scenario made, seed 1: .*gather_us"):
        run_scenario(scenario)


GROUP: dict[str, Any] = {
    **DOCUMENT,
    "system": "paxos",
    "settings": {"protocol": "multi", "pipeline": 2},
    "brokers": [{"id": f"b{n}", "durable": True} for n in (1, 2, 3)],
    "clients": [{"id": name, "brokers": ["b3", "b1", "b2"]} for name in ("c1", "c2")],
}


def test_a_scenario_of_a_group_is_read_written_and_run() -> None:
    scenario = scenario_from_json(json.dumps(GROUP), WHERE)
    assert scenario_from_json(scenario_to_json(scenario), WHERE) == scenario
    assert run_scenario(scenario).clean


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"system": "tree"}, "the setting 'protocol' is 'multi', and has to be one of basic, synch, increm"),
        (
            {"brokers": [*GROUP["brokers"], *({"id": f"b{n}", "durable": True} for n in (4, 5, 6))]},
            "a group of 6 brokers",
        ),
        ({"brokers": [*GROUP["brokers"][:2], {"id": "b3"}]}, "broker 'b3' is of a group, and has no disk"),
        (
            {"brokers": [*GROUP["brokers"][:2], {"id": "b3", "durable": True, "snapshot_every": 3}]},
            "broker 'b3' has snapshot_every",
        ),
        (
            {"brokers": [*GROUP["brokers"][:2], {"id": "b3", "durable": True, "backlog_events": 3}]},
            "backlog_events of 'b3' and of 'b1' differ",
        ),
        ({"clients": DOCUMENT["clients"]}, "client 'c1' does not know b2, b3"),
        ({"settings": {"protocol": "slow"}}, "'slow'"),
        ({"settings": {"pipeline": 0}}, "pipeline"),
        ({"links": [("b1", "b2")]}, "links are described, and 'paxos' has none"),
        (
            {
                "faults": [
                    {"fault": "power-cut", "at_ms": 1, "for_ms": 1, "host": host, "wipe": True} for host in ("b1", "b3")
                ]
            },
            "the disks of b1, b3 are wiped, and a wiped replica never votes again",
        ),
    ],
)
def test_a_group_that_cannot_be_is_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_from_json(json.dumps({**GROUP, **changes}), WHERE)
    assert problem in caught.value.problem
