"""What a site may not say of service levels, and the line where it does."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.broker.site import site_from_toml
from holdfast.errors import SiteError
from holdfast.schemes.tree.settings import routing_settings

BROKER = """\
[[broker]]
id = "b{0}"
address = "127.0.0.1:10{0}"
peer_address = "127.0.0.1:20{0}"
data = "var/b{0}"
"""
LINKS = '[[link]]\nbetween = ["b1", "b2"]\n[[link]]\nbetween = ["b2", "b3"]\n'


def site(level: str, sla: str, more: str = "", without_data: str = "") -> str:
    brokers = "".join(BROKER.format(number) for number in (1, 2, 3)).replace(f'data = "var/{without_data}"\n', "")
    return f'[scheme]\nreliability = "{level}"\n{brokers}{LINKS}{more}[standin]\n[standin.sla]\n{sla}'


def refused(text: str) -> tuple[str, str]:
    """The problem, and the line that it names."""
    with pytest.raises(SiteError) as caught:
        site_from_toml(text, "site.toml", Random)
    return caught.value.problem, text.splitlines()[caught.value.line - 1]


def test_an_empty_table_has_the_network_see_to_its_stand_ins() -> None:
    levels = routing_settings(site_from_toml(site("none", ""), "site.toml", Random).settings).stand_ins.levels
    assert levels.enabled


def test_every_broker_keeps_what_it_agreed_to() -> None:
    problem, line = refused(site("none", "", without_data="b3"))
    assert problem.startswith("broker 'b3' has no data: with [standin.sla] brokers agree among themselves")
    assert line == "[[broker]]"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ('protocol = "increm"', "with reliability 'buffered' events keep their order: take synch or basic"),
        ('congestion = "ms-ro"', "with reliability 'buffered', take ms: it keeps what is stored in order"),
    ],
)
def test_what_is_stored_keeps_its_order(said: str, problem: str) -> None:
    assert refused(site("buffered", said + "\n")) == (problem, said)
    site_from_toml(site("none", said + "\n"), "site.toml", Random)


def test_a_stand_in_comes_before_what_is_wanted_is_forgotten() -> None:
    routing = "[routing]\nexpire_ms = 12000\n"
    problem, line = refused(site("periodic", "unreachable_ms = 7000\n", routing))
    assert problem.startswith("'unreachable_ms' is 7000: with reliability 'periodic' what is wanted behind a broker")
    assert line == "unreachable_ms = 7000"
    for level, sla in (("periodic", "unreachable_ms = 6000\n"), ("none", "unreachable_ms = 7000\n")):
        site_from_toml(site(level, sla, routing), "site.toml", Random)
