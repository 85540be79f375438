"""Arithmetic as the filter language defines it: None (UNKNOWN) instead of an exception, 64-bit integers.

Integers stay integers under + - *, and what leaves 64 bits is UNKNOWN rather than wrapped. `/` gives the
nearest double, `%` takes the sign of the dividend. What is not a number makes the result UNKNOWN.
"""

from __future__ import annotations

import math
from typing import TypeGuard

from holdfast.model.values import INTEGER_MAX, INTEGER_MIN, Value


def is_number(value: Value | None) -> TypeGuard[int | float]:
    return value.__class__ is int or value.__class__ is float


def calculate(operator: str, left: Value | None, right: Value | None) -> int | float | None:
    """`left operator right`, or None where that is no finite number."""
    if not is_number(left) or not is_number(right):
        return None
    try:
        if operator == "+":
            result: int | float = left + right
        elif operator == "-":
            result = left - right
        elif operator == "*":
            result = left * right
        elif operator == "/":
            result = left / right
        elif left.__class__ is int and right.__class__ is int:
            result = abs(left) % abs(right)
            result = -result if left < 0 else result
        else:
            result = math.fmod(left, right)
    except (ZeroDivisionError, OverflowError, ValueError):  # fmod reports a zero divisor as ValueError
        return None
    return in_range(result)


def negate(value: Value | None) -> int | float | None:
    return in_range(-value) if is_number(value) else None


def in_range(number: int | float) -> int | float | None:
    if number.__class__ is int:
        return number if INTEGER_MIN <= number <= INTEGER_MAX else None
    return number if number - number == 0.0 else None
