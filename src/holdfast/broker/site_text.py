"""A site file's text: what is wrong in it is named with the line where it stands.

It knows tables, keys and their types, names and addresses; not what a site is.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NoReturn

from holdfast.errors import SiteError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([0-9]{1,5})")
DEFAULT_ADDRESS = "127.0.0.1:7411"
PORT_MAX = 65_535
_HEADER = re.compile(r"\s*\[+\s*[\"']?([^\]\"']+?)[\"']?\s*\]")
_KINDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "a table",
    list: "an array of tables",
}


def is_address(text: str) -> bool:
    """Whether it is host:port."""
    found = ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found[2]) <= PORT_MAX


def is_wildcard(address: str) -> bool:
    """Whether it stands for all addresses of a machine: one can listen there, and nobody can be sent there."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and not host.strip("0.")  # "0" is read as 0.0.0.0 by those who resolve it
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_unspecified


def is_name(text: str) -> bool:
    """Whether a broker may be called so."""
    return NAME.fullmatch(text) is not None


class SiteText:
    """Finds where a mistake stands, and refuses it."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._lines: list[tuple[str, tuple[str, int]]] = []  # each with the table that it stands in, and which of them
        table, seen = ("", 0), Counter[str]()
        for line in text.splitlines():
            if found := _HEADER.match(line):
                table = (found[1], seen[found[1]])
                seen[found[1]] += 1
            self._lines.append((line, table))

    def refuse(self, problem: str, key: str = "", table: str = "", place: int = 0) -> NoReturn:
        """`key` is looked up in the table, the place-th of that name, so that the error can name the line."""
        raise SiteError(problem, self._where, self._line(key, table, place))

    def _line(self, key: str, table: str, place: int) -> int:
        inside = [number for number, (_, its) in enumerate(self._lines, 1) if table and its == (table, place)]
        pattern = re.compile(rf"\s*(\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*(=|\])")
        everywhere = [number for number, (line, _) in enumerate(self._lines, 1) if key and pattern.match(line)]
        # A key that is missing is missed in its table. Tables that are written in a line have no header.
        found = [number for number in everywhere if number in inside] or inside[:1] or everywhere
        return found[0] if found else 0

    def allow(self, table: Mapping[str, Any], title: str, allowed: Mapping[str, type], place: int = 0) -> None:
        """Refuses keys that are not allowed, and values of another type."""
        for key, value in table.items():
            if key not in allowed:
                inside = f" in [{title}]" if title else ""
                self.refuse(f"{key!r} is not known{inside}; known are {', '.join(allowed)}", key, title, place)
            wanted = allowed[key]
            if type(value) is not wanted and not (wanted is float and type(value) is int):
                self.refuse(f"{key!r} is {value!r}, and has to be {_KINDS[wanted]}", key, title, place)

    def check_name(self, key: str, value: str, table: str = "", place: int = 0) -> None:
        if not is_name(value):
            problem = f"{value!r} is no name: letters, digits, '_', '.' and '-', up to 64, a letter or digit first"
            self.refuse(problem, key, table, place)

    def check_address(self, key: str, address: str, table: str, place: int = 0) -> None:
        if not is_address(address):
            problem = f"{address!r} is no address: write host:port, for instance {DEFAULT_ADDRESS}"
            self.refuse(problem, key, table, place)
