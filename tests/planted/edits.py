"""Mistakes written as edits of the source: one function, a text in it, and what stands there instead.

Whoever plants them has to know the code and not the checks. An edit is made in the running process and taken back: the
function is compiled anew from its source, in its own module, with the text replaced.
"""

from __future__ import annotations
import __future__

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any

import msgspec

_FLAGS = __future__.annotations.compiler_flag  # all modules have it


class Edit(msgspec.Struct, frozen=True):
    """`target` is module:function or module:Class.method; `old` stands in its source exactly once."""

    target: str
    old: str
    new: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        owner, name = self._owner()
        before = inspect.getattr_static(owner, name)
        setattr(owner, name, self._edited(owner, name, before))
        try:
            yield
        finally:
            setattr(owner, name, before)

    def _owner(self) -> tuple[Any, str]:
        module, _, path = self.target.partition(":")
        owner: Any = importlib.import_module(module)
        *outer, name = path.split(".")
        for part in outer:
            owner = getattr(owner, part)
        return owner, name

    def _edited(self, owner: Any, name: str, before: Any) -> Any:
        function = before
        if isinstance(before, property):
            function = before.fget
        elif isinstance(before, staticmethod | classmethod):
            function = before.__func__
        function = inspect.unwrap(function)
        if not isinstance(function, FunctionType):
            raise TypeError(f"{self.target} is no function")
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.old) != 1:
            raise ValueError(f"{self.target}: {self.old!r} stands there {source.count(self.old)} times, and not once")
        # `super()` without arguments needs the class around it.
        cell = "__class__" in function.__code__.co_freevars
        text = source.replace(self.old, self.new)
        if cell:
            text = "def make(__class__):\n" + textwrap.indent(text, "    ") + f"\n    return {name}\n"
        space: dict[str, Any] = {}
        code = compile(text, f"<{self.target} with a mistake>", "exec", flags=_FLAGS, dont_inherit=True)
        exec(code, function.__globals__, space)
        return space["make"](owner) if cell else space[name]


class Fresh(msgspec.Struct, frozen=True):
    """`breaks` says which promise, and when; `verdicts.py` who sees it."""

    area: str
    mistake: str
    breaks: str
    edits: tuple[Edit, ...]

    @contextmanager
    def planted(self) -> Iterator[None]:
        with ExitStack() as planted:
            for edit in self.edits:
                planted.enter_context(edit.planted())
            yield
