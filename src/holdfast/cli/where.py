"""Where brokers are, as a command line names it: a site file, or a URL."""

from __future__ import annotations

from holdfast.client.url import SCHEME
from holdfast.runtime.site_file import read_site


def url_of(where: str) -> str:
    """The URL of all brokers that are named; SiteError if a site file can't be read."""
    if where.startswith(SCHEME):
        return where
    return SCHEME + ",".join(entry.address for entry in read_site(where).brokers)
