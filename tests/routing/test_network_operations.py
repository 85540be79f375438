"""What operators ask of a network becomes a change of its map, or a text that says why it is none, whatever comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.protocols.routing.flaws import flaw
from holdfast.protocols.routing.network_map import (
    AddBroker,
    AddLink,
    Change,
    NetworkMember,
    RemoveBroker,
    RemoveLink,
    founding_map,
    planned,
)
from holdfast.protocols.routing.objections import objection
from holdfast.schemes.tree.operations import ACTIONS, change_of

NETWORK = founding_map(
    [NetworkMember(name, f"{name}:1", f"{name}:2") for name in ("b1", "b2", "b3", "b4")],
    [("b1", "b2"), ("b2", "b3"), ("b3", "b4")],
)
NEW = {"id": "b5", "address": "c:1", "peer_address": "p:1", "at": "b3"}


@pytest.mark.parametrize(
    ("action", "told", "change"),
    [
        ("add-broker", NEW, AddBroker("b5", "c:1", "p:1", "b3")),
        ("add-broker", NEW | {"between": "b4"}, AddBroker("b5", "c:1", "p:1", "b3", "b4")),
        ("remove-broker", {"id": "b3"}, RemoveBroker("b3")),
        ("remove-broker", {"id": "b3", "lost": ""}, RemoveBroker("b3")),
        ("remove-broker", {"id": "b3", "lost": "yes", "at": "b2"}, RemoveBroker("b3", True, "b2")),
        ("remove-broker", {"id": "b3", "lost": "yes", "also_lost": "b1,b2"}, RemoveBroker("b3", True)),
        ("add-link", {"one": "b1", "other": "b3"}, AddLink("b1", "b3")),
        ("add-link", {"one": "b1", "other": "b3", "instead_of": "b2, b3"}, AddLink("b1", "b3", ("b2", "b3"))),
        ("remove-link", {"one": "b1", "other": "b3"}, RemoveLink("b1", "b3")),
    ],
)
def test_what_is_asked_for_becomes_a_change(action: str, told: dict[str, str], change: Change) -> None:
    assert change_of(action, told) == change


@pytest.mark.parametrize(
    ("action", "told", "problem"),
    [
        (
            "add",
            {},
            "there is no change 'add'; there is add-broker, remove-broker, add-link, remove-link, replace, relieve,"
            " hand-back",
        ),
        ("add-broker", {"at": "b3"}, "a change 'add-broker' has to say 'id' and 'address' and 'peer_address'"),
        ("add-link", NEW, "nothing is known of 'id' in a change 'add-link'"),
        ("remove-broker", {"id": "b3", "lost": "no"}, "'lost' is 'no', and has to be 'yes' or left out"),
        (
            "remove-broker",
            {"id": "b3", "also_lost": "b1"},
            "who is 'also_lost' is so beside one that is 'lost'",
        ),
        ("remove-link", {"one": "b1", "other": ""}, "a change 'remove-link' has to say 'other'"),
        *(
            (
                "add-link",
                {"one": "b1", "other": "b3", "instead_of": text},
                f"'instead_of' is {text!r}, and has to be two brokers with a comma between them",
            )
            for text in ("", "b2", "b2,", "b2,b3,b4")
        ),
    ],
)
def test_what_no_network_knows_is_refused_in_words(action: str, told: dict[str, str], problem: str) -> None:
    assert change_of(action, told) == problem


WORDS = st.sampled_from(("b1", "b2", "b3", "b4", "b5", "b2,b3", "yes", "", "c:1", "x" * 1_000)) | st.text()


@given(
    st.sampled_from(tuple(ACTIONS)) | st.text(),
    st.dictionaries(
        st.sampled_from(sorted({name for known in ACTIONS.values() for name in known})) | st.text(), WORDS, max_size=6
    ),
    st.booleans(),
)
def test_whatever_is_asked_for_is_answered_in_words_or_makes_a_network(
    action: str, told: dict[str, str], detours: bool
) -> None:
    change = change_of(action, told)
    problem = change if isinstance(change, str) else objection(NETWORK, change, detours)
    assert len(problem) < 1_000
    if isinstance(change, str):
        assert problem != ""
    elif problem == "":
        assert flaw(planned(NETWORK, change)) == ""
