"""Writes docs/api.md from the docstrings of the public interface: python scripts/api_docs.py [--check]."""

from __future__ import annotations

import enum
import inspect
import re
import sys
from pathlib import Path

import holdfast
from holdfast.client import blocking

TARGET = Path(__file__).parent.parent / "docs" / "api.md"
HEAD = """\
# The public interface

Written by `python scripts/api_docs.py` from the docstrings; a test compares. [client.md](client.md) explains the
library, [filters.md](filters.md) the language, [positions.md](positions.md) logs and named subscriptions.
"""


def document() -> str:
    sections = {
        "Connecting": [holdfast.connect, holdfast.Bus, holdfast.State],
        "Subscribing": [holdfast.Subscription, holdfast.NamedSubscription, holdfast.ReceivedEvent, holdfast.Position],
        "Reading and stages": [holdfast.LogRange, holdfast.StageReceipt, holdfast.CommitResult],
        "Without asyncio": [
            blocking.connect,
            blocking.BlockingBus,
            blocking.BlockingSubscription,
            blocking.BlockingNamedSubscription,
            blocking.BlockingAdvertisement,
        ],
        "Filters": [holdfast.Filter, holdfast.FilterIndex, holdfast.Explanation, holdfast.FilterLimits],
        "Exceptions": [
            member
            for name in holdfast.__all__
            if inspect.isclass(member := getattr(holdfast, name)) and issubclass(member, BaseException)
        ],
    }
    parts = [HEAD]
    for title, members in sections.items():
        parts.append(f"\n## {title}\n")
        parts += [_member(member) for member in members]
    return "".join(parts)


def _member(member: object) -> str:
    name = getattr(member, "__name__", str(member))
    if inspect.isfunction(member):
        where = "holdfast.blocking." if member.__module__ == blocking.__name__ else "holdfast."
        return f"\n### `{where}{name}{_signature(member)}`\n\n{_text(member)}\n"
    lines = [f"\n### `{name}`\n\n{_text(member)}\n"]
    if inspect.isclass(member) and issubclass(member, BaseException):
        return lines[0]
    if inspect.isclass(member) and issubclass(member, enum.Enum):
        return lines[0] + "\n" + "".join(f"- `{one.name}`\n" for one in member)
    for key in dir(member):
        own = inspect.getattr_static(member, key)
        if key.startswith("_") or not inspect.getdoc(own):
            continue
        if isinstance(own, classmethod | staticmethod):
            own = own.__func__
        if inspect.isfunction(own):
            signature, coroutines = re.subn(r"-> Coroutine\[Any, Any, (.*)\]$", r"-> \1", _signature(own))
            begin = "await " if coroutines or inspect.iscoroutinefunction(own) else ""
            lines.append(f"- `{begin}{key}{signature}`: {_text(own)}\n")
        elif isinstance(own, property):
            lines.append(f"- `{key}`: {_text(own)}\n")
    return lines[0] + ("\n" if len(lines) > 1 else "") + "".join(lines[1:])


def _signature(function: object) -> str:
    text = str(inspect.signature(function, eval_str=False))  # type: ignore[arg-type]
    text = re.sub(r"^\((self|cls)(, )?", "(", text)
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)  # annotations are texts here


def _text(member: object) -> str:
    return " ".join((inspect.getdoc(member) or "").split("\n\n    >>>")[0].split())


def main() -> int:
    text = document()
    if "--check" in sys.argv:
        return TARGET.read_text() != text
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
