"""An index that runs out of memory stays what it was."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from holdfast.matching.index import ENGINES


@pytest.mark.skipif("compiled" not in ENGINES, reason="the compiled kernel is not built")
@pytest.mark.skipif(importlib.util.find_spec("_testcapi") is None, reason="this Python can't make allocations fail")
def test_an_index_is_as_it_was_after_any_allocation_failed() -> None:
    run = subprocess.run([sys.executable, "-m", "tests.index.starved"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 20_000
