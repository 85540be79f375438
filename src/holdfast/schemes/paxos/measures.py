"""What can be measured of a replica, besides what can be measured of any broker."""

from __future__ import annotations

from typing import Final

MEASURES: Final = {
    "replica_clients_direct": "clients with a direct link: their sessions are at another replica",
    "replica_direct_publications_total": "publications that came over direct links and were handed on",
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
}
