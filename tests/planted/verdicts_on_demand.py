"""Who sees the mistakes of `fresh_on_demand.py`: each is seen by the test of what it breaks."""

from __future__ import annotations

from typing import Final

FOLDER: Final = "tests/standin/cycle/"

_MEASURING: Final = "test_measuring.py::"
_LEVELS: Final = "test_levels.py::"
_COMPLAINTS: Final = "test_complaints.py::"
_CALLS: Final = "test_calls.py::"
_AGREEMENT: Final = "test_agreement.py::"
_CRASHES: Final = "test_crashes.py::"
_ASKED_FOR: Final = "test_asked_for.py::"
_RESERVATION: Final = "test_reservation.py::"
_CONGESTION: Final = "test_congestion.py::"
_WRONG_MONITORS: Final = "test_wrong_monitors.py::"
_RETURNING: Final = "test_returning.py::"

TESTS_ON_DEMAND: Final[dict[str, str]] = {
    "age-of-the-queue-and-not-of-the-event": (_MEASURING + "test_the_age_is_that_of_the_oldest_and_not_of_the_queue"),
    "idle-neighbour-has-a-rate-of-nothing": (
        _MEASURING + "test_the_rate_is_known_only_while_others_waited_all_the_time"
    ),
    "every-look-is-remembered": (_MEASURING + "test_what_is_remembered_is_bounded"),
    "violation-is-a-complaint-at-once": (_LEVELS + "test_a_spike_is_no_violation"),
    "absence-counts-as-congestion": (_LEVELS + "test_the_time_for_which_one_was_away_is_no_time_of_congestion"),
    "away-for-a-moment-is-added-up": (_LEVELS + "test_one_that_flaps_has_not_failed"),
    "one-neighbour-is-enough": (_COMPLAINTS + "test_one_has_failed_when_all_its_neighbours_say_so"),
    "complaints-are-never-over": (_COMPLAINTS + "test_what_is_not_said_again_is_over"),
    "next-one-sees-to-it-before-the-first-is-known-to-be-gone": (
        _COMPLAINTS + "test_as_long_as_it_is_not_known_of_one_that_comes_before_it_is_nobody"
    ),
    "who-waits-for-another-is-congested": (_COMPLAINTS + "test_one_that_complains_itself_is_not_the_cause"),
    "complaints-of-strangers-count": (_COMPLAINTS + "test_only_neighbours_complain_of_each_other"),
    "link-is-taken-for-an-answer": (_CALLS + "test_who_has_a_link_is_asked_whether_it_is_there"),
    "absence-that-was-found-once-counts-for-ever": (_CALLS + "test_what_was_found_long_ago_says_nothing_of_now"),
    "agrees-without-calling-the-broker": (_AGREEMENT + "test_who_is_no_neighbour_calls_the_broker_before_it_agrees"),
    "agreed-before-the-disk-knows": (_AGREEMENT + "test_never_two_maps_follow_one"),
    "own-wish-binds-nobody": (_AGREEMENT + "test_never_two_maps_follow_one"),
    "answers-of-an-earlier-round-count": (_AGREEMENT + "test_never_two_maps_follow_one"),
    "one-of-two-agrees-with-itself": (_AGREEMENT + "test_of_two_brokers_none_says_that_the_other_failed"),
    "spare-is-kept-before-anyone-can-be-asked": (
        _CRASHES + "test_one_that_is_cut_off_from_all_is_replaced_and_keeps_no_spare_from_them"
    ),
    "what-an-operator-wants-is-another-map": (_ASKED_FOR + "test_who_stands_in_need_not_be_said"),
    "spare-is-kept-for-all-who-ask": (_RESERVATION + "test_of_two_that_ask_for_one_the_first_gets_it"),
    "spare-is-kept-for-ever": (_RESERVATION + "test_who_asks_again_keeps_it"),
    "another-spare-for-one-whose-work-is-shared": (
        _CONGESTION + "test_one_that_fails_while_its_work_is_shared_is_replaced"
    ),
    "no-call-before-a-case-goes-on": (_WRONG_MONITORS + "test_a_monitor_that_is_wrong_replaces_nobody"),
    "wait-is-not-doubled": (_RETURNING + "test_one_that_is_in_need_again_soon_is_waited_for_twice_as_long_each_time"),
    "what-an-operator-wanted-is-given-back": (_RETURNING + "test_what_an_operator_asked_for_an_operator_gives_back"),
    "end-of-a-call-ends-being-well": (_RETURNING + "test_a_call_that_ends_is_no_end_of_being_well"),
}
