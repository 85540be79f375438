"""Site files of groups to start from, for `holdfast init`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from holdfast.broker.scheme import InitOption, InitWish
from holdfast.errors import SiteError
from holdfast.schemes.paxos.membership import VOTERS_MAX
from holdfast.schemes.paxos.settings import Protocol

REPLICAS = 3

OPTIONS: Final[Mapping[str, InitOption]] = {
    "protocol": InitOption(
        tuple(each.value for each in Protocol),
        "of a group; batch: all that waits is decided at once (default); multi: each on its own; fast: clients propose"
        " to all replicas",
    )
}


def site_text(wish: InitWish) -> str:
    replicas = REPLICAS if wish.brokers is None else wish.brokers
    if replicas > VOTERS_MAX:
        raise SiteError(f"--brokers is {replicas}; a group has at most {VOTERS_MAX} replicas", wish.where)
    protocol = wish.options.get("protocol", Protocol.BATCH.value)
    line = f'protocol = "{protocol}" '.ljust(19)
    listed = "\n".join(_replica_text(number) for number in range(1, replicas + 1))
    return f"""\
# A site: a broker network, described once. `holdfast up FILE` runs all of it here; `holdfast broker FILE --id r1` one
# replica of it, as you would on its own machine; `holdfast sim FILE` breaks it.
name = "my-site"

[scheme]
kind = "paxos"                      # replicas that behave as one broker: 3 survive 1 failure, 5 survive 2, 7 survive 3
{line}                 # "batch": all that waits is decided at once; "multi": each on its own; "fast": as
                                    # "batch", and clients propose to all replicas, where enough of them are there
pipeline = 10                       # decisions that are under way at once

{listed}
"""


def _replica_text(number: int) -> str:
    return f"""\
[[broker]]
id = "r{number}"
address = "127.0.0.1:{7410 + number}"          # where clients connect; they are given all of them
# advertise = "r{number}.example.org:{7410 + number}" # … and told this instead; needed if it listens on 0.0.0.0
peer_address = "127.0.0.1:{7510 + number}"     # where the other replicas connect
# peer_advertise = "r{number}.example.org:{7510 + number}"
data = "var/r{number}"                     # what it promised and voted for must outlive it
"""
