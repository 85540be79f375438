"""Channels of a synthetic log: their names, their order, their table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.apps.zapviewers.channels import (
    CHANNELS_MAX,
    INVENTED,
    NAME_BYTES_MAX,
    read_channels,
    short_names,
    zipf_table,
)
from holdfast.apps.zapviewers.errors import ZapError
from holdfast.apps.zapviewers.lines import is_channel


def test_names_are_cut_and_made_to_differ() -> None:
    assert short_names(["Velkin News Extra", "Velkin News Extended", "Velkin News E", "Orrow"]) == [
        "Velkin News",
        "Velkin New~2",
        "Velkin New~3",
        "Orrow",
    ]


def test_names_lose_what_no_line_can_carry() -> None:
    assert short_names(['  A, "B"\t', "C\x1b[2J", "ÖÖÖÖÖÖÖ", "\n", ""]) == ["A B", "C [2J", "Ö" * 6]


def test_the_invented_channels_fit() -> None:
    assert short_names(INVENTED) == list(INVENTED)
    assert len(INVENTED) == 120


def test_a_file_gives_its_names_once_in_an_order_of_no_alphabet() -> None:
    lines = [
        "id,name,country\n",
        *(f"{n},Channel {n:02},DE\n" for n in range(30)),
        "30,Channel 07,UK\n",
        "31,,UK\n",
        "32\n",
    ]
    names = read_channels(lines)
    assert sorted(names) == [f"Channel {n:02}" for n in range(30)]
    assert names != sorted(names)
    assert names == read_channels([lines[0], *reversed(lines[1:])])


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["id,title\n", "1,A\n"],
        ["name\n", "A\n"],
        ["name\n", *(f"{n}\n" for n in range(CHANNELS_MAX + 1))],
        ["name\n", '"' + "x" * 200_000 + "\n"],
    ],
)
def test_a_file_without_channels_is_refused(lines: list[str]) -> None:
    with pytest.raises(ZapError):
        read_channels(lines)


@pytest.mark.parametrize("channels", [2, 120, 1719, CHANNELS_MAX])
def test_every_channel_has_its_share_of_the_table(channels: int) -> None:
    table = zipf_table(channels)
    places = Counter(table)
    harmonic = sum(1 / rank for rank in range(1, channels + 1))
    assert len(table) == 1 << 16
    assert sorted(places) == list(range(channels))
    assert all(abs(places[channel] - 65536 / (channel + 1) / harmonic) <= 1 for channel in range(channels))


def test_real_names_fit(data_file: Callable[[str], Path]) -> None:
    with data_file("tv-channels.csv").open(encoding="utf-8", newline="") as file:
        names = read_channels(file)
    assert len(names) > 1000
    assert len(set(names)) == len(names)
    assert all(is_channel(name.encode()) and len(name.encode()) <= NAME_BYTES_MAX for name in names)
