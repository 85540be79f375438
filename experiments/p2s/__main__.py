"""The command line of the package."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from experiments import p2s
from experiments.p2s.campaign import FULL, QUICK, Campaign, run
from experiments.p2s.document import write

RESULTS = Path(__file__).parents[2] / "docs" / "p2s-results"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def command_of(campaign: Campaign) -> str:
    """What measured it."""
    quick = campaign.results.seconds < FULL.seconds
    rounds = campaign.results.rounds
    said = [
        *(["--quick"] if quick else []),
        *([f"--rounds {rounds}"] if rounds != (QUICK if quick else FULL).rounds else []),
    ]
    return " ".join(["python -m experiments.p2s", *said])


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="experiments.p2s", description=(p2s.__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1 and 3 replicas, 1 and 3 publishers, a second each")
    parser.add_argument("--rounds", type=int, help=f"default {FULL.rounds}")
    parser.add_argument("--to", type=Path, default=RESULTS, help="where the files go (default: docs/p2s-results)")
    parser.add_argument("--folder", help="where replicas keep their data (default: a temporary folder)")
    parser.add_argument("--read", type=Path, metavar="FILE", help="a results.json: draws it again, measures nothing")
    arguments = parser.parse_args(words)
    plan = QUICK if arguments.quick else FULL
    if arguments.rounds:
        plan = plan._replace(rounds=arguments.rounds)
    if arguments.read:
        campaign = msgspec.json.decode(arguments.read.read_bytes(), type=Campaign)
    else:
        campaign = run(plan, _tell, arguments.folder)
    for path in write(campaign, arguments.to, command_of(campaign)):
        print(f"written: {path}")


if __name__ == "__main__":
    main()
