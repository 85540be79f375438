"""All mistakes that swarms have to see, under one name each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from tests.paxos import change_mutants, fast_mutants
from tests.paxos import mutants as replica_mutants
from tests.planted.fresh import FRESH
from tests.planted.swarms import SeenBySwarm
from tests.planted.verdicts import VERDICTS
from tests.sim import (
    changing_mutants,
    group_mutants,
    hosted_mutants,
    named_group_mutants,
    named_mutants,
    network_mutants,
    viewership_mutants,
)
from tests.sim import mutants as broker_mutants


class Mistake(Protocol):
    """One mistake, planted in the runs of one swarm. What is said of a run is empty if nothing is wrong with it."""

    @property
    def swarm(self) -> str: ...

    @property
    def mistake(self) -> str: ...

    def seen(self, seed: int) -> str:
        """What the swarm says of the run with the mistake."""
        ...

    def sound(self, seed: int) -> str:
        """What it says of the same run without."""
        ...


_MISTAKES: Iterable[Any] = (
    *broker_mutants.MUTANTS,
    *named_mutants.MUTANTS,
    *hosted_mutants.MUTANTS,
    *network_mutants.MUTANTS,
    *changing_mutants.MUTANTS,
    *group_mutants.MUTANTS,
    *named_group_mutants.MUTANTS,
    *viewership_mutants.MUTANTS,
    *replica_mutants.MUTANTS,
    *fast_mutants.FAST_MUTANTS,
    *change_mutants.MUTANTS,
    *(SeenBySwarm(fresh, swarm) for fresh in FRESH if (swarm := VERDICTS[fresh.mistake].swarm)),
)

MISTAKES: dict[str, Mistake] = {}
for _mistake in _MISTAKES:
    _name = f"{_mistake.swarm}: {_mistake.mistake}"
    assert _name not in MISTAKES, f"two mistakes are called {_name!r}"
    MISTAKES[_name] = _mistake
