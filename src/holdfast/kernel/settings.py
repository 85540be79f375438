"""Settings: what people may choose of a part, under the key, in the unit and with the meaning that files, commands and
pages all show.

A field of a settings Struct that people may choose is annotated with a `Setting`; one without is the program's own. A
field that is itself such a Struct counts with all of its settings.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from holdfast.kernel.time import MILLISECOND

Settings = TypeVar("Settings", bound=msgspec.Struct)
Written = bool | int | str  # as a file says it

MS_MAX = 30 * 86_400_000  # longer is a slip


class Setting(NamedTuple):
    """How one is written: `unit` is what a written 1 stands for in the field."""

    key: str
    about: str
    unit: int = 1
    least: int = 1
    most: int | None = None


def milliseconds(key: str, about: str, least: int = 1) -> Setting:
    """A time that is written in milliseconds, and held in nanoseconds."""
    return Setting(key, about, MILLISECOND, least, MS_MAX)


class Choice(NamedTuple):
    """A setting, and where it stands in its Struct."""

    setting: Setting
    kind: type  # bool, int, or an Enum of texts
    path: tuple[str, ...]

    @property
    def values(self) -> list[str]:
        """What may be written, if it is one of a few texts."""
        return [each.value for each in self.kind] if issubclass(self.kind, enum.Enum) else []

    def problem(self, written: Written) -> str:
        """What is wrong with what is written; empty if nothing is. Of a number's bounds only the sign is looked at: a
        run may be of smaller things than any site."""
        if self.values:
            return "" if written in self.values else f"has to be one of {', '.join(self.values)}"
        if type(written) is not self.kind:
            return f"has to be {'true or false' if self.kind is bool else 'a whole number'}"
        least = min(self.setting.least, 1)
        return f"has to be {least} or more" if self.kind is int and int(written) < least else ""

    def of(self, settings: msgspec.Struct) -> Written:
        """As it is written."""
        found: Any = settings
        for name in self.path:
            found = getattr(found, name)
        if isinstance(found, enum.Enum):
            return str(found.value)
        return found if self.kind is bool else int(found) // self.setting.unit

    def put(self, settings: Settings, written: Written) -> Settings:
        """The same settings with what is written, which has been checked."""
        value: Any = written
        if issubclass(self.kind, enum.Enum):
            value = self.kind(written)
        elif self.kind is int:
            value = int(written) * self.setting.unit
        return _replaced(settings, self.path, value)


def _replaced(settings: Settings, path: tuple[str, ...], value: Any) -> Settings:
    name, *rest = path
    if rest:
        value = _replaced(getattr(settings, name), tuple(rest), value)
    return msgspec.structs.replace(settings, **{name: value})


@cache
def choices(kind: type[msgspec.Struct], path: tuple[str, ...] = ()) -> Mapping[str, Choice]:
    """What people may choose, by key, in the order of the fields. Hints are texts, and evaluating them takes its time:
    it is done once for each kind."""
    found: dict[str, Choice] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            base, *notes = get_args(hint)
            for note in notes:
                if isinstance(note, Setting):
                    found[note.key] = Choice(note, base, (*path, name))
        elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            found |= choices(hint, (*path, name))
    return MappingProxyType(found)


def written(settings: msgspec.Struct) -> dict[str, Written]:
    """All that people may choose, as files say it."""
    return {key: choice.of(settings) for key, choice in choices(type(settings)).items()}


def chosen(defaults: Settings, table: Mapping[str, Written]) -> Settings:
    """The settings with what a table says, which has been checked; others stay as they are."""
    known = choices(type(defaults))
    for key, value in table.items():
        defaults = known[key].put(defaults, value)
    return defaults
