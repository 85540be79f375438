"""Blocks of drawn runs that have to be clean, and in which something has to happen."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.sim.campaign import Campaign, Source, run_campaign, scenario_for
from holdfast.sim.run import Factories, run_scenario
from holdfast.sim.simulation import RowSink


def summarise(campaign: Campaign) -> str:
    return "\n".join(f"seed {outcome.seed}: {outcome.problem}" for outcome in campaign.failed)


def check_block(
    source: Source,
    seeds: range,
    delivered: int,
    faults: int,
    sinks: Sequence[RowSink] = (),
    factories: Factories | None = None,
) -> None:
    """Runs all seeds, in this process. A block in which nothing happens proves nothing: there have to be more than
    `delivered` events and `faults` faults a run."""
    campaign = Campaign(failed=[])
    for seed in seeds:
        campaign.add(run_scenario(scenario_for(source, seed), factories, sinks))
    assert not campaign.failed, summarise(campaign)
    assert campaign.events_delivered > delivered * len(seeds)
    assert campaign.faults > faults * len(seeds)


def check_campaign(source: Source, seeds: range, what: str, jobs: int = 2) -> None:
    """A long campaign: in processes of its own, with a line now and then and a summary."""
    last = 0

    def show(campaign: Campaign) -> None:
        nonlocal last
        if campaign.runs >= last + 1_000:
            last = campaign.runs
            print(f"{campaign.runs:,} of {len(seeds):,} seeds, {len(campaign.failed)} failed", flush=True)

    campaign = run_campaign(source, seeds, jobs, progress=show)
    print(
        f"summary: {campaign.runs:,} seeds of {what}, {len(campaign.failed)} with a violation: "
        f"{campaign.events_delivered:,} deliveries, {campaign.faults:,} faults, {campaign.steps:,} steps"
    )
    assert not campaign.failed, summarise(campaign)
