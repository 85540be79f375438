"""The swarms of all systems under one name each: what one says of the run of a seed, empty if nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from experiments.standin.protocols import CASES
from experiments.standin.runs import play as replacement
from holdfast.schemes.paxos.draw import group_shape
from holdfast.schemes.paxos.settings import Protocol
from holdfast.schemes.tree.draw_network import NetworkShape
from holdfast.schemes.tree.draw_standing_in import StandingInShape
from holdfast.schemes.tree.one_broker import OneBrokerShape
from holdfast.sim.run import run_scenario
from holdfast.sim.swarm import Shape
from tests.paxos import change_swarm, fast_swarm
from tests.paxos import swarm as replica_swarm
from tests.planted.edits import Fresh
from tests.sim import named_group_world, named_world
from tests.sim.claims import claims_watched

Swarm = Callable[[int], str]


def _of_shape(shape: Shape, seed: int) -> str:
    return run_scenario(shape.draw(seed)).problem


def _network(seed: int) -> str:
    return run_scenario(NetworkShape().draw(seed), claims_watched()).problem


def _stand_ins(seed: int) -> str:
    return run_scenario(StandingInShape().draw(seed), claims_watched()).problem


def _replacements(seed: int) -> str:
    """One protocol after the other; what its line of the first paper's table promises."""
    cases = [case for case in CASES if case.is_permanent]
    return replacement(cases[seed % len(cases)], seed).problem


def _fast_group(seed: int) -> str:
    size = (3, 4, 5, 7)[seed % 4]
    names = [f"b{number}" for number in range(1, size + 1)]
    return _of_shape(group_shape(names, Protocol.FAST, name=f"fast-{size}"), seed)


SWARMS: Final[dict[str, Swarm]] = {
    "one broker": partial(_of_shape, OneBrokerShape()),
    "one broker, lifetimes": partial(_of_shape, OneBrokerShape(lifetimes=True, name="mortal")),
    "names": named_world.problem,
    "networks": _network,
    "groups": partial(_of_shape, group_shape()),
    "groups, fast rounds": _fast_group,
    "names in groups": named_group_world.problem,
    "replicas": replica_swarm.problem,
    "fast rounds": fast_swarm.problem,
    "changing groups": change_swarm.problem,
    "stand-ins": _stand_ins,
    "replacements": _replacements,
}


def said(swarm: str, seed: int) -> str:
    """What the swarm says; whatever stops a run is said, too."""
    try:
        return SWARMS[swarm](seed)
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"


class SeenBySwarm(msgspec.Struct, frozen=True):
    """A mistake of `fresh.py`, planted in the runs of a swarm."""

    fresh: Fresh
    swarm: str

    @property
    def mistake(self) -> str:
        return self.fresh.mistake

    def seen(self, seed: int) -> str:
        with self.fresh.planted():
            return said(self.swarm, seed)

    def sound(self, seed: int) -> str:
        return said(self.swarm, seed)
