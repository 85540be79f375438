"""Where to connect: `holdfast://127.0.0.1:7411,127.0.0.1:7412`."""

from __future__ import annotations

import re

from holdfast.errors import UrlError

SCHEME = "holdfast://"
DEFAULT_PORT = 7411
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?")


def addresses_of(url: str) -> tuple[str, ...]:
    """The addresses that a URL names, each as host:port, in order."""
    if not url.startswith(SCHEME):
        raise UrlError(f"{url!r} does not begin with {SCHEME}", url)
    addresses = []
    for part in url[len(SCHEME) :].rstrip("/").split(","):
        found = _ADDRESS.fullmatch(part.strip())
        port = int(found["port"] or DEFAULT_PORT) if found else 0
        if found is None or not 0 < port < 65_536:
            raise UrlError(f"{part!r} is no address: write host or host:port, several with commas between", url)
        addresses.append(f"{found['host']}:{port}")
    return tuple(addresses)
