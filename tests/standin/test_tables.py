"""`[standin.directory]`, `processes`, `borrow` and `lend`: read, and refused with their lines (D0-A9, D0-A10)."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.broker.site import Site, site_from_toml
from holdfast.errors import SiteError
from holdfast.schemes.tree.standin.tables import (
    BorrowTable,
    DirectoryTable,
    LendTable,
    ProcessesTable,
    StandInTables,
)

BROKERS = [
    f'[[broker]]\nid = "b{n}"\naddress = "127.0.0.1:{7410 + n}"\npeer_address = "127.0.0.1:{7510 + n}"\n'
    f'data = "var/b{n}"\n'
    for n in (1, 2, 3, 4)
]
SITE = (
    'name = "west"\n[scheme]\nkind = "tree"\nreliability = "buffered"\n'
    + "".join(BROKERS[:2])
    + f"{BROKERS[2]}spare = true\n{BROKERS[3]}spare = true\n"
    + '[[link]]\nbetween = ["b1", "b2"]\n[standin]\npatience_ms = 5000\n[standin.sla]\n'
)
LINES = SITE.count("\n")


def read(tables: str, site: str = SITE) -> Site:
    return site_from_toml(site + tables, "west.toml", Random)


def test_what_the_tables_say_is_read() -> None:
    site = read(
        """
[standin.directory]
brokers = ["127.0.0.1:7611", "d2.example.org:7612"]
[standin.processes]
logs = "var/log"
[standin.borrow]
from = ["127.0.0.1:8411"]
[standin.lend]
to = ["east"]
brokers = ["b4"]
for_s = 60
"""
    )
    assert site.beside == StandInTables(
        DirectoryTable(("127.0.0.1:7611", "d2.example.org:7612")),
        ProcessesTable(True, "var/log"),
        BorrowTable(("127.0.0.1:8411",)),
        LendTable(("east",), ("b4",), 60),
    )


def test_without_tables_nothing_is_told() -> None:
    assert read("").beside == StandInTables()


@pytest.mark.parametrize(
    ("table", "line", "problem", "at"),
    [
        ("directory", "", "[standin.directory] has to say 'brokers'", 1),
        ("directory", "brokers = []", "with one at least", 2),
        ("directory", "brokers = [1]", "list of texts", 2),
        ("directory", 'brokers = "127.0.0.1:1"', "an array", 2),
        ("directory", 'brokers = ["nowhere"]', "'nowhere' in 'brokers' is no address", 2),
        ("directory", 'brokers = ["0.0.0.0:7611"]', "no address", 2),
        ("directory", 'brokers = ["a:1", "a:1"]', "names 'a:1' twice", 2),
        ("directory", "brokers = [" + ", ".join(f'"a:{n}"' for n in range(1, 18)) + "]", "16 or fewer", 2),
        ("directory", 'more = 1\nbrokers = ["a:1"]', "'more' is not known in [standin.directory]", 2),
        ("processes", 'start = "yes"', "true or false", 2),
        ("borrow", 'from = ["x"]', "'x' in 'from' is no address", 2),
        ("lend", 'to = ["east"]', "has to say 'brokers'", 1),
        ("lend", 'to = ["../etc"]\nbrokers = ["b3"]', "a site has no such name", 2),
        ("lend", 'to = ["west"]\nbrokers = ["b3"]', "this site itself", 2),
        ("lend", 'to = ["east"]\nbrokers = ["b1"]', "'b1', which is no spare; spares are b3, b4", 3),
        ("lend", 'to = ["east"]\nbrokers = ["b3"]\nmost = 2', "'most' is 2, and has to be 1 to 1", 4),
        ("lend", 'to = ["east"]\nbrokers = ["b3"]\nfor_s = 0', "has to be 1 to 2592000", 4),
        ("lend", 'to = ["east"]\nbrokers = ["b3"]\ngrace_s = 4000', "has to be 1 to 3600", 4),
    ],
)
def test_what_can_not_be_is_refused_with_its_line(table: str, line: str, problem: str, at: int) -> None:
    with pytest.raises(SiteError) as refused:
        read(f"[standin.{table}]\n{line}\n")
    assert problem in str(refused.value)
    assert refused.value.line == LINES + at


@pytest.mark.parametrize("table", ["processes", "borrow", "lend", "directory"])
def test_without_service_levels_nobody_would_ask_for_any_of_it(table: str) -> None:
    with pytest.raises(SiteError, match=rf"\[standin.{table}\] is for stand-ins that come by themselves") as refused:
        read(f"[standin.{table}]\n", SITE.replace("[standin.sla]\n", ""))
    assert refused.value.line == LINES


def test_a_table_that_is_no_table_is_refused() -> None:
    with pytest.raises(SiteError, match="'directory' is 1, and has to be a table"):
        read("[standin.sla]\n", SITE.replace("[standin.sla]\n", "directory = 1\n"))


def test_a_site_whose_links_are_made_borrows_nothing() -> None:
    made = '[scheme]\nkind = "tree"\nreliability = "none"\n[topology]\nkind = "random-tree"\nseed = 1\nbrokers = 4\n'
    made += 'data = "var"\n'
    with pytest.raises(SiteError, match=r"this site has a \[topology\]"):
        read('[standin]\n[standin.sla]\n[standin.borrow]\nfrom = ["127.0.0.1:8411"]\n', made)
