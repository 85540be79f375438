"""Asking the application that a broker hosts: the answer, or the exception that says why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.errors import (
    ApplicationFailed,
    BusClosed,
    HoldfastError,
    LimitReached,
    NoApplication,
    OutcomeUnknown,
)
from holdfast.protocols.sessions import requests
from holdfast.protocols.sessions.messages import Refusal


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
    raise _problem(result)


def _problem(result: requests.NotAnswered | requests.AnswerLost) -> HoldfastError:
    if isinstance(result, requests.AnswerLost):
        return OutcomeUnknown(result.problem)
    match result.reason:
        case Refusal.NO_APPLICATION:
            return NoApplication(result.problem)
        case Refusal.APPLICATION_FAILED:
            return ApplicationFailed(result.problem)
        case Refusal.LIMIT:
            return LimitReached(result.problem, result.limit, result.allowed)
        case _:
            return BusClosed(result.problem)
