"""The directory's application: network → its map, and nothing else (D0-A10).

Brokers of a network replace a member only after the directory has taken the map with the stand-in in. Other changes of
a network do not pass here, so that what is stored may be older than what a network has come to; never newer than what
was accepted here.

Why there is no fork. Let S be what is stored, with number s. A proposal (b, a) that says "a follows the map with number
b" is accepted if a > b, and b > s, or b = s and the digest that it says is that of S. Then s becomes a.

- s rises with everything that is accepted, and never falls: a > b ≥ s.
- So of two different proposals from one number b, whichever comes first makes s greater than b, for ever; the other
  one, however late, however often, and from whomever, finds b < s, and is answered with what is stored.
- Equal requests are equal: one that is repeated finds its own map stored, and is answered "accepted" again, or finds a
  newer one, which followed it, and is answered with that.
- What is stored is older than b when the network has gone on by itself. The network that goes on from S counts from s
  upwards, so b > s. One that does not know of S, since it was cut off when S was accepted, stands at a number below
  that of S: a replacement is numbered `LOST_ABOVE` (1,000) above the map that it is made of. It would need as many
  changes on its own to pass S, each made by the broker whose turn it is, while a part of the network is away.

It is a function of the requests in their order: the group that hosts it decides that order, and so all is linearizable.
Nothing that can be asked raises anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, assert_never

import msgspec

from holdfast.apps.directory.messages import (
    NETWORK_BYTES_MAX,
    VERSION,
    Accepted,
    Answer,
    AskForNeighbours,
    AskForTopology,
    Neighbours,
    NotKnown,
    Other,
    Propose,
    Refused,
    Request,
    Topology,
)
from holdfast.kernel.application import Derived
from holdfast.protocols.core.limits import REQUEST_BYTES_MAX
from holdfast.protocols.routing.flaws import flaw
from holdfast.protocols.routing.network_map import NetworkMap

NETWORKS_MAX: Final = 1_000
SHARED_MAX: Final = 64  # brokers of one map whose work is shared; each is looked at with the whole graph
_PROBLEM_MAX: Final = 500

_decode_request = msgspec.json.Decoder(Request).decode
_encode = msgspec.json.Encoder().encode


class Directory:
    """Hosted by a group, which `holdfast init` writes the site of."""

    topics: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, networks_max: int = NETWORKS_MAX) -> None:
        """The limit must be the same at all replicas."""
        self._networks_max = networks_max
        self._maps: dict[str, NetworkMap] = {}

    # ----------------------------------------------------------------------------------------------------- requests
    def execute(self, request: bytes) -> bytes:
        """Answers one request; one that can't be answered, with `Refused`."""
        return _encode(self._answer(request))

    def _answer(self, data: bytes) -> Answer:
        if len(data) > REQUEST_BYTES_MAX:
            return Refused(f"a request has at most {REQUEST_BYTES_MAX} bytes, and not {len(data)}")
        try:
            request: Request = _decode_request(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            return Refused(f"this is no request: {problem}"[:_PROBLEM_MAX])
        if request.version != VERSION:
            return Refused(f"version {request.version} is not known; this is version {VERSION}")
        if len(request.network.encode()) > NETWORK_BYTES_MAX or not request.network.isprintable():
            return Refused(f"a network's name has up to {NETWORK_BYTES_MAX} bytes, and can be printed")
        match request:
            case Propose():
                return self._propose(request)
            case AskForNeighbours(network=network, broker=broker):
                return self.neighbours(network, broker)
            case AskForTopology(network=network):
                found = self._maps.get(network)
                return _unknown(network) if found is None else Topology(found)
            case _:
                assert_never(request)

    def _propose(self, proposal: Propose) -> Answer:
        after, stored = proposal.after, self._maps.get(proposal.network)
        if wrong := _flaw(after):
            return Refused(f"the map that was proposed is none: {wrong}"[:_PROBLEM_MAX])
        if after.number <= proposal.before_number:
            return Refused(f"map {after.number} does not follow map {proposal.before_number}")
        if stored is None:
            if len(self._maps) >= self._networks_max:
                return Refused(f"the directory has {len(self._maps)} networks, and takes no more")
        elif (after.number, after.digest) == (stored.number, stored.digest):
            return Accepted(stored)
        elif not _follows(proposal, stored):
            return Other(stored)
        self._maps[proposal.network] = after
        return Accepted(after)

    def neighbours(self, network: str, broker: str) -> Answer:
        """The paper's lookup: N of F, with where they are found."""
        found = self._maps.get(network)
        if found is None:
            return _unknown(network)
        if found.find(broker) is None:
            return NotKnown(f"{broker[:NETWORK_BYTES_MAX]!r} is no member of {network!r} in map {found.number}")
        joined = set(found.graph.neighbours(broker))
        return Neighbours(found.number, tuple(member for member in found.members if member.name in joined))

    # -------------------------------------------------------------------------------------------------------- events
    def observe(
        self, number: int, wall: int, topic: str, attributes: Mapping[str, int | float | str | bool], payload: bytes
    ) -> Sequence[Derived]:
        """No event says anything here."""
        return ()

    # --------------------------------------------------------------------------------------------------------- state
    def get_state(self) -> bytes:
        """The whole state, in the order of the names; equal bytes mean equal futures."""
        return msgspec.msgpack.encode(sorted(self._maps.items()))

    def set_state(self, state: bytes) -> None:
        """Replaces the whole state."""
        self._maps = dict(msgspec.msgpack.decode(state, type=list[tuple[str, NetworkMap]]))


def _follows(proposal: Propose, stored: NetworkMap) -> bool:
    """Whether it is made of what is stored, or of what a network has come to from there."""
    if proposal.before_number == stored.number:
        return proposal.before_digest == stored.digest
    return proposal.before_number > stored.number


def _flaw(proposed: NetworkMap) -> str:
    """What can't be of a network, or would take long to look at."""
    if len(proposed.besides) > SHARED_MAX:
        return f"it shares the work of more than {SHARED_MAX} brokers"
    return flaw(proposed)


def _unknown(network: str) -> NotKnown:
    return NotKnown(f"nothing is stored of {network!r}: no broker of it was replaced yet")
