"""Who watches what, line by line (D4-B9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.zapviewers import audience as module
from holdfast.apps.zapviewers.audience import SAMPLE_LINES, Audience, ChannelViewers, Refused
from holdfast.apps.zapviewers.lines import Malformed, Report, Zap, parse
from tests.apps.zapviewers.reports import payload, report, zap


def audience_of(*lines: str) -> Audience:
    audience = Audience()
    audience.take(payload(*lines))
    return audience


def viewers(audience: Audience) -> dict[str, int]:
    return {name: count for name, count in zip(audience.names, audience.counts(), strict=True) if count}


def test_a_box_leaves_its_channel_and_joins_another() -> None:
    audience = audience_of(zap(1, "A", "X"), zap(2, "A", "Y"), zap(1, "B", "A"))
    assert viewers(audience) == {"A": 1, "B": 1}
    assert (audience.anomalies, audience.boxes, audience.watching) == (0, 2, 2)


def test_the_first_line_of_a_box_disagrees_with_nothing() -> None:
    for line in (zap(1, "A", "X"), report(1, "power on"), report(1, "power off"), report(1, "mute")):
        assert audience_of(line).anomalies == 0


def test_a_box_that_is_off_watches_nothing_and_comes_back_on_its_channel() -> None:
    audience = audience_of(zap(1, "A", "X"), report(1, "power off"))
    assert (viewers(audience), audience.watching) == ({}, 0)
    audience.take(payload(report(1, "power on")))
    assert viewers(audience) == {"A": 1}
    audience.take(payload(zap(1, "B", "A")))
    assert (viewers(audience), audience.anomalies) == ({"B": 1}, 0)


@pytest.mark.parametrize("first", ["power on", "power off", "volume 3"])
def test_a_box_whose_channel_is_not_known_is_on_none_until_it_changes(first: str) -> None:
    audience = audience_of(report(1, first))
    assert (viewers(audience), audience.watching) == ({}, first != "power off")
    if first == "power off":
        audience.take(payload(report(1, "power on")))
    audience.take(payload(zap(1, "A", "X")))
    assert (viewers(audience), audience.watching, audience.anomalies) == ({"A": 1}, 1, 0)


def test_sound_changes_nothing() -> None:
    audience = audience_of(zap(1, "A", "X"), report(1, "volume 9"), report(1, "mute"), report(1, "unmute"))
    assert (viewers(audience), audience.anomalies) == ({"A": 1}, 0)


@pytest.mark.parametrize(
    ("before", "line", "after"),
    [
        ([zap(1, "A", "X")], zap(1, "B", "Y"), {"B": 1}),
        ([zap(1, "A", "X"), report(1, "power off")], zap(1, "B", "A"), {"B": 1}),
        ([report(1, "power off")], zap(1, "B", "A"), {"B": 1}),
        ([zap(1, "A", "X")], report(1, "power on"), {"A": 1}),
        ([zap(1, "A", "X"), report(1, "power off")], report(1, "power off"), {}),
        ([zap(1, "A", "X"), report(1, "power off")], report(1, "mute"), {}),
    ],
)
def test_own_state_is_trusted_over_a_line_that_disagrees(before: list[str], line: str, after: dict[str, int]) -> None:
    audience = audience_of(*before, line)
    assert (viewers(audience), audience.anomalies) == (after, 1)


def test_a_new_date_does_not_hide_an_anomaly() -> None:
    audience = audience_of(zap(1, "A", "X"), report(1, "power on").replace("11-15", "11-16"))
    assert audience.anomalies == 1


def test_equals_in_the_top_list_stand_by_name() -> None:
    audience = audience_of(*(zap(box, channel, "X") for box, channel in enumerate("CBAB")))
    assert audience.compute_top_list(3) == [("B", 2), ("A", 1), ("C", 1)]
    assert audience.compute_top_list(2) == [ChannelViewers("B", 2), ChannelViewers("A", 1)]
    assert audience.compute_top_list(0) == audience.compute_top_list(-1) == []
    assert (audience.num_viewers("B"), audience.num_viewers("X"), audience.num_viewers("never")) == (2, 0, 0)


def test_malformed_lines_are_counted_and_kept_apart() -> None:
    audience = Audience()
    audience.take(payload(zap(1, "A", "X"), "nonsense", zap(2, "B", "X")), position=7)
    assert (audience.lines, audience.malformed, viewers(audience)) == (3, 1, {"A": 1, "B": 1})
    assert list(audience.sample) == [Refused(7, b"nonsense", "not 4 or 5 fields")]


def test_the_sample_of_malformed_lines_is_bounded() -> None:
    audience = Audience()
    for position in range(100):
        audience.take(b"x" * 1000, position)
    assert audience.malformed == 100
    assert [refused.position for refused in audience.sample] == list(range(100 - SAMPLE_LINES, 100))
    assert {len(refused.line) for refused in audience.sample} == {module.SAMPLE_BYTES_MAX}


def test_a_malformed_line_enters_no_box_and_no_channel() -> None:
    good = audience_of(zap(1, "A", "X"))
    for line in (zap(1, "B", "C,D"), zap(2, "B", "A")[1:], zap(1, "B" * 20, "C" * 20), report(3, "power")):
        audience = audience_of(zap(1, "A", "X"), line)
        assert audience.malformed == 1
        assert (audience.names, audience.counts(), audience.boxes) == (good.names, good.counts(), good.boxes)


def test_a_line_of_known_names_is_checked_as_strictly() -> None:
    known = [zap(1, "A", "X"), zap(1, "X", "A")]
    wrong = [
        zap(1, "A", "X").replace("20:15", "20:75"),
        zap(1, "A", "X").replace("11-15", "11-31"),
        report(1, "mute").replace("20:15", "24:15"),
        report(1, "mute").replace("11-15", "13-15"),
    ]
    assert audience_of(*known, *wrong).malformed == len(wrong)


def test_a_long_line_of_known_names_is_malformed() -> None:
    long = ["L" * 20, "M" * 20]
    audience = audience_of(zap(1, long[0], "X"), zap(1, long[1], "X"), zap(1, long[0], long[1]))
    assert (audience.malformed, audience.anomalies, audience.num_viewers(long[1])) == (1, 1, 1)


def test_an_empty_line_at_the_end_is_none_and_elsewhere_is_malformed() -> None:
    audience = Audience()
    for lines in (b"", b"\n", zap(1, "A", "X").encode() + b"\n"):
        audience.take(lines)
    assert (audience.lines, audience.malformed) == (2, 1)


def test_boxes_and_channels_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BOXES_MAX", 2)
    monkeypatch.setattr(module, "CHANNELS_MAX", 3)
    audience = audience_of(zap(1, "A", "B"), zap(2, "A", "B"), zap(3, "A", "B"), zap(1, "C", "D"), zap(1, "C", "A"))
    assert [refused.reason for refused in audience.sample] == ["one box too many", "one channel too many"]
    assert viewers(audience) == {"A": 1, "C": 1}


CHANNELS = ["A", "B", "Ö", "D 4", "E" * 13]
LINES = st.one_of(
    st.builds(zap, st.integers(0, 5), st.sampled_from(CHANNELS), st.sampled_from(CHANNELS)),
    st.builds(report, st.integers(0, 5), st.sampled_from(["power on", "power off", "mute", "volume 3", "volume"])),
    st.sampled_from(["", "x,y,z,t", zap(1, "A", "")]),
)


def reference(lines: list[str]) -> tuple[dict[str, int], int, int]:
    """Viewers, malformed lines and anomalies, from a plain reading of the rules."""
    channel: dict[bytes, bytes | None] = {}
    power: dict[bytes, bool] = {}
    malformed = anomalies = 0
    for line in lines:
        match parse(line.encode()):
            case Malformed():
                malformed += 1
            case Zap(box=box, to=to, came_from=came_from):
                if box in power and (not power[box] or channel[box] not in (None, came_from)):
                    anomalies += 1
                channel[box], power[box] = to, True
            case Report(box=box, status=status):
                if status in (b"power on", b"power off"):
                    anomalies += power.get(box) is (status == b"power on")
                    power[box] = status == b"power on"
                else:
                    anomalies += power.get(box) is False
                    power.setdefault(box, True)
                channel.setdefault(box, None)
    counts: dict[str, int] = {}
    for box, name in channel.items():
        if power[box] and name is not None:
            counts[name.decode()] = counts.get(name.decode(), 0) + 1
    return counts, malformed, anomalies


@given(st.lists(LINES, max_size=60))
def test_it_agrees_with_a_plain_reading_of_the_rules(lines: list[str]) -> None:
    audience = audience_of(*lines, "")
    assert (viewers(audience), audience.malformed, audience.anomalies) == reference(lines)


@given(st.lists(LINES, max_size=40), st.lists(LINES, max_size=40))
def test_a_state_taken_over_has_the_same_future(before: list[str], after: list[str]) -> None:
    one, other = audience_of(*before), Audience()
    other.take(payload(zap(77, "gone", "with it")))
    other.set_state(one.get_state())
    assert other.get_state() == one.get_state()
    for audience in (one, other):
        audience.take(payload(*after))
    assert other.get_state() == one.get_state()
    assert (viewers(other), other.watching) == (viewers(one), one.watching)


def test_a_state_is_compact() -> None:
    lines = [f"2026-11-15,20:15:03,10.1.{box >> 8}.{box & 255},C{box % 300},C1" for box in range(20_000)]
    assert len(audience_of(*lines).get_state()) < 20_000 * 6 + 5_000
