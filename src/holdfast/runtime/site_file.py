"""Opens site files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from msgspec.structs import replace

from holdfast.broker.site import Site, site_from_toml
from holdfast.errors import SiteError


def read_site(name: str) -> Site:
    """The site that a file describes, or SiteError. `-` is standard input. `data` is taken from where the file is."""
    with _readable(name):
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    site = site_from_toml(text, name, Random)
    here = folder_of(name)
    brokers = [replace(entry, data=str(here / entry.data)) if entry.data else entry for entry in site.brokers]
    return replace(site, brokers=tuple(brokers))


def folder_of(name: str) -> Path:
    """Where the files are that a site file names."""
    return Path.cwd() if name == "-" else Path(name).resolve().parent


def read_beside(name: str) -> Callable[[str], str]:
    """Reads the text of files that a site file names."""

    def read(file: str) -> str:
        try:
            with _readable(file):
                return (folder_of(name) / file).read_text(encoding="utf-8")
        except OSError as problem:
            raise SiteError(f"{problem.strerror}: the site file {name} names it", file) from problem

    return read


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise SiteError(f"this is no UTF-8 text: {error.reason} at byte {error.start}", name) from error
