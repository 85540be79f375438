"""Every test that asks for `index` runs once for each engine that this installation has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import FilterIndex
from holdfast.matching.index import ENGINES


@pytest.fixture(params=sorted(ENGINES))
def new_index(request: pytest.FixtureRequest) -> Callable[[], FilterIndex[Any]]:
    def make() -> FilterIndex[Any]:
        return FilterIndex(engine=request.param)

    return make


@pytest.fixture
def index(new_index: Callable[[], FilterIndex[Any]]) -> FilterIndex[Any]:
    return new_index()
