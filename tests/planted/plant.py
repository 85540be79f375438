"""A plugin of pytest that plants one mistake of `fresh.py` for all tests of a run: does a test see it?

PLANTED=fast-quorum-of-two-thirds python -m pytest -p tests.planted.plant -x tests/paxos
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from tests.planted.fresh import FRESH

_planted = ExitStack()


def pytest_configure() -> None:
    for fresh in FRESH:
        if fresh.mistake == os.environ["PLANTED"]:
            _planted.enter_context(fresh.planted())


def pytest_unconfigure() -> None:
    _planted.close()
