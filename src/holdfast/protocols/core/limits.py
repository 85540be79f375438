"""What one broker allows, by name."""

from __future__ import annotations

import msgspec

REQUEST_BYTES_MAX = 512 * 1024  # of a request or an answer: either has to fit into a frame of 1 MiB


class HostingLimits(msgspec.Struct, frozen=True, gc=False):
    """What a hosted application and those who ask it are allowed. Equal at all replicas too."""

    request_bytes: int = 64 * 1024
    answer_bytes: int = 256 * 1024
    requests_in_flight: int = 16  # of a session; an answer is kept until its client has confirmed it
    derived_events: int = 100  # that come of one command
    derived_bytes: int = 256 * 1024


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
