"""The site file of a broker that is lent: what the borrower says of its network, and nothing else of it.

The borrower sends what others have to know: who is there, how they route, what stand-ins promise. The lender takes from
that only what is known here, puts its own broker in, with its own addresses and folders, and writes the file anew. So
nothing that a borrower says names a file, a program or an address to listen on, at the lender's.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from holdfast.broker.site import ADDRESSES, PLAINTEXT_ACCEPTED, BrokerEntry, Site, site_from_toml
from holdfast.errors import SiteError
from holdfast.runtime.serving import check_servable
from holdfast.schemes.tree.standin.cycle.lending import WISH_BYTES_MAX

TEXT_BYTES_MAX: Final = 256 * 1024  # unpacked
# Of these tables, texts, numbers and lists of texts; of lists, tables of those.
_SCALARS: Final = ("name",)
_TABLES: Final = ("scheme", "routing", "limits", "retention")
_STAND_INS: Final = ("sla", "directory")  # of the tables below [standin]; the lender's machine starts and lends nothing
_OF_BROKERS: Final = ("id", "spare", *ADDRESSES)
_OF_LINKS: Final = ("between",)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")  # keys that need no quotes


class Wish(msgspec.Struct, frozen=True):
    """What a borrower says: its site, which names are not free there, and for which broker it is."""

    site: dict[str, Any]
    taken: tuple[str, ...]
    faulty: str


def pack(wish: Wish) -> str | None:
    """As a text that fits into a request; None if it does not fit."""
    data = base64.b64encode(zlib.compress(msgspec.json.encode(wish), 9)).decode()
    return data if len(data) <= WISH_BYTES_MAX else None


def unpack(packed: str) -> Wish:
    """ValueError, with what is wrong."""
    if len(packed) > WISH_BYTES_MAX:
        raise ValueError(f"it has more than {WISH_BYTES_MAX} characters")
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(packed, validate=True), TEXT_BYTES_MAX)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise ValueError(f"it can't be unpacked: {error}") from error
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise ValueError(f"it has more than {TEXT_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(data, type=Wish)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"it is not what a borrower says: {error}") from error


def told(document: Mapping[str, Any]) -> dict[str, Any]:
    """What of a site file others have to know. Also what a lender takes of what it is told."""
    said: dict[str, Any] = {key: document[key] for key in _SCALARS if isinstance(document.get(key), str)}
    for title in _TABLES:
        if isinstance(document.get(title), dict):
            said[title] = _plain(document[title])
    standin = document.get("standin", {})
    if isinstance(standin, dict):
        tables = {key: _plain(standin[key]) for key in _STAND_INS if isinstance(standin.get(key), dict)}
        said["standin"] = _plain(standin) | tables
    brokers, links = document.get("broker"), document.get("link")
    said["broker"] = [
        {key: value for key, value in _plain(table).items() if key in _OF_BROKERS} for table in _listed(brokers)
    ]
    said["link"] = [
        {key: value for key, value in _plain(table).items() if key == "between"} for table in _listed(links)
    ]
    return said


def _listed(tables: Any) -> list[dict[str, Any]]:
    return [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    """Without tables, and whatever else is neither text nor number nor a list of texts."""
    return {key: value for key, value in table.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, str) for each in value)
    return isinstance(value, bool | int | float | str)


def lent_text(said: Mapping[str, Any], name: str, entry: BrokerEntry, lender: Site, folder: Path) -> str:
    """The site file of `entry`, a spare of the lender's, as a spare of that other network; what is written by it lies
    in the folder."""
    document = told(said)
    brokers = [
        {**table, "data": str(folder / "elsewhere" / str(place))} for place, table in enumerate(document["broker"])
    ]
    own = {"id": name, **{key: getattr(entry, key) for key in ADDRESSES if getattr(entry, key)}}
    document["broker"] = [*brokers, {**own, "data": str(folder / "data"), "spare": True}]
    # What is risky is for the lender to accept, whose machine it is.
    risky = {"plaintext": lender.plaintext, "remote_operators": lender.remote_operators}
    accepted = {key: PLAINTEXT_ACCEPTED for key, is_accepted in risky.items() if is_accepted}
    document |= {"security": accepted} if accepted else {}
    return to_toml(document)


def check(text: str, where: str, scheme: str) -> Site:
    """The site that such a file describes; SiteError if it can't be served."""
    site = site_from_toml(text, where, Random)
    if site.scheme.kind != scheme:
        raise SiteError(f"it is of the scheme {site.scheme.kind!r}, and the lender's is {scheme!r}", where)
    check_servable(site, where)
    return site


def to_toml(document: Mapping[str, Any]) -> str:
    return "\n".join(_lines(document, ())) + "\n"


def _lines(table: Mapping[str, Any], path: Sequence[str]) -> list[str]:
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if _is_plain(value)]
    for key, value in table.items():
        if _is_plain(value):
            continue
        below = (*path, key)
        title = ".".join(map(_key, below))
        for each in value if isinstance(value, list) else [value]:
            lines += [f"[[{title}]]" if isinstance(value, list) else f"[{title}]", *_lines(each, below)]
    return lines


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(text: str) -> str:
    """JSON's texts are TOML's, but for one character."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
