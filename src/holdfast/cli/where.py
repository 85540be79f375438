"""Where brokers are, as a command line names it: a site file, or a URL; and which of the site's brokers."""

from __future__ import annotations

import argparse

from holdfast.broker.site import BrokerEntry, Site
from holdfast.cli.main import UsageError
from holdfast.client.url import SCHEME, addresses_of
from holdfast.errors import SiteError
from holdfast.runtime.site_file import read_site

DEFAULT_URL = "holdfast://127.0.0.1:7411"


def url_of(where: str, broker: str | None = None) -> str:
    """Where a client goes: the URL of all brokers that are named, or of one of a site. Of brokers that are not one, it
    is the first member if none is asked for: a client is at home at one broker. SiteError if a site file can't be
    read."""
    if where.startswith(SCHEME):
        if broker is None:
            return where
        addresses_at(where, broker)  # which refuses it
    site = read_site(where)
    entries = chosen(site, broker, where)
    if not site.scheme.is_one_broker:
        entries = sorted(entries, key=lambda entry: entry.spare)[:1]
    return SCHEME + ",".join(entry.advertised for entry in entries)


def addresses_at(where: str, broker: str | None = None) -> list[tuple[str, str]]:
    """(id, address) of all brokers that are named, or of one of a site. A URL says no ids."""
    if where.startswith(SCHEME):
        if broker is not None:
            raise UsageError(f"--broker is of a site file, and {where} is none")
        return [("", address) for address in addresses_of(where)]
    return [(entry.id, entry.advertised) for entry in chosen(read_site(where), broker, where)]


def chosen(site: Site, broker: str | None, where: str) -> list[BrokerEntry]:
    """All brokers of a site, or the one that was asked for; SiteError if there is none of that id."""
    found = [entry for entry in site.brokers if broker in (None, entry.id)]
    if not found:
        known = ", ".join(entry.id for entry in site.brokers)
        raise SiteError(f"there is no broker {broker!r}; there is {known}", where)
    return found


def add_where_arguments(parser: argparse.ArgumentParser, otherwise: str = DEFAULT_URL) -> None:
    """`--url`, or `--site` and `--broker`, for commands whose first argument is something else."""
    places = parser.add_mutually_exclusive_group()
    places.add_argument("--url", help=f"where (default: {otherwise})")
    places.add_argument("--site", metavar="SITE", help="a site file that says where")
    parser.add_argument(
        "--broker", metavar="ID", help="of the site: this one (default: the first of a network, else any that answers)"
    )


def url_from(arguments: argparse.Namespace) -> str | None:
    """Where these arguments lead, None if they do not say."""
    if arguments.site is not None:
        return url_of(arguments.site, arguments.broker)
    if arguments.broker is not None:
        raise UsageError("--broker is of a site file: say --site too")
    url: str | None = arguments.url
    return url
