"""What docstrings show is what happens, and what is made from the code is up to date. tests/pages runs the pages."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys

import pytest

import holdfast
from holdfast.broker.measures import NETWORK_MEASURES
from tests.repository import ROOT


@pytest.mark.parametrize("module", ["holdfast.model.filter", "holdfast.matching.index"])
def test_docstrings_show_what_happens(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(module), extraglobs={"Filter": holdfast.Filter})
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_the_states_of_the_machines_are_drawn_from_their_tables() -> None:
    command = [sys.executable, "scripts/state_diagrams.py", "--check"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0, "run python scripts/state_diagrams.py"


def test_the_page_on_the_public_interface_says_what_the_docstrings_say() -> None:
    command = [sys.executable, "scripts/api_docs.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, check=False)
    assert result.returncode == 0, "run python scripts/api_docs.py"


def test_every_measure_of_a_network_is_on_the_page_for_operators() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in NETWORK_MEASURES if f"`{name}`" not in page] == []
