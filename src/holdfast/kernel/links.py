"""Who may be at the other end of a link.

A link is one connection. It has a number that its node never uses again, is FIFO, and loses only a suffix, and that
only at `LinkDown`; nothing of an old link arrives after a newer `LinkUp` from the same peer.

A peer is named by text that is unique over all roles: brokers by their names in the site file, everyone else by role
and name, so that a client that calls itself `b1` is never taken for the broker.
"""

from __future__ import annotations

import enum


class Role(enum.Enum):
    """What a peer is. It is bound to the listener that the peer came in by, not to what the peer claims."""

    BROKER = "broker"
    CLIENT = "client"
    OPERATOR = "operator"

    # Members are single objects: comparing by identity is as good as hashing their names, and much faster.
    __hash__ = object.__hash__


def peer_name(role: Role, name: str) -> str:
    """What the kernel calls a peer that plays a role under a name."""
    return name if role is Role.BROKER else f"{role.value}:{name}"
