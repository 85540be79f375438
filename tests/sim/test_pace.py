"""Scenarios that last days: a quiet hour costs little, and rows of brokers can be left out of what is measured."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.sim.run import measure_scenario, run_scenario
from holdfast.sim.scenario import Broker, Client, Kill, Publish, Scenario, ScenarioEvent, Subscribe
from holdfast.trace import schema
from tests.sim.scripted import Rows

HOUR_MS = 3_600_000
OF_CLIENTS = (schema.Subscribed, schema.Confirmed, schema.Published, schema.Delivered, schema.Missed, schema.Fault)
QUIET_BROKER = Broker(
    id="b1", durable=True, tick_ms=HOUR_MS, silent_ms=3 * HOUR_MS, repeat_ms=2 * HOUR_MS, retain_ms=HOUR_MS
)


def _day(light: bool) -> Scenario:
    """A day with an event every hour, and a broker that is away for a minute."""
    client = Client(id="s1", brokers=("b1",), light=light, ping_ms=HOUR_MS, report_ms=HOUR_MS, pause_ms_max=10_000)
    return Scenario(
        name="day",
        seed=1,
        brokers=[QUIET_BROKER],
        clients=[client, replace(client, id="p1", light=False)],
        actions=[
            Subscribe(at_ms=1_000, client="s1", name="all", filter=""),
            *(
                Publish(at_ms=hour * HOUR_MS, client="p1", events=[ScenarioEvent(topic=str(hour))])
                for hour in range(1, 24)
            ),
        ],
        faults=[Kill(at_ms=HOUR_MS + 60_000, for_ms=60_000, host="b1")],
        safety_ms=24 * HOUR_MS,
        checkers=["at-most-once", "no-loss", "complete"],
    )


@pytest.mark.parametrize("light", [False, True])
def test_a_quiet_day_is_made_of_few_turns_and_loses_nothing(light: bool) -> None:
    outcome = run_scenario(_day(light=light))
    assert outcome.clean
    assert outcome.events_delivered == 23
    assert outcome.steps < 700


def test_a_measured_run_has_the_clients_rows_of_a_checked_one_and_no_others() -> None:
    measured, checked = Rows(), Rows()
    measure_scenario(_day(light=True), [measured])
    run_scenario(_day(light=True), sinks=[checked])
    assert {type(row) for row in measured.rows} >= set(OF_CLIENTS) - {schema.Missed}
    assert not {schema.Hop, schema.QueueLength} & {type(row) for row in measured.rows}
    assert [row for row in measured.rows if isinstance(row, OF_CLIENTS)] == [
        row for row in checked.rows if isinstance(row, OF_CLIENTS)
    ]


@pytest.mark.parametrize("light", [False, True])
def test_a_client_that_reports_seldom_reports_before_its_window_is_full(light: bool) -> None:
    day = _day(light)
    events = [ScenarioEvent(topic=str(number)) for number in range(40)]
    outcome = run_scenario(
        replace(
            day,
            actions=[
                Subscribe(at_ms=1_000, client="s1", name="all", filter="", window=4),
                Publish(at_ms=10_000, client="p1", events=events),
            ],
            faults=[],
            safety_ms=60_000,
            liveness_ms=0,
            checkers=["at-most-once"],
        )
    )
    assert outcome.events_delivered == 40
