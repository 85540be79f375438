"""Exceptions that are kept and raised later: each raise has an exception of its own, which says the same."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast.apps.zapviewers.errors
import holdfast.errors
import holdfast.spark.errors
import holdfast.trace.errors
from holdfast.errors import BusClosed, HoldfastError, LogPoisoned, renewed

SAMPLES = {"str": "text", "int": 3, "int | None": 4, "Hashable": "id", "Sequence[str]": ("a", "b")}
SAMPLES["tuple[str, ...]"] = SAMPLES["Sequence[str]"]
SAMPLES["Mapping[str, tuple[int, int | None]]"] = {"events": (1, None)}


def every_error() -> Iterator[HoldfastError]:
    modules = (holdfast.errors, holdfast.trace.errors, holdfast.spark.errors, holdfast.apps.zapviewers.errors)
    kinds = {name: kind for module in modules for name, kind in vars(module).items()}
    for kind in kinds.values():
        if isinstance(kind, type) and issubclass(kind, HoldfastError):
            if kind.__init__ is Exception.__init__:
                yield kind("text")
                continue
            parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
            plain = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
            arguments: list[Any] = [SAMPLES[str(p.annotation)] for p in plain]
            yield kind(*(arguments or ["text"]))


@pytest.mark.parametrize("error", list(every_error()), ids=lambda error: type(error).__name__)
def test_every_error_can_be_renewed_and_pickled_with_all_that_it_says(error: HoldfastError) -> None:
    for again in (renewed(error), pickle.loads(pickle.dumps(error))):
        assert again is not error
        assert type(again) is type(error)
        assert (again.args, vars(again), str(again)) == (error.args, vars(error), str(error))


def test_an_error_that_is_raised_again_has_a_traceback_of_its_own_and_names_where_it_came_from() -> None:
    try:
        raise LogPoisoned("data/b1", "disk full")
    except LogPoisoned as first:
        kept = first
    lengths = []
    for _ in range(3):
        with pytest.raises(LogPoisoned) as raised:
            raise renewed(kept)
        lengths.append(len(traceback.extract_tb(raised.value.__traceback__)))
        assert raised.value.__cause__ is kept
    assert len(set(lengths)) == 1
    assert len(traceback.extract_tb(kept.__traceback__)) == 1


def test_an_error_that_nobody_raised_is_not_shown_as_a_cause() -> None:
    assert renewed(BusClosed("the bus was closed")).__cause__ is None


def test_an_error_of_another_library_that_cannot_be_copied_is_raised_as_it_is() -> None:
    class Peculiar(Exception):  # noqa: N818
        def __init__(self, one: int, two: int) -> None:
            super().__init__("always the same")

    peculiar = Peculiar(1, 2)
    assert renewed(peculiar) is peculiar
    full = OSError(28, "No space left on device", "data")
    assert str(renewed(full)) == str(full)


def test_errors_of_spark_are_known_without_spark() -> None:
    program = "import holdfast.spark.errors, sys; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
