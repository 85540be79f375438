"""Where a broker is to be found that is to be added to others: as the command line says, or the site file."""

from __future__ import annotations

import argparse

from holdfast.broker.site import Site
from holdfast.broker.site_text import is_address, is_name, is_wildcard
from holdfast.cli.main import UsageError


def add_address_arguments(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--address", default="", help="where clients find it (default: as the site file says)")
    verb.add_argument("--peer-address", default="", help="where the others find it (likewise)")


def told_of(arguments: argparse.Namespace, name: str) -> dict[str, str]:
    """What others are told of it. `arguments.site` is the site file, None if there is none."""
    if not is_name(name):
        raise UsageError(f"{name!r} is no name: letters, digits, '_', '.' and '-', up to 64, a letter or digit first")
    site: Site | None = arguments.site
    entry = next((each for each in site.brokers if each.id == name), None) if site is not None else None
    address = arguments.address or ("" if entry is None else entry.advertised)
    peer_address = arguments.peer_address or ("" if entry is None else entry.peer_advertised)
    for text in (address, peer_address):
        if not text:
            listed = f"add it to {arguments.where} as a [[broker]] with spare = true, or " if site else ""
            raise UsageError(f"where {name} is to be found is not known: {listed}use --address and --peer-address")
        if not is_address(text):
            raise UsageError(f"{text!r} is no address: write host:port")
        if is_wildcard(text):
            raise UsageError(f"{text} is where {name} may listen, and nobody can be sent there: name its machine")
    return {"id": name, "address": address, "peer_address": peer_address}
