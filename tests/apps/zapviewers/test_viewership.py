"""The replicated application: what it derives, answers and keeps (D4-B9, D4-B11, D4-G4)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.zapviewers.generator import ZapSettings, generate
from holdfast.apps.zapviewers.publications import payloads
from holdfast.apps.zapviewers.viewership import CHANNELS_TOLD_MAX, Viewership
from holdfast.kernel.application import Derived
from holdfast.model.filter import Filter
from holdfast.protocols.core.limits import HostingLimits
from tests.apps.zapviewers.reports import payload, report, zap

SECOND = 10**9


def ask(viewership: Viewership, **request: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(viewership.execute(json.dumps(request).encode()))
    return answer


def observe(viewership: Viewership, number: int, wall: int, *lines: str) -> list[Derived]:
    return list(viewership.observe(number, wall, "zap", {}, payload(*lines)))


def test_top_list_and_changed_channels_are_derived() -> None:
    viewership = Viewership()
    derived = observe(viewership, 5, SECOND, zap(1, "B", "X"), zap(2, "A", "X"), zap(3, "B", "X"))
    assert derived == [
        Derived(
            "zap-top", {"position": 5, "lines": 3, "viewers": 3, "channels": 2, "first": "B"}, b'[["B",2],["A",1]]'
        ),
        Derived("zap-viewers", {"channel": "A", "viewers": 1, "position": 5}, b""),
        Derived("zap-viewers", {"channel": "B", "viewers": 2, "position": 5}, b""),
    ]


def test_a_channel_that_everybody_left_is_told_of() -> None:
    viewership = Viewership()
    observe(viewership, 1, SECOND, zap(1, "A", "X"))
    derived = observe(viewership, 2, 2 * SECOND, report(1, "power off"))
    assert derived == [
        Derived("zap-top", {"position": 2, "lines": 2, "viewers": 0, "channels": 0, "first": ""}, b"[]"),
        Derived("zap-viewers", {"channel": "A", "viewers": 0, "position": 2}, b""),
    ]


def test_nothing_is_derived_again_before_its_time_or_without_a_change() -> None:
    viewership = Viewership(every_ms=500)
    assert observe(viewership, 1, SECOND, zap(1, "A", "X"))
    assert observe(viewership, 2, SECOND + SECOND // 2 - 1, zap(1, "B", "A")) == []
    assert [d.attributes.get("channel") for d in observe(viewership, 3, SECOND + SECOND // 2)] == [None, "A", "B"]
    assert observe(viewership, 4, 3 * SECOND, report(1, "mute")) == []


def test_the_top_list_is_not_told_again_while_only_others_change() -> None:
    viewership = Viewership()
    observe(viewership, 1, SECOND, *(zap(box, f"C{box // 2:02}", "X") for box in range(20)))
    derived = observe(viewership, 2, 2 * SECOND, zap(30, "last", "X"))
    assert derived == [Derived("zap-viewers", {"channel": "last", "viewers": 1, "position": 2}, b"")]


def test_a_clock_that_was_set_back_does_not_silence_it() -> None:
    viewership = Viewership()
    assert observe(viewership, 1, 1000 * SECOND, zap(1, "A", "X"))
    assert observe(viewership, 2, 500 * SECOND, zap(1, "B", "A")) == []
    assert observe(viewership, 3, 501 * SECOND)


def test_subscribers_need_nothing_but_filters() -> None:
    derived = observe(Viewership(), 1, SECOND, zap(1, "B", "X"), zap(2, "A", "X"))
    top, one_channel = Filter("topic = 'zap-top'"), Filter("topic = 'zap-viewers' AND channel = 'B'")
    assert [top.matches(event.attributes, event.topic) for event in derived] == [True, False, False]
    assert [one_channel.matches(event.attributes, event.topic) for event in derived] == [False, False, True]


def test_events_on_other_topics_are_nothing_to_it() -> None:
    viewership = Viewership()
    state = viewership.get_state()
    assert list(viewership.observe(1, SECOND, "zap-top", {}, payload(zap(1, "A", "X")))) == []
    assert viewership.get_state() == state
    assert viewership.topics == {"zap"}


def test_questions_are_answered() -> None:
    viewership = Viewership()
    observe(viewership, 9, SECOND, zap(1, "B", "X"), zap(2, "A", "X"), zap(2, "B", "X"), "no,line", "\x1b")
    assert ask(viewership, ask="num_viewers", channel="B") == {"channel": "B", "viewers": 2}
    assert ask(viewership, ask="num_viewers", channel="never") == {"channel": "never", "viewers": 0}
    top = {"top": [["B", 2]], "position": 9, "lines": 5, "viewers": 2, "channels": 1}
    assert ask(viewership, ask="top_list", n=1) == top
    counts = ask(viewership, ask="counts")
    digest, audience = counts.pop("digest"), counts.pop("audience")
    assert counts == {
        "events": 1,
        "lines": 5,
        "malformed": 2,
        "anomalies": 1,
        "boxes": 2,
        "watching": 2,
        "position": 9,
        "sample": [
            {"position": 9, "line": "no,line", "reason": "not 4 or 5 fields"},
            {"position": 9, "line": "\x1b", "reason": "not 4 or 5 fields"},
        ],
    }
    observe(viewership, 10, SECOND, report(1, "mute"))
    again = ask(viewership, ask="counts")
    assert again["digest"] != digest
    assert again["audience"] != audience


def test_the_digest_of_the_audience_does_not_depend_on_what_was_told_when() -> None:
    """Who counts from the log does not know at which times the replicas did."""
    often, seldom = Viewership(every_ms=1), Viewership(every_ms=10_000)
    for number in range(1, 6):
        observe(often, number, number * SECOND, zap(number, "A", "X"), "no line")
        observe(seldom, number, SECOND, zap(number, "A", "X"), "no line")
    counted, recounted = ask(often, ask="counts"), ask(seldom, ask="counts")
    assert counted.pop("digest") != recounted.pop("digest")
    assert counted == recounted


def test_no_more_channels_are_told_of_at_a_time_than_a_broker_takes_and_all_have_their_turn() -> None:
    assert HostingLimits().derived_events >= CHANNELS_TOLD_MAX + 1
    viewership, other = Viewership(channels_max=4), Viewership(channels_max=4)
    observe(viewership, 1, SECOND // 2, *(zap(box, f"C{box}", "X") for box in range(10)))
    told = []
    for number in range(2, 6):
        other.set_state(viewership.get_state())
        derived = observe(viewership, number, number * SECOND, report(1, "mute"))
        assert observe(other, number, number * SECOND, report(1, "mute")) == derived
        told.append([d.attributes["channel"] for d in derived if d.topic == "zap-viewers"])
    assert told == [["C0", "C1", "C2", "C3"], ["C4", "C5", "C6", "C7"], ["C8", "C9"], []]


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"null",
        b"\xff",
        b"{}",
        b'{"ask": "counts", "more": 1}',
        b'{"ask": "top_list", "n": -1}',
        b'{"ask": "top_list", "n": 1e9}',
        b'{"ask": "top_list", "n": 1.5}',
        b'{"ask": "num_viewers"}',
        b'{"ask": "num_viewers", "channel": 3}',
        b'{"ask": "drop"}',
        b'{"a": ' + b"[" * 500,
        b'{"ask": "num_viewers", "channel": "' + b"x" * 1000 + b'"}',
    ],
)
def test_a_bad_request_is_answered_with_an_error(request_: bytes) -> None:
    assert list(json.loads(Viewership().execute(request_))) == ["error"]


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: json.dumps({"ask": text}).encode()))
def test_whatever_is_asked_or_published_nothing_is_raised_and_a_question_changes_nothing(data: bytes) -> None:
    viewership = Viewership()
    viewership.observe(1, SECOND, "zap", {}, data)
    state = viewership.get_state()
    assert json.loads(viewership.execute(data))
    assert viewership.get_state() == state


def test_a_lone_surrogate_is_no_channel() -> None:
    request = b'{"ask": "num_viewers", "channel": "\\ud800"}'
    assert json.loads(Viewership().execute(request))


def test_a_replica_that_took_over_a_state_goes_on_the_same() -> None:
    one, other = Viewership(), Viewership()
    observe(one, 1, SECOND, zap(1, "A", "X"), zap(2, "B", "X"), "nonsense")
    observe(one, 2, SECOND + 1, zap(1, "B", "A"))
    other.set_state(one.get_state())
    assert other.get_state() == one.get_state()
    derived = observe(one, 3, 2 * SECOND, zap(3, "A", "X"))
    assert derived
    assert observe(other, 3, 2 * SECOND, zap(3, "A", "X")) == derived
    assert other.get_state() == one.get_state()
    assert ask(other, ask="counts") == ask(one, ask="counts")


@pytest.mark.parametrize("moved_after", [1, 7, 20])
def test_replicas_tell_the_same_wherever_one_took_over_a_state(moved_after: int) -> None:
    turns = islice(generate(ZapSettings(boxes=2_000, rate=20.0)), 12)
    events = list(payloads((turn.text for turn in turns), 20))
    assert len(events) > 25
    one, other = Viewership(every_ms=300), Viewership(every_ms=300)
    for number, lines in enumerate(events, start=1):
        derived = list(one.observe(number, number * SECOND // 10, "zap", {}, lines))
        assert list(other.observe(number, number * SECOND // 10, "zap", {}, lines)) == derived
        assert other.get_state() == one.get_state()
        assert other.compute_top_list(1000) == one.compute_top_list(1000)
        if number == moved_after:
            other = Viewership(every_ms=300)
            other.set_state(one.get_state())
    assert (one.audience.malformed, one.audience.anomalies) == (0, 0)


def test_states_do_not_depend_on_the_hashes_of_a_process() -> None:
    code = (
        "from holdfast.apps.zapviewers.viewership import Viewership\n"
        "v = Viewership()\n"
        "lines = [b'2026-11-15,20:15:03,10.0.0.%d,C%d,D%d' % (n, n % 9, n % 7) for n in range(200)]\n"
        "print(v.observe(1, 10**9, 'zap', {}, b'\\n'.join(lines)), v.get_state())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
