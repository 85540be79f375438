"""What can be measured of a broker, by name: `/metrics` and `holdfast status` show these, those
of the broker's scheme, and no others.

A name that ends in `_total` only grows while the process lives; all others go up and down.
"""

from __future__ import annotations

from typing import Final

NODE_MEASURES: Final = {
    "sessions": "clients that the broker knows, with those that are away",
    "clients_connected": "clients that have a link",
    "clients_away": "clients that lost their link and may come back to their subscriptions",
    "subscriptions": "subscriptions of all sessions",
    "advertisements": "advertisements of all sessions",
    "publishers_waiting": "publishers that wait because a blocking subscription is full",
    "backlog_events": "events that wait for subscribers, in all subscriptions",
    "backlog_bytes": "size of the events that wait for subscribers",
    "backlog_events_longest": "events that wait in the subscription that has the most",
    "log_head": "the last position of the log of events",
    "log_tail": "the first position that is kept",
    "log_bytes": "about how many bytes of events are kept",
    "log_alarm": "1 if more than 80% of the log's hard limit is used: soon what named subscriptions need goes",
    "named_subscriptions": "cursors into the log",
    "named_lag_events": "how far the slowest named subscription is behind the head",
    "named_others": "named subscriptions beyond those that have measures of their own: they are summed",
    "named_sent_total": "events sent to named subscriptions, with those sent again",
    "named_read_total": "of those, the ones that were read from the log",
    "named_expired_total": "events that had expired before a named subscription's owner got them",
    "staged_bytes": "events that are staged and not committed",
    "events_accepted_total": "events that were accepted since the broker's memory began",
    "events_sent_total": "events sent to subscribers, with those sent again",
    "events_repeated_total": "events that were due to be sent again since nobody confirmed them",
    "events_on_time_total": "events that subscribers have received, and none of them after its deadline",
    "events_expired_total": "events that reached no subscriber before their deadline, once for each who wanted them",
    "events_dropped_total": "events that a subscription that drops the oldest had no room for",
    "on_time_of_arrived_per_mille": "of a thousand events that arrived here and were wanted, those on time",
    "application_requests_total": "requests that the hosted application has executed",
    "application_failures_total": "requests and events at which it raised something",
    "application_events_total": "events that it made",
    "application_events_dropped_total": "events that it made and that break a rule or a limit",
}

DRIVER_MEASURES: Final = {
    "connections": "open connections",
    "connections_opened_total": "connections whose handshake succeeded",
    "connections_refused_total": "connections that were refused or broke the protocol, for any reason",
    "bytes_read_total": "bytes read from all connections",
    "bytes_written_total": "bytes handed to the operating system, or to be",
    "turns_total": "turns of the node",
    "disk_bytes": "what the broker's folder takes, with room that was made ahead",
    "disk_alarm": "1 if it takes much that no event of the log needs: see what waits for neighbours",
}

MEASURES: Final = {**NODE_MEASURES, **DRIVER_MEASURES}

# Those of which there is one for each name of a subscription, as far as names have their own: the furthest behind. That
# of the empty name, which nobody has, is the sum over all others.
MEASURES_BY_NAME: Final = {
    "named_behind_events": "events that a named subscription has not acknowledged",
    "named_behind_bytes": "about how many bytes of those the log keeps; not summed for others, which hold the same",
}

# Those of which there is one for each reason: docs/limits.md has the reasons.
MEASURES_BY_REASON: Final = {"refusals_total": "connections that were refused or broke the protocol, by reason"}
