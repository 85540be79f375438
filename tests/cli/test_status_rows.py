"""What `holdfast status` makes of a broker's answer, whatever its scheme tells."""

from typing import Any

from holdfast.cli.status import row_of
from holdfast.protocols.operating.messages import Inspected
from holdfast.protocols.operating.operator import Unreachable

ADDRESS = "127.0.0.1:7411"


def row(name: str = "b1", **facts: str) -> dict[str, Any]:
    answer = Inspected(1, "b1", 7, 2 * 10**9, {"events_accepted_total": 3}, facts, 0)
    return row_of(name, ADDRESS, Unreachable("not yet"), answer, 1.0)


def test_a_row_has_what_its_scheme_tells() -> None:
    assert row(scheme="x", neighbours="b2")["neighbours"] == "b2"


def test_what_a_scheme_tells_takes_the_place_of_nothing_that_all_brokers_have() -> None:
    plain = row()
    told = dict.fromkeys([*plain, "rates", "reason"], "something else")
    assert row(**told) == plain


def test_who_answers_at_the_address_of_another_is_no_such_broker() -> None:
    assert row("b2", state="up")["state"] == "unexpected"
