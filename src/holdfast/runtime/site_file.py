"""Opens site files."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

from msgspec.structs import replace

from holdfast.broker.site import Site, site_from_toml
from holdfast.errors import SiteError


def read_site(name: str) -> Site:
    """The site that a file describes, or SiteError. `-` is standard input. `data` is taken from where the file is."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SiteError(f"this is no UTF-8 text: {error.reason} at byte {error.start}", name) from error
    site = site_from_toml(text, name, Random)
    here = Path.cwd() if name == "-" else Path(name).resolve().parent
    brokers = [replace(entry, data=str(here / entry.data)) if entry.data else entry for entry in site.brokers]
    return replace(site, brokers=tuple(brokers))
