"""What can be measured of a broker, by name: `/metrics` and `holdfast status` show these and no others.

A name that ends in `_total` only grows while the process lives; all others go up and down.
"""

from __future__ import annotations

from typing import Final

# Of a broker of a network, besides.
NETWORK_MEASURES: Final = {
    "neighbours": "brokers that a link of the site joins this one with",
    "neighbours_suspected": "of those, the ones that seem to have failed",
    "neighbours_suspected_total": "how often one seemed to",
    "neighbours_silent_closed_total": "connections to neighbours that were closed since nothing came over them",
    "heartbeats_sent_total": "heartbeats sent to neighbours",
    "neighbours_linked": "of those, the ones that this broker has a connection to",
    "routes": "subscriptions in the routing table, with those of this broker's own clients and names",
    "routes_advertised": "advertisements in the routing table",
    "routes_told": "subscriptions that neighbours were told, counted for each",
    "routes_hidden": "subscriptions that neighbours were not told, since a broader one covers them",
    "routes_expected": "advertisements that a neighbour has not answered: it counts as wanting all under them",
    "routes_awaited": "neighbours of whose side this broker does not know everything yet",
    "advertisements_postponed": "advertisements that are to go when what was published under them has passed",
    "publishers_held": "publishers that wait for the network to settle, or for a way out of this broker",
    "topics_advertised": "topics that are advertised for clients that did not advertise by themselves",
    "events_forwarded_total": "events sent to neighbours, with those sent again",
    "events_arrived_total": "events that came from neighbours, without those that came again",
    "events_lost_total": "events that were lost with a link, or had none to go by",
    "events_expired_under_way_total": "events that expired before they could be sent on, or came too late",
    "events_retransmitted_total": "events that were due to be sent again to neighbours, or came again",
    "detours_sent_total": "messages sent around a neighbour, or around the link to it, for each that they went to",
    "detours_passed_total": "messages of others that were passed on",
    "detours_arrived_total": "messages that came around a neighbour",
    "detours_dropped_total": "messages of others that there was no way for any more",
    "brokers_unreachable": "brokers that no links lead to now, as far as this one knows",
    "brokers_unready": "brokers that can be reached, and do not know yet what is wanted: events go around them",
    "link_states_sent_total": "news of links that were sent",
    "link_states_received_total": "news of links that came",
    "feeds_events": "events that neighbours have not acknowledged",
    "feeds_bytes": "size of the events that neighbours have not acknowledged",
}

NODE_MEASURES: Final = {
    "sessions": "clients that the broker knows, with those that are away",
    "clients_connected": "clients that have a link",
    "clients_away": "clients that lost their link and may come back to their subscriptions",
    "replica_clients_direct": "clients with a direct link: their sessions are at another replica",
    "replica_direct_publications_total": "publications that came over direct links and were handed on",
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
    "replica_is_leading": "1 at the replica that leads its group",
    "replica_survives": "how many more replicas may fail, of those that this one hears, and the group goes on",
    "replica_tolerates": "how many may fail if all are there",
    "replica_peers": "other replicas that this one hears",
    "replica_ballot": "the highest ballot that this replica has promised",
    "replica_slots_executed": "slots of the group's log that this replica has executed",
    "replica_slots_behind": "slots that another replica has executed and this one not",
    "replica_events_missing": "events of the log that this replica lacks and fetches",
    "replica_slots_undecided": "at the leader: slots that are proposed and not decided",
    "replica_commands_waiting": "at the leader: commands that have no slot yet",
    "replica_elections_total": "how often this replica became the leader",
    "replica_fast_is_open": "1 where this replica may vote for what clients propose to it",
    "replica_fast_slots_total": "at the leader: slots that were executed while fast rounds were open",
    "replica_fast_recovered_total": "… and of those, slots that needed a classic round too",
    "replica_fast_given_up_total": "at the leader: times that fast rounds were given up for a while",
    **NETWORK_MEASURES,
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
