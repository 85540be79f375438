"""Every proof runs under every driver."""

import pytest

from tests.contract.driver import Driver, SimulatedDriver


@pytest.fixture(params=["simulator"])
def driver(request: pytest.FixtureRequest) -> Driver:
    return {"simulator": SimulatedDriver}[request.param]()
