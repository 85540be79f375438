"""What is wrong with a line that is no event, as its writer would say it: a second, slow look at the line.

Never part of reading a line that is right. The decoder knows that something does not fit; this finds which attribute it
is, and what the writer probably meant.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from holdfast.errors import EventError
from holdfast.model.values import check_value, is_unicode_text

EXAMPLE = '{"topic": "stock", "attributes": {"price": 101.5}}'
SHOWN_CHARACTERS = 40  # of what a line holds
KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}


def mistake_in(line: bytes, fields: Sequence[str], otherwise: str) -> str:
    """Why the line is no event of these fields; `otherwise` is what the decoder says."""
    found, value = _parsed(line, f"an event is one object on one line, such as {EXAMPLE}")
    if found:
        return found
    if not isinstance(value, dict):
        return f"{_kind(value)}, and no event, which is an object such as {EXAMPLE}"
    for name in value:
        if name not in fields:
            hint = '; attributes stand in {"attributes": {…}}' if "attributes" not in value else ""
            return f"there is no field {_shown(name)} of events{hint}"
    return _mistake_in_values(value.get("attributes", {})) or otherwise


def mistake_in_attributes(text: bytes, otherwise: str) -> str:
    """Why the text is no object of attributes; `otherwise` is what the decoder says."""
    found, value = _parsed(text, """an object such as '{"symbol": "IBM", "price": 101.5}', in quotes for the shell""")
    return found or _mistake_in_values(value) or otherwise


def _parsed(data: bytes, expected: str) -> tuple[str, Any]:
    """What keeps the data from being JSON, or else its value; NaN passes, so that its attribute can be named."""
    try:
        return "", json.loads(data.decode())
    except UnicodeDecodeError as error:
        return f"not in UTF-8: the byte 0x{data[error.start]:02x} at {error.start + 1:,} ({error.reason})", None
    except json.JSONDecodeError as error:
        return f"no JSON: {error.msg} (column {error.colno:,}); expected: {expected}", None
    except RecursionError:
        return "nested far too deep for an event, whose attributes are numbers, strings and booleans", None
    except ValueError:  # of Python's own limit on the digits of integers
        return "a number has far too many digits: integers have 64 bits", None


def _mistake_in_values(attributes: Any) -> str:
    if not isinstance(attributes, dict):
        return f"attributes are {_kind(attributes)}, and have to be an object: names with values"
    for name, value in attributes.items():
        if not is_unicode_text(name):
            return f"attribute name {_shown(name)} holds a lone surrogate, which is no Unicode text"
        if value is None:
            return f"attribute {_shown(name)} is null; leave an attribute out instead"
        if isinstance(value, (dict, list)):
            return f"attribute {_shown(name)} is {_kind(value)}, not a number, a string or a boolean"
        try:
            check_value(name, value)
        except EventError as error:
            return str(error)
    return ""


def _kind(value: Any) -> str:
    return "null" if value is None else KINDS[type(value)]


def _shown(name: str) -> str:
    return repr(name if len(name) <= SHOWN_CHARACTERS else f"{name[:SHOWN_CHARACTERS]}…")
