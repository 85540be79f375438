"""A stand-in looks after what it keeps for subscriptions when these come, and not in each turn."""

from __future__ import annotations

from collections import Counter

import pytest

from experiments.standin.campaign import INCREM
from experiments.standin.metrics import measure
from experiments.standin.paced import Fixed
from experiments.standin.setting import Setting, Transport
from experiments.standin.simulated import play
from experiments.standin.workload import Workload
from holdfast.schemes.tree.standin.missed import Missed


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the stand-in asked what it keeps."""
    counted: Counter[str] = Counter()
    for name in (Missed.awaited.__name__, Missed.take.__name__):
        original = getattr(Missed, name)

        def count(self: Missed, *arguments: str, name: str = name, original: object = original) -> object:
            counted[name] += 1
            assert callable(original)
            return original(self, *arguments)

        monkeypatch.setattr(Missed, name, count)
    return counted


def test_a_stand_in_looks_once_at_each_subscription_that_comes_and_serves_it(asked: Counter[str]) -> None:
    """D0-B12: with so many turns as subscriptions, and so many that are waited for, it would look at their square."""
    setting = Setting(INCREM, Workload(200, 100), 2, Transport.ONE_BY_ONE)
    measured = measure(setting, play(setting, Fixed()).seen)
    assert (measured.dropped, measured.silent) == (0.0, 0.0)
    assert asked["awaited"] == 1, "at the end"
    assert 0 < asked["take"] <= 2 * setting.workload.subscriptions
