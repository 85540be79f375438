"""The library without asyncio has what the one with asyncio has: methods, their parameters, and what they say."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from holdfast.client import Advertisement, Bus, NamedSubscription, Subscription, blocking, bus
from holdfast.client.stages import BlockingStage, Stage

PAIRS = [
    (Bus, blocking.BlockingBus),
    (Subscription, blocking.BlockingSubscription),
    (NamedSubscription, blocking.BlockingNamedSubscription),
    (Advertisement, blocking.BlockingAdvertisement),
    (Stage, BlockingStage),
]

# Methods of one that the other does without, each with the reason.
ASYNCIO_ONLY = {
    "Bus.open": "`with` opens",
    "Bus.state": "read by another thread it may be over already; on_state tells",
    "Bus.reason": "NotConnected has it",
    "Bus.unanswered": "read by another thread it may be over already; flush waits",
    "Bus.on_deliver": "called by the driver",
    "Bus.on_complete": "called by the driver",
    "Subscription.take": "what batches() gives one by one",
    "NamedSubscription.take": "what batches() gives one by one",
}
BLOCKING_ONLY = {
    "BlockingBus.name": "an attribute of Bus",
    "BlockingBus.head_later": "a task of asyncio does it there",
    "BlockingBus.read_batches": "LogRange.batches",
    "BlockingBus.read_encoded": "LogRange.encoded",
    "BlockingNamedSubscription.gaps": "an attribute of NamedSubscription",
    "BlockingSubscription.missed": "an attribute of Subscription",
    "BlockingSubscription.gaps": "an attribute of Subscription",
    "BlockingSubscription.expired": "an attribute of Subscription",
    "BlockingNamedSubscription.name": "an attribute of NamedSubscription",
    "BlockingNamedSubscription.expired": "an attribute of NamedSubscription",
    "BlockingNamedSubscription.acknowledged": "an attribute of NamedSubscription",
    "BlockingAdvertisement.filter": "an attribute of Advertisement",
    "BlockingStage.incarnation": "an attribute of Stage",
}
# Nobody can put a time limit around a call that blocks; with asyncio everybody can.
TIME_LIMIT = inspect.Parameter("timeout_s", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
WITH_TIME_LIMIT = {
    "BlockingBus.commit",
    "BlockingBus.open_stage",
    "BlockingSubscription.next",
    "BlockingNamedSubscription.next",
}


def public(kind: type) -> dict[str, Any]:
    return {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items() if name[0] != "_"}


def parameters(function: Any) -> list[inspect.Parameter]:
    found = inspect.signature(function).parameters.values()
    return [one.replace(annotation=inspect.Parameter.empty) for one in found]


def differences(one: type, other: type) -> list[str]:
    """What a method or a parameter is missing from, by name."""
    here, there = public(one), public(other)
    lacking = [f"{one.__name__}.{name}" for name in here.keys() - there.keys()]
    told = [name for name in lacking if name not in ASYNCIO_ONLY]
    lacking = [f"{other.__name__}.{name}" for name in there.keys() - here.keys()]
    told += [name for name in lacking if name not in BLOCKING_ONLY]
    for name in here.keys() & there.keys():
        full = f"{other.__name__}.{name}"
        if inspect.isfunction(here[name]) and inspect.isfunction(there[name]):
            expected = parameters(here[name]) + [TIME_LIMIT] * (full in WITH_TIME_LIMIT)
            if parameters(there[name]) != expected:
                told.append(f"{full}{inspect.signature(there[name])}")
        elif type(here[name]) is not type(there[name]):
            told.append(full)
    return sorted(told)


def summary(member: Any) -> str:
    """The first clause of what it says of itself: details of one kind may follow."""
    text = " ".join((inspect.getdoc(member) or "").split())
    return text.split(".")[0].split(";")[0].split(",")[0].split(":")[0]


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_have_the_same_methods_with_the_same_parameters(one: type, other: type) -> None:
    assert differences(one, other) == []


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=lambda kind: kind.__name__)
def test_both_say_the_same_of_their_methods(one: type, other: type) -> None:
    here, there = public(one), public(other)
    both = sorted(here.keys() & there.keys())
    assert {name: summary(there[name]) for name in both} == {name: summary(here[name]) for name in both}


def test_both_are_connected_alike() -> None:
    assert parameters(blocking.connect) == parameters(bus.connect)
    assert parameters(blocking.BlockingBus) == parameters(Bus)


def test_every_exception_from_the_rule_is_needed() -> None:
    there = {f"{kind.__name__}.{name}": f"{other.__name__}.{name}" for kind, other in PAIRS for name in public(kind)}
    back = {f"{other.__name__}.{name}": f"{kind.__name__}.{name}" for kind, other in PAIRS for name in public(other)}
    assert {name for name in ASYNCIO_ONLY if name not in there or there[name] in back} == set()
    assert {name for name in BLOCKING_ONLY if name not in back or back[name] in there} == set()


class _Grown(Bus):
    async def replay(self) -> None: ...

    async def forget(self, name: str, force: bool = False) -> bool: ...  # type: ignore[empty-body]


class _GrownToo(blocking.BlockingBus):
    def rewind(self) -> None: ...


def test_a_method_or_a_parameter_that_one_of_them_lacks_is_told() -> None:
    found = differences(_Grown, blocking.BlockingBus)
    assert [name for name in found if name.startswith(("_Grown.replay", "BlockingBus.forget"))] == [
        "BlockingBus.forget(self, name: 'str') -> 'bool'",
        "_Grown.replay",
    ]
    assert "_GrownToo.rewind" in differences(Bus, _GrownToo)
