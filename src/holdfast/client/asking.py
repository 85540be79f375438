"""Asking the application that a broker hosts: the answer, or the exception that says why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.client import refusals
from holdfast.protocols.sessions import requests


async def ask_application(ask: Callable[[Any], Awaitable[Any]], request: bytes, timeout_s: float | None) -> bytes:
    """Over a function that asks the client's node, and gives its answer."""
    if not isinstance(request, bytes):
        raise TypeError(f"a request is bytes, not {type(request).__name__}")
    try:
        async with asyncio.timeout(timeout_s):
            result = await ask(requests.AskApplication(request))
    except TimeoutError:
        problem = f"no answer within {timeout_s:g} s; the request may be executed all the same"
        raise TimeoutError(problem) from None
    if isinstance(result, requests.ApplicationAnswer):
        return result.data
    raise refusals.of_question(result)
