"""Whoever connects imports what clients need, and nothing of what only brokers are made of."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import ROOT
from tests.runtime.broker_process import BrokerProcess

BROKERS_ONLY = [
    "holdfast.broker.assembly",
    "holdfast.broker.kit",
    "holdfast.schemes.tree.parts",
    "holdfast.broker.site",
    "holdfast.schemes.tree.bypass",
    "holdfast.protocols.failure",
    "holdfast.schemes.paxos",
    "holdfast.protocols.routing",
    "holdfast.runtime.serving",
    "holdfast.sim",
    "holdfast.storage",
    "holdfast.topology",
]


def imported_by(program: str) -> set[str]:
    command = [sys.executable, "-c", f"{program}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))


def of_brokers(modules: set[str]) -> set[str]:
    return {name for name in modules for part in BROKERS_ONLY if name == part or name.startswith(f"{part}.")}


@pytest.mark.parametrize("program", ["import holdfast; holdfast.connect", "import holdfast.client.operator"])
def test_a_client_imports_nothing_that_only_brokers_are_made_of(program: str) -> None:
    assert of_brokers(imported_by(program)) == set()


CONNECTS = """
import asyncio, holdfast

async def connect():
    async with holdfast.connect({url!r}) as bus:
        assert bus.scheme == "tree"

asyncio.run(connect())
"""


def test_a_client_that_is_connected_has_imported_its_scheme_s_client_and_no_other(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker:
        modules = imported_by(CONNECTS.format(url=broker.url))
    assert of_brokers(modules) == set()
    assert {name for name in modules if name.startswith("holdfast.schemes.")} == {
        "holdfast.schemes.tree",
        "holdfast.schemes.tree.client",
    }


def test_what_a_broker_is_made_of_is_found() -> None:
    found = of_brokers(imported_by("import holdfast.schemes.catalogue"))
    assert found >= {
        "holdfast.broker.assembly",
        "holdfast.schemes.paxos.replica",
        "holdfast.protocols.routing.router",
    }
