"""A publishing or subscribing process: `python -m benchmarks.peers.worker SYSTEM publish|subscribe JOB`."""

from __future__ import annotations

import logging
import sys

import msgspec

from benchmarks.peers.loads import Job
from benchmarks.peers.systems import SYSTEMS


def main() -> None:
    _, name, role, job = sys.argv
    logging.disable(logging.CRITICAL)  # amqtt says something for every message
    system = SYSTEMS[name]
    (system.publish if role == "publish" else system.subscribe)(msgspec.json.decode(job, type=Job))


if __name__ == "__main__":
    main()
