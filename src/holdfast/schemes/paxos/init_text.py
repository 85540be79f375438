"""Site files of groups to start from, for `holdfast init`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.broker.scheme import InitOption, InitWish, Template
from holdfast.errors import SiteError
from holdfast.schemes.paxos.membership import VOTERS_MAX
from holdfast.schemes.paxos.settings import Protocol

REPLICAS = 3
DIRECTORY = "directory"
_PORT, _DIRECTORY_PORT, _PEERS_ABOVE = (
    7411,
    7611,
    100,
)  # the directory's are beside those of the networks that it serves

OPTIONS: Final[Mapping[str, InitOption]] = {
    "protocol": InitOption(
        tuple(each.value for each in Protocol),
        "of a group; batch: all that waits is decided at once (default); multi: each on its own; fast: clients propose"
        " to all replicas",
    )
}

TEMPLATES: Final[Mapping[str, Template]] = {
    DIRECTORY: Template("a group that keeps the topology of networks, in which spares take the place of brokers")
}
_DIRECTORY_TEXT = """\
[application]                       # keeps the maps of networks that name it in [standin.directory]
factory = "holdfast.apps.directory:Directory"

"""


def site_text(wish: InitWish) -> str:
    is_directory = wish.template == DIRECTORY
    name, letter, first = ("directory", "d", _DIRECTORY_PORT) if is_directory else ("my-site", "r", _PORT)
    replicas = REPLICAS if wish.brokers is None else wish.brokers
    if replicas > VOTERS_MAX:
        raise SiteError(f"--brokers is {replicas}; a group has at most {VOTERS_MAX} replicas", wish.where)
    protocol = wish.options.get("protocol", Protocol.BATCH.value)
    line = f'protocol = "{protocol}" '.ljust(19)
    listed = "\n".join(_replica_text(letter, number, first + number - 1) for number in range(1, replicas + 1))
    serve = f"holdfast broker FILE --id {letter}1"
    return f"""\
# A site: a broker network, described once. `holdfast up FILE` runs all of it here; `{serve}` one
# replica of it, as you would on its own machine; `holdfast sim FILE` breaks it.
name = "{name}"

[scheme]
kind = "paxos"                      # replicas that behave as one broker: 3 survive 1 failure, 5 survive 2, 7 survive 3
{line}                 # "batch": all that waits is decided at once; "multi": each on its own; "fast": as
                                    # "batch", and clients propose to all replicas, where enough of them are there
pipeline = 10                       # decisions that are under way at once

{listed}
{_DIRECTORY_TEXT if is_directory else ""}"""


def _replica_text(letter: str, number: int, port: int) -> str:
    peer_port = port + _PEERS_ABOVE
    return f"""\
[[broker]]
id = "{letter}{number}"
address = "127.0.0.1:{port}"          # where clients connect; they are given all of them
# advertise = "{letter}{number}.example.org:{port}" # … and told this instead; needed if it listens on 0.0.0.0
peer_address = "127.0.0.1:{peer_port}"     # where the other replicas connect
# peer_advertise = "{letter}{number}.example.org:{peer_port}"
data = "var/{letter}{number}"                     # what it promised and voted for must outlive it
"""
