"""What a borrower says becomes the site file of a lent broker: nothing of it runs or names anything at the lender's."""

from __future__ import annotations

import base64
import tomllib
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.broker.site import Site, site_from_toml
from holdfast.errors import SiteError
from holdfast.schemes.tree.standin.cycle.lending import WISH_BYTES_MAX
from holdfast.standby.lent_site import TEXT_BYTES_MAX, Wish, check, lent_text, pack, to_toml, told, unpack
from tests.standby.sites import TestSite

FOLDER = Path("/lender/s3.beside/lent")


@pytest.fixture
def west(tmp_path: Path) -> Site:
    return TestSite(tmp_path / "west", "west").site


@pytest.fixture
def east(tmp_path: Path) -> dict[str, Any]:
    return tomllib.loads(TestSite(tmp_path / "east", "east").file.read_text())


def lent(said: dict[str, Any], lender: Site) -> dict[str, Any]:
    """The site file that a lender makes of it."""
    text = lent_text(said, "west.s3", lender.brokers[2], lender, FOLDER)
    return tomllib.loads(text)


HOSTILE: dict[str, Any] = {
    "application": {"factory": "os:system", "settings": {"command": "true"}},
    "security": {"plaintext": "I accept", "remote_operators": "I accept"},
    "topology": {"kind": "chain", "seed": 1, "brokers": 9, "address": "127.0.0.1:1", "data": "/etc"},
    "anything": {"more": 1},
}


def test_only_known_tables_go_and_come(east: dict[str, Any], west: Site) -> None:
    east["standin"] |= {
        "sla": {"waiting_ms": 100},
        "directory": {"brokers": ["127.0.0.1:7611"]},
        "processes": {"start": True, "logs": "/etc"},
        "borrow": {"from": ["127.0.0.1:1"]},
        "lend": {"to": ["west"], "brokers": ["s3"]},
    }
    east["broker"][0] |= {"data": "/etc", "more": {"x": 1}}
    sent = told({**east, **HOSTILE})
    assert set(sent) == {"name", "scheme", "standin", "broker", "link"}
    assert set(sent["standin"]) == {"sla", "directory"}
    assert set(sent["broker"][0]) == {"id", "address", "peer_address"}
    # And one who sends all of it gets no further.
    made = lent({**east, **HOSTILE}, west)
    assert made == lent(sent, west)
    assert set(made) == {"name", "scheme", "standin", "broker", "link"}
    assert [Path(table["data"]).is_relative_to(FOLDER) for table in made["broker"]] == [True] * 5


def test_the_lent_broker_listens_where_the_lender_s_spare_does(east: dict[str, Any], west: Site) -> None:
    spare = west.brokers[2]
    assert lent(east, west)["broker"][-1] == {
        "id": "west.s3",
        "address": spare.address,
        "peer_address": spare.peer_address,
        "data": str(FOLDER / "data"),
        "spare": True,
    }


def test_what_is_risky_is_for_the_lender_to_accept(east: dict[str, Any], west: Site) -> None:
    east["broker"][0]["address"] = "10.0.0.1:7411"
    said = {**east, **HOSTILE}
    with pytest.raises(SiteError, match="without TLS"):
        check(lent_text(said, "west.s3", west.brokers[2], west, FOLDER), "lent", "tree")
    accepting = replace(west, plaintext=True)
    site = check(lent_text(said, "west.s3", west.brokers[2], accepting, FOLDER), "lent", "tree")
    assert site.plaintext
    assert not site.remote_operators


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"scheme": {"kind": "paxos"}}, "paxos"),
        ({"routing": {"kind": "os"}}, "'kind' is not known in"),
        ({"broker": []}, "a network, which begins with two brokers"),
        ({"name": "../etc"}, "is no name"),
        ({"limits": {"sessions": -1}}, "has to be 1 or more"),
    ],
)
def test_what_makes_no_network_is_refused(
    east: dict[str, Any], west: Site, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SiteError) as refused:
        check(lent_text({**east, **changes}, "west.s3", west.brokers[2], west, FOLDER), "lent", "tree")
    assert problem in str(refused.value)


def test_a_wish_is_packed_and_read_back_and_one_that_is_too_large_is_not(east: dict[str, Any]) -> None:
    wish = Wish(told(east), ("b1", "west.s3"), "b2")
    packed = pack(wish)
    assert packed is not None
    assert unpack(packed) == wish
    # A network of four hundred brokers can borrow.
    many = [
        {"id": f"broker-{n}", "address": f"10.0.{n // 250}.{n % 250}:7411", "peer_address": f"10.0.{n // 250}.{n}:7511"}
        for n in range(400)
    ]
    assert pack(Wish({**told(east), "broker": many}, tuple(each["id"] for each in many), "b2")) is not None
    noise = "".join(base64.b64encode(zlib.compress(str(n).encode())).decode() for n in range(10_000))
    assert pack(Wish({"name": noise}, (), "")) is None


@pytest.mark.parametrize(
    "packed",
    [
        "",
        "?",
        "é",
        base64.b64encode(b"no zlib").decode(),
        base64.b64encode(zlib.compress(b"{}")).decode(),
        base64.b64encode(zlib.compress(b"[" * 100_000)).decode(),
        base64.b64encode(zlib.compress(b'{"site": {}, "taken": [], "faulty": ""}')[:-4]).decode(),
        base64.b64encode(zlib.compress(b'{"site": {}, "taken": [], "faulty": ""}' + b" " * TEXT_BYTES_MAX)).decode(),
        "A" * (WISH_BYTES_MAX + 1),
    ],
)
def test_what_can_not_be_unpacked_is_a_value_error(packed: str) -> None:
    with pytest.raises(ValueError, match="it "):
        unpack(packed)


plain = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
)
keys = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(keys, st.one_of(plain, st.dictionaries(keys, plain))))
def test_whatever_is_written_as_toml_is_read_back(document: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(document)) == document


titles = st.sampled_from(["name", "scheme", "standin", "broker", "link", "routing", "application"])
nested = st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=9)
LENDER = """
[[broker]]
id = "b1"
peer_address = "127.0.0.1:7511"
[[broker]]
id = "b2"
address = "127.0.0.1:7412"
peer_address = "127.0.0.1:7512"
[[broker]]
id = "s3"
address = "127.0.0.1:7413"
peer_address = "127.0.0.1:7513"
spare = true
[[link]]
between = ["b1", "b2"]
"""


@given(st.dictionaries(titles, nested))
def test_whatever_a_borrower_says_the_lender_writes_toml_with_its_own_broker_in_it(said: dict[str, Any]) -> None:
    west = site_from_toml(LENDER, "west.toml")
    made = lent(msgspec.json.decode(msgspec.json.encode(said)), west)
    assert made["broker"][-1]["id"] == "west.s3"
    assert "application" not in made
    assert all(Path(table["data"]).is_relative_to(FOLDER) for table in made["broker"])
