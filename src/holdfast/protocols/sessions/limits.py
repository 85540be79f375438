"""What one broker allows, by name."""

from __future__ import annotations

import msgspec


class CoreLimits(msgspec.Struct, frozen=True, gc=False):
    """What one broker allows. Part of the configuration, equal at all replicas."""

    sessions: int = 100_000
    subscriptions_per_session: int = 1_000
    advertisements_per_session: int = 1_000
    filter_bytes_per_session: int = 256 * 1024  # of text; a filter takes up a hundred times that in memory
    backlog_events: int = 10_000  # that a subscription keeps at its broker
    backlog_bytes: int = 8 * 1024 * 1024
    backlog_bytes_per_session: int = 32 * 1024 * 1024  # that all subscriptions of a session keep together
    # With a log:
    named_subscriptions: int = 10_000
    staged_bytes: int = 256 * 1024 * 1024
    queries: int = 10_000  # whose last committed epoch is remembered
