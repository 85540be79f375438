"""A table of a site file that says settings: read and checked by what the settings say of themselves, and written for
`holdfast init`."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from holdfast.broker.site_text import SiteText
from holdfast.kernel.settings import Choice, Settings, choices, chosen

MORE, NOT_LESS = "more", "not less"


def toml_type(choice: Choice) -> type:
    return str if issubclass(choice.kind, enum.Enum) else choice.kind


def read_settings(
    text: SiteText,
    table: Mapping[str, Any],
    title: str,
    defaults: Settings,
    elsewhere: Collection[str] = (),
    besides: Mapping[str, type] | Collection[str] = (),
) -> Settings:
    """The settings with what the table says; refused with its line if something is not known, or out of bounds.
    `elsewhere`: keys of another table; `besides`: texts, or values of these types, that the table has, too, and that
    are no settings."""
    known = {key: choice for key, choice in choices(type(defaults)).items() if key not in elsewhere}
    others = besides if isinstance(besides, Mapping) else dict.fromkeys(besides, str)
    text.allow(table, title, {**others} | {key: toml_type(one) for key, one in known.items()})
    said = {key: value for key, value in table.items() if key not in besides}
    check_settings(text, said, title, known)
    return chosen(defaults, said)


def check_settings(text: SiteText, table: Mapping[str, Any], title: str, known: Mapping[str, Choice]) -> None:
    for key, value in table.items():
        choice = known[key]
        least, most = choice.setting.least, choice.setting.most
        if choice.values and value not in choice.values:
            text.refuse(f"there is no {key} {value!r}; there is {', '.join(choice.values)}", key, title)
        if choice.kind is int and value < least:
            told = f"{least} or more" if most is None or most > 10**6 else f"{least} to {most}"
            text.refuse(f"{key!r} is {value}, and has to be {told}", key, title)
        if choice.kind is int and most is not None and value > most:
            told = f"{most} or less" if most > 10**6 else f"{least} to {most}"
            text.refuse(f"{key!r} is {value}, and has to be {told}", key, title)


def check_order(
    text: SiteText, table: Mapping[str, Any], title: str, said: msgspec.Struct, later: str, sooner: str, wanted: str
) -> None:
    """Refuses two settings that do not compare as they have to; `wanted` says how."""
    known = choices(type(said))
    first, second = known[later].of(said), known[sooner].of(said)
    if int(first) > int(second) or (first == second and wanted == NOT_LESS):
        return
    told = {later: first, sooner: second}
    values = [f"{value}" if key in table else f"{value} (the default)" for key, value in told.items()]
    problem = f"{later!r} is {values[0]}, and has to be {wanted} than {sooner!r}, {values[1]}"
    text.refuse(problem, later if later in table else sooner, title)


def default_lines(settings: msgspec.Struct, elsewhere: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    """(what a file would say, what it means) of each setting, with its value here."""
    for key, choice in choices(type(settings)).items():
        if key not in elsewhere:
            yield f"{key} = {as_toml(choice.of(settings))}", choice.setting.about


def as_toml(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
