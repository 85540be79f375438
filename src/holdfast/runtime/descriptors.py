"""File descriptors: as many as the connections that a broker allows, or fewer connections.

A process that has none left can accept no one, not even to say so. So the process's own limit is raised as far as it
may be, and what is allowed to connect is cut down to what fits. Nobody hears of that unless little is left.
"""

from __future__ import annotations

import logging
import resource

import msgspec

from holdfast.wire.limits import WireLimits

# For the interpreter, its libraries, listeners, files of the log, and sockets that are being closed.
RESERVE = 64
CONNECTIONS_FEW = 1_000  # for each broker: with fewer, clients may be refused who are not too many

log = logging.getLogger("holdfast")


def fitted(limits: WireLimits, brokers: int = 1) -> WireLimits:
    """Raises this process's limit of descriptors, and gives limits with which all its brokers stay within it."""
    wanted = brokers * (limits.connections + limits.handshakes) + RESERVE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limits
    if soft < wanted:
        raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if raised > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
    if soft >= wanted:
        return limits
    room = max(2, (soft - RESERVE) // brokers)
    handshakes = min(limits.handshakes, max(1, room // 4))
    connections = min(limits.connections, room - handshakes)
    if connections < CONNECTIONS_FEW:
        log.warning(
            "a broker takes %d connections at most, since this process may open no more than %d files: start it with a"
            " higher limit, %d for %d connections (ulimit -n %d; LimitNOFILE=%d in a systemd unit)",
            connections, soft, wanted, limits.connections, wanted, wanted,
        )  # fmt: skip
    return msgspec.structs.replace(limits, handshakes=handshakes, connections=connections)
