"""Every proof runs under every driver."""

from collections.abc import Iterator

import pytest

from tests.contract.driver import SimulatedDriver
from tests.contract.runtime_driver import RuntimeDriver


@pytest.fixture(params=["simulator", "runtime"])
def driver(request: pytest.FixtureRequest) -> Iterator[SimulatedDriver | RuntimeDriver]:
    made: SimulatedDriver | RuntimeDriver = SimulatedDriver() if request.param == "simulator" else RuntimeDriver()
    yield made
    made.close()
