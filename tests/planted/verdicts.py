"""Who sees the mistakes of `fresh.py`: a swarm, by its recorded seed, or a test; or nobody, and why that is right.

`survived`: it did when it was planted (2026-11-17): the tests of its area and forty seeds of each swarm passed with it.
These were 23 of 99. Each but one has a test since then.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tests.planted.verdicts_on_demand import FOLDER, TESTS_ON_DEMAND


class Verdict(msgspec.Struct, frozen=True):
    swarm: str = ""
    test: str = ""
    harmless: str = ""
    survived: bool = False


VERDICTS: Final[dict[str, Verdict]] = {
    "promise-told-before-it-is-on-the-disk": Verdict(swarm="replicas"),
    "votes-told-before-they-are-on-the-disk": Verdict(swarm="replicas"),
    "own-vote-counted-before-it-is-on-the-disk": Verdict(swarm="replicas"),
    "own-promise-safe-with-any-write": Verdict(
        test="tests/paxos/test_acceptor.py::test_a_promise_is_safe_with_its_own_write_and_not_with_an_earlier_one",
        survived=True,
    ),
    "promise-restored-from-the-votes": Verdict(
        test="tests/paxos/test_exploration.py::test_one_value_is_chosen_whatever_happens"
    ),
    "ballot-heard-of-before-the-own-disk-has-it": Verdict(swarm="replicas"),
    "parts-of-two-answers-make-one-promise": Verdict(
        test="tests/paxos/test_promises.py::test_parts_of_two_answers_to_one_ballot_are_not_put_together", survived=True
    ),
    "what-others-executed-is-proposed-again": Verdict(swarm="replicas"),
    "half-of-an-even-group-is-a-majority": Verdict(swarm="changing groups"),
    "votes-of-all-ballots-counted-together": Verdict(swarm="changing groups"),
    "first-slot-of-a-ballot-not-alone": Verdict(
        test="tests/paxos/test_changes.py::test_the_first_slot_of_a_ballot_is_decided_alone"
    ),
    "serves-before-it-has-executed-what-it-picked": Verdict(swarm="groups"),
    "renewed-ballot-is-asked-for-once": Verdict(swarm="changing groups"),
    "origins-are-no-part-of-the-snapshot": Verdict(
        test="tests/paxos/test_catching_up.py::test_a_snapshot_knows_whose_entries_were_executed", survived=True
    ),
    "vouches-for-slots-whose-events-it-lacks": Verdict(
        test="tests/sim/test_lacking_events.py::test_two_replicas_elect_a_leader_though_one_lacks_events"
    ),
    "votes-forgotten-up-to-what-is-executed": Verdict(
        test="tests/paxos/test_catching_up.py::test_an_accept_that_is_repeated_after_the_slot_was_trimmed_changes_nothing_that_counts"
    ),
    "fast-quorum-of-two-thirds": Verdict(swarm="fast rounds"),
    "classic-vote-not-above-the-fast-one-of-its-ballot": Verdict(swarm="fast rounds"),
    "recovers-with-a-value-that-it-knows": Verdict(swarm="fast rounds"),
    "votes-fast-after-it-voted-classic": Verdict(swarm="fast rounds"),
    "votes-fast-below-where-rounds-are-open": Verdict(swarm="fast rounds"),
    "own-fast-vote-counted-before-it-is-on-the-disk": Verdict(swarm="fast rounds"),
    "fast-votes-told-before-they-are-on-the-disk": Verdict(swarm="fast rounds"),
    "time-not-restored-with-a-snapshot": Verdict(swarm="fast rounds"),
    "fast-rounds-opened-behind-a-change": Verdict(
        test="tests/paxos/test_coordinator.py::test_fast_rounds_are_not_opened_behind_a_change_of_members_that_is_not_executed",
        survived=True,
    ),
    "holes-below-used-slots-not-filled": Verdict(
        test="tests/paxos/test_coordinator.py::test_a_slot_below_one_that_is_used_is_filled_with_nothing"
    ),
    "votes-of-other-rounds-of-the-slot-shown-to-the-leader": Verdict(
        test="tests/paxos/test_fast_rounds.py::test_votes_of_an_earlier_ballot_are_no_votes_in_the_present_one",
        survived=True,
    ),
    "learners-count-for-the-majority": Verdict(swarm="changing groups"),
    "holding-compares-slots-with-positions": Verdict(
        test="tests/paxos/test_holding.py::test_what_came_of_slots_is_counted_in_its_own_numbers", survived=True
    ),
    "votes-forgotten-for-what-one-replica-holds": Verdict(
        test="tests/paxos/test_catching_up.py::test_votes_are_forgotten_only_for_what_a_majority_holds", survived=True
    ),
    "snapshot-written-before-the-events-that-it-speaks-of": Verdict(
        test="tests/paxos/test_catching_up.py::test_what_a_snapshot_speaks_of_is_written_before_it", survived=True
    ),
    "snapshot-taken-before-the-members-change": Verdict(swarm="changing groups"),
    "snapshot-only-where-the-voters-change": Verdict(
        test="tests/paxos/test_changes.py::test_a_replica_is_added_while_the_group_serves"
    ),
    "snapshot-of-another-kept-in-memory-only": Verdict(swarm="changing groups"),
    "repaired-disk-counts-as-the-one-before": Verdict(
        test="tests/paxos/test_catching_up.py::test_a_disk_of_which_something_was_given_up_is_another_one",
        survived=True,
    ),
    "formed-when-a-majority-has-written-down": Verdict(swarm="replicas"),
    "one-goes-though-too-few-hold-its-events": Verdict(
        test="tests/paxos/test_changes.py::test_nobody_is_removed_while_too_few_of_the_others_hold_what_came_of_commands"
    ),
    "learner-votes-before-it-holds-anything": Verdict(swarm="changing groups"),
    "votes-of-another-epoch-count": Verdict(
        test="tests/paxos/test_fast_rounds.py::test_votes_of_other_voters_are_not_counted", survived=True
    ),
    "gives-a-state-whose-events-it-lacks": Verdict(
        test="tests/paxos/test_catching_up.py::test_a_replica_that_lacks_events_gives_no_state_that_speaks_of_them",
        survived=True,
    ),
    "leads-though-it-lacks-events": Verdict(
        test="tests/sim/test_lacking_events.py::test_a_replica_that_vouches_for_what_it_cannot_give_leaves_the_group_without_a_leader"
    ),
    "epoch-from-the-clock-alone": Verdict(
        test="tests/sessions/test_blocking.py::test_what_waited_in_an_old_session_is_not_published_in_a_new_one"
    ),
    "refusals-numbered-one-too-low": Verdict(swarm="one broker"),
    "memory-not-restored": Verdict(
        test="tests/sessions/test_core.py::test_no_command_raises_and_every_state_can_be_kept"
    ),
    "new-leader-does-not-look-for-those-who-stay-away": Verdict(
        test="tests/sessions/test_host.py::test_a_client_that_stays_away_from_a_new_leader_loses_its_subscriptions_too",
        survived=True,
    ),
    "starved-subscription-is-not-asked-again": Verdict(swarm="one broker"),
    "received-taken-for-consumed-on-a-new-link": Verdict(
        test="tests/sessions/test_host.py::test_a_resumed_session_gets_what_its_client_has_not_received_and_no_more_than_it_has_room_for"
    ),
    "room-promised-to-what-is-under-way-too": Verdict(
        test="tests/sessions/test_direct_host.py::test_what_was_said_to_all_counts_as_under_way_until_it_is_applied"
    ),
    "gap-told-only-where-the-subscription-is-not-made-again": Verdict(swarm="one broker"),
    "repetitions-pass-in-bulk": Verdict(
        test="tests/sessions/test_at_once.py::test_events_taken_together_count_as_those_taken_one_by_one"
    ),
    "numbers-of-what-was-given-up-used-again": Verdict(
        test="tests/sessions/test_client.py::test_without_retry_an_event_that_a_lost_link_swallows_is_lost"
    ),
    "published-again-to-a-broker-that-forgot-only-this-client": Verdict(
        test="tests/sessions/test_client.py::test_a_broker_that_forgot_only_this_client_leaves_what_was_sent_in_doubt"
    ),
    "requests-asked-again-where-the-session-is-forgotten": Verdict(
        test="tests/sessions/test_application_asker.py::test_nobody_knows_what_became_of_requests_when_the_broker_forgot_the_client"
    ),
    "resumed-client-is-told-nothing-of-what-ended": Verdict(swarm="one broker"),
    "lost-names-are-no-part-of-the-snapshot": Verdict(swarm="names in groups"),
    "takeover-in-a-group-says-first-attempt": Verdict(swarm="names"),
    "what-a-driver-still-reads-is-not-counted-as-sent": Verdict(
        test="tests/cursors/test_host.py::test_how_far_a_driver_that_still_reads_will_come_is_not_known", survived=True
    ),
    "attempts-are-no-part-of-the-snapshot": Verdict(
        test="tests/cursors/test_cursor_table.py::test_a_cursors_state_has_everything", survived=True
    ),
    "retention-forgets-names-that-nobody-reads": Verdict(
        test="tests/cursors/test_host.py::test_a_cursor_that_lost_something_keeps_nothing_from_being_given_up"
    ),
    "retention-looks-at-names-before-the-order-is-decided": Verdict(swarm="names in groups"),
    "last-event-under-an-old-filter-missed": Verdict(swarm="names"),
    "another-log-taken-for-the-one-that-was-read": Verdict(
        test="tests/cursors/test_consumer.py::test_a_new_link_goes_on_where_the_old_one_was_and_moves_nothing"
    ),
    "end-of-the-log-told-without-asking-the-group": Verdict(
        test="tests/cursors/test_host.py::test_a_group_has_to_agree_where_its_log_ends", survived=True
    ),
    "held-publications-released-behind-the-journal": Verdict(swarm="networks"),
    "held-publications-outlive-their-link": Verdict(
        harmless="what is published then has the number that its client knows: said again, it is recognised, and of "
        "what was given up nobody knows whether it was taken in, which its publisher is told",
        survived=True,
    ),
    "later-advertisement-pulls-no-expected-subscriptions": Verdict(
        test="tests/routing/test_tables.py::test_an_advertisement_that_comes_later_pulls_what_is_expected_too",
        survived=True,
    ),
    "subscription-goes-with-the-first-of-two-advertisements": Verdict(swarm="networks"),
    "only-own-advertisements-wait-for-their-events": Verdict(
        test="tests/routing/test_tables.py::test_an_advertisement_is_taken_back_when_what_was_published_under_it_has_passed",
        survived=True,
    ),
    "what-goes-and-comes-in-a-turn-is-taken-back": Verdict(
        test="tests/routing/test_tables.py::test_what_comes_and_goes_before_anyone_is_told_is_never_told"
    ),
    "answers-to-tickets-of-an-earlier-link": Verdict(
        test="tests/routing/test_settling.py::test_who_asked_over_a_link_that_is_gone_is_answered_nothing",
        survived=True,
    ),
    "any-answer-answers-all-advertisements": Verdict(
        test="tests/routing/test_answers.py::test_an_answer_on_an_earlier_link_does_not_count_for_what_was_told_on_this_one"
    ),
    "answers-outlive-their-advertisements": Verdict(
        test="tests/routing/test_answers.py::test_an_advertisement_that_was_taken_back_and_comes_again_is_to_be_answered_again_also_after_a_restart"
    ),
    "complete-though-another-neighbour-is-awaited": Verdict(
        test="tests/sim/test_network_levels.py::test_nobody_forgets_for_what_a_restarted_broker_does_not_know_yet"
    ),
    "half-a-telling-kept-over-a-lost-link": Verdict(
        test="tests/routing/test_settling.py::test_a_telling_that_broke_off_is_no_part_of_the_next_one", survived=True
    ),
    "topics-are-no-part-of-the-tables-snapshot": Verdict(
        test="tests/routing/test_table_store.py::test_a_snapshot_holds_everything_that_was_written_before_it",
        survived=True,
    ),
    "acknowledged-before-it-is-stored": Verdict(swarm="networks"),
    "what-the-disk-has-is-not-copied": Verdict(
        test="tests/sim/test_regressions.py::test_a_scenario_that_once_failed_is_clean"
    ),
    "numbers-of-a-feed-before-count-for-the-present-one": Verdict(
        test="tests/sim/test_network_levels.py::test_a_broker_that_lost_its_table_keeps_events_until_it_knows_who_wants_them"
    ),
    "new-feed-of-a-neighbour-goes-on-from-the-old-number": Verdict(
        test="tests/sim/test_network_levels.py::test_a_broker_that_lost_its_table_keeps_events_until_it_knows_who_wants_them"
    ),
    "last-record-of-the-store-goes-too": Verdict(swarm="networks"),
    "two-full-brokers-wait-for-each-other": Verdict(
        test="tests/sim/test_network_waiting.py::test_two_brokers_that_are_full_of_what_they_have_for_each_other_go_on"
    ),
    "events-that-came-around-not-restored": Verdict(
        test="tests/sessions/test_arrivals.py::test_what_came_around_is_known_until_the_stored_copy_comes_however_many_there_are"
    ),
    "stored-copy-makes-it-forget-the-event": Verdict(
        test="tests/sessions/test_arrivals.py::test_what_came_around_is_known_until_the_stored_copy_comes_however_many_there_are"
    ),
    "events-overtake-news-that-went-around": Verdict(
        test="tests/sim/test_told_around.py::test_an_event_does_not_overtake_the_advertisement_that_it_falls_under"
    ),
    "told-completely-before-counts-as-told-now": Verdict(swarm="networks"),
    "full-tellings-of-stand-ins-are-taken-whole": Verdict(swarm="networks"),
    "word-of-an-earlier-life-counts": Verdict(
        test="tests/bypass/test_database.py::test_what_a_neighbour_said_in_an_earlier_life_holds_no_more"
    ),
    "link-states-compared-by-number-alone": Verdict(
        test="tests/bypass/test_database.py::test_the_newest_of_the_newest_life_wins"
    ),
    "never-speaks-above-its-earlier-life": Verdict(
        test="tests/routing/test_hostile.py::test_a_number_made_up_for_this_broker_does_not_make_it_say_what_others_refuse"
    ),
    "one-end-says-that-a-link-is-up": Verdict(
        test="tests/bypass/test_bypassing.py::test_the_children_of_a_failed_broker_get_what_was_meant_for_it"
    ),
    "end-of-an-older-link-ends-the-news": Verdict(
        test="tests/bypass/test_link_state.py::test_a_link_that_went_down_is_told_nothing_and_an_older_one_does_not_count"
    ),
    "end-of-an-older-link-is-taken-for-the-newers": Verdict(
        test="tests/failure/test_detector.py::test_an_older_link_that_ends_and_a_dial_that_lost_the_race_say_nothing"
    ),
    "last-group-not-written-again-when-opened": Verdict(
        test="tests/storage/test_faults.py::test_what_is_read_after_a_failed_sync_and_a_restart_stays"
    ),
    "stream-renewed-while-some-of-it-is-not-on-the-disk": Verdict(
        test="tests/runtime/test_segment_storage.py::test_a_stream_of_which_something_is_under_way_is_not_written_anew",
        survived=True,
    ),
    "blocks-of-a-torn-group-prove-damage": Verdict(
        test="tests/storage/test_crashes.py::test_nothing_acknowledged_is_lost_wherever_the_power_goes"
    ),
    "damage-before-the-last-commit-cut-as-torn": Verdict(
        test="tests/storage/test_damage.py::test_the_report_names_the_numbers_that_are_lost"
    ),
    "mark-names-what-is-not-written": Verdict(
        test="tests/storage/test_damage.py::test_a_mark_says_nothing_of_what_was_appended_and_not_written"
    ),
    "segments-removed-without-a-sync-between": Verdict(
        test="tests/storage/test_crashes.py::test_nothing_acknowledged_is_lost_wherever_the_power_goes"
    ),
    "lives-by-the-clock-alone": Verdict(
        test="tests/runtime/test_segment_storage.py::test_a_life_is_later_than_all_before_also_when_the_clock_was_put_back",
        survived=True,
    ),
    "advertisements-of-the-other-side-told-back": Verdict(swarm="replacements"),
    "subscriptions-of-the-other-side-told-back": Verdict(swarm="replacements"),
    "last-is-not-said-without-advertisements": Verdict(swarm="replacements"),
    "answers-are-not-said-without-subscriptions": Verdict(swarm="replacements"),
    "only-the-first-advertisement-of-a-message-is-answered": Verdict(swarm="replacements"),
    "what-a-stand-in-tells-is-told-on": Verdict(
        test="tests/standin/test_conversation.py::test_only_the_stand_in_and_the_direct_neighbours_take_part"
    ),
    "unnamed-entries-stay-for-ever": Verdict(swarm="replacements"),
    "named-entries-go-too": Verdict(swarm="replacements"),
    "told-as-any-neighbour-on-the-next-link": Verdict(
        test="tests/standin/test_relinked.py::test_a_stand_in_with_a_new_link_is_told_nothing_before_it_asks_again"
    ),
    "queue-of-the-stand-in-is-never-resumed": Verdict(
        test="tests/standin/test_conversation.py::test_after_a_replacement_links_carry_what_they_carry_where_nothing_was_replaced"
    ),
    "synch-passes-on-before-it-is-done": Verdict(swarm="replacements"),
    "queue-is-not-suspended": Verdict(swarm="replacements"),
    "queue-is-not-suspended-after-a-restart": Verdict(
        test="tests/standin/test_meanwhile.py::test_what_the_disk_has_for_a_stand_in_does_not_come_before_what_it_falls_under"
    ),
    "what-waits-for-the-faulty-is-given-up": Verdict(swarm="replacements"),
    "nothing-is-kept-for-a-neighbour-out-of-reach": Verdict(swarm="replacements"),
    "what-was-moved-comes-behind-what-is-new": Verdict(
        test="tests/standin/test_figures.py::test_increm_breaks_the_order_and_the_others_do_not"
    ),
    "tables-are-not-rewritten": Verdict(swarm="replacements"),
    "wait-ready-without-the-log": Verdict(swarm="replacements"),
    "wait-ready-strands-what-is-left": Verdict(swarm="replacements"),
    "wait-ready-forgets-what-has-come": Verdict(
        test="tests/standin/test_wait_ready.py::test_what_comes_for_a_subscription_that_is_known_may_leave_at_once"
    ),
    "wait-ready-indexes-by-the-first-subscription": Verdict(
        test="tests/standin/test_wait_ready.py::test_events_leave_as_they_do_where_each_subscription_has_a_queue_of_its_own"
    ),
    "queues-forget-what-has-left-by-others": Verdict(
        test="tests/standin/test_wait_ready.py::test_events_leave_as_they_do_where_each_subscription_has_a_queue_of_its_own"
    ),
    "events-carry-only-what-has-come": Verdict(swarm="replacements"),
    "only-what-was-named-is-told": Verdict(
        test="tests/standin/test_preferences.py::test_the_same_comes_in_every_order"
    ),
    "the-order-stays-at-the-stand-in": Verdict(
        test="tests/standin/test_preferences.py::test_subscriptions_come_to_the_stand_in_in_the_order_that_is_asked_for"
    ),
    "a-neighbour-met-late-hears-no-order": Verdict(
        test="tests/standin/test_preferences.py::test_a_neighbour_that_comes_later_hears_of_the_order_before_it_hears_what_is_advertised"
    ),
    "what-is-known-here-goes-on-in-any-order": Verdict(
        test="tests/standin/test_preferences.py::test_what_is_known_already_goes_in_that_order_too"
    ),
    "sent-to-is-not-remembered": Verdict(
        test="tests/standin/test_wait_ready.py::test_nobody_gets_an_event_that_went_there_before"
    ),
    "sent-to-is-not-kept-up": Verdict(
        test="tests/standin/test_wait_ready.py::test_nobody_gets_an_event_that_went_there_before"
    ),
    "events-go-back-to-where-they-came-from": Verdict(
        test="tests/standin/test_wait_ready.py::test_nobody_gets_an_event_that_went_there_before"
    ),
    "what-is-kept-goes-before-the-last-are-served": Verdict(swarm="replacements"),
    "done-when-all-have-advertised": Verdict(swarm="replacements"),
    "told-to-the-others-and-not-asked-back": Verdict(swarm="replacements"),
    "a-neighbour-met-late-hears-of-advertisements-only": Verdict(
        test="tests/standin/test_meanwhile.py::test_a_neighbour_that_is_met_late_hears_what_is_wanted_where_nothing_is_advertised"
    ),
    "who-is-silent-is-waited-for": Verdict(
        test="tests/standin/test_meanwhile.py::test_a_neighbour_that_dies_is_left_out_and_tells_everything_when_it_is_back"
    ),
    "lost-links-are-not-asked-again": Verdict(swarm="stand-ins"),
    "what-is-heard-in-the-conversation-is-not-passed-on": Verdict(swarm="replacements"),
    "a-replaced-broker-that-is-dialled-as-a-rule-waits-for-ever": Verdict(swarm="stand-ins"),
    **{name: Verdict(test=f"{FOLDER}{test}") for name, test in TESTS_ON_DEMAND.items()},
}
