"""What can be measured of a broker of a network, besides what can be measured of any broker."""

from __future__ import annotations

from typing import Final

MEASURES: Final = {
    "map_number": "the number of the map that this broker has: the same at all when nothing is under way",
    "links_moved_total": "links of the tree whose end was moved, and this broker took part",
    "neighbours": "brokers that a link of the network joins this one with",
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
    "complaints": "neighbours that do not keep the service levels of the site",
    "complaints_total": "how often one did not",
    "standin_cases": "1 while this broker sees to it that another one gets a stand-in",
    "standin_crashes_total": "how often it did since one had failed",
    "standin_congestions_total": "… since one was congested",
    "standin_maintenances_total": "… since an operator wanted one to be stopped",
    "standin_given_up_total": "… and nothing came of it",
    "standin_handed_back_total": "places and work that brokers were given back by this one",
    "feeds_events": "events that neighbours have not acknowledged",
    "feeds_bytes": "size of the events that neighbours have not acknowledged",
}

# Of each neighbour, by its name, in networks that watch service levels.
MEASURES_BY_NAME: Final = {
    "neighbour_waiting_events": "events that wait for the neighbour, as they were last looked at",
    "neighbour_oldest_ms": "for how long the oldest of those has waited",
    "neighbour_rate": "events that it took in a second, while others waited",
}
