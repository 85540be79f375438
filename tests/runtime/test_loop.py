"""The fastest event loop that is installed is the one that runs."""

import asyncio
import sys

import pytest

from holdfast.runtime import loop


async def _loop_type() -> type:
    return type(asyncio.get_running_loop())


def test_uvloop_is_used_where_it_is_installed() -> None:
    uvloop = pytest.importorskip("uvloop")
    assert loop.run(_loop_type()) is uvloop.Loop


def test_without_uvloop_asyncio_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert issubclass(loop.run(_loop_type()), asyncio.SelectorEventLoop)
