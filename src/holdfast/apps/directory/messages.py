"""What is asked of the directory, and what it answers: JSON, with a version.

Nothing here but topology: brokers, where they are found, and who is joined with whom (D0-A10).
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec

from holdfast.protocols.routing.network_map import NetworkMap, NetworkMember

VERSION: Final = 1
NETWORK_BYTES_MAX: Final = 160  # of a network's name here: its site's name, and what tells networks of one name apart

_Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NETWORK_BYTES_MAX)]
_Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


# ------------------------------------------------------------------------------------------------------------ requests
class Propose(msgspec.Struct, frozen=True, tag_field="ask", tag="propose", forbid_unknown_fields=True):
    """Let `after` follow the map with this number and digest."""

    version: int
    network: _Name
    before_number: _Number
    before_digest: str
    after: NetworkMap


class AskForNeighbours(msgspec.Struct, frozen=True, tag_field="ask", tag="neighbours", forbid_unknown_fields=True):
    """Who is joined with a broker, and where are they found?"""

    version: int
    network: _Name
    broker: str


class AskForTopology(msgspec.Struct, frozen=True, tag_field="ask", tag="topology", forbid_unknown_fields=True):
    """The whole map."""

    version: int
    network: _Name


Request: TypeAlias = Propose | AskForNeighbours | AskForTopology


# ------------------------------------------------------------------------------------------------------------- answers
class Accepted(msgspec.Struct, frozen=True, tag_field="answer", tag="accepted"):
    """The map that was proposed is the one that is stored; also if it was before it was proposed."""

    map: NetworkMap


class Other(msgspec.Struct, frozen=True, tag_field="answer", tag="other"):
    """Not accepted: this one is stored, and what was proposed does not follow it."""

    map: NetworkMap


class Neighbours(msgspec.Struct, frozen=True, tag_field="answer", tag="neighbours"):
    """In the map with this number."""

    number: int
    members: tuple[NetworkMember, ...]


class Topology(msgspec.Struct, frozen=True, tag_field="answer", tag="topology"):
    map: NetworkMap


class NotKnown(msgspec.Struct, frozen=True, tag_field="answer", tag="not-known"):
    """Nothing is stored of this network, or there is no such member in what is."""

    problem: str


class Refused(msgspec.Struct, frozen=True, tag_field="answer", tag="refused"):
    """A request that can't be answered, whoever makes it, and when."""

    problem: str


Answer: TypeAlias = Accepted | Other | Neighbours | Topology | NotKnown | Refused
