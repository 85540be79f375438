"""The directory: one history of maps for each network, whoever proposes, and however often (D0-A10)."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apps.directory import Directory
from holdfast.apps.directory import messages as said
from holdfast.cli.applications import make_application
from holdfast.protocols.core.limits import REQUEST_BYTES_MAX
from holdfast.protocols.routing.network_map import (
    Learn,
    NetworkMap,
    NetworkMember,
    Resting,
    StandInProtocol,
    founding_map,
)

answer_of = msgspec.json.Decoder(said.Answer).decode


def member(name: str) -> NetworkMember:
    return NetworkMember(name, f"{name}:1", f"{name}:2")


START = founding_map([member(name) for name in ("a", "b", "c")], [("a", "b"), ("b", "c")])


def later(number: int, by: str = "b") -> NetworkMap:
    """The network with another broker in the middle."""
    members = (member("a"), member(by), member("c"))
    return NetworkMap(number, members, (("a", by), (by, "c")))


def ask(directory: Directory, request: said.Request) -> said.Answer:
    answer: said.Answer = answer_of(directory.execute(msgspec.json.encode(request)))
    return answer


def propose(directory: Directory, before: NetworkMap, after: NetworkMap, network: str = "net") -> said.Answer:
    return ask(directory, said.Propose(said.VERSION, network, before.number, before.digest, after))


def test_of_two_proposals_from_one_map_only_the_first_is_accepted_and_the_other_is_told_of_it() -> None:
    directory, one, other = Directory(), later(1000, "r"), later(1000, "s")
    assert propose(directory, START, one) == said.Accepted(one)
    assert propose(directory, START, other) == said.Other(one)
    assert propose(directory, START, one) == said.Accepted(one), "a repeated request"
    following = later(2000, "t")
    assert propose(directory, one, following) == said.Accepted(following)
    assert propose(directory, START, one) == said.Other(following), "a request that is late"
    assert propose(directory, START, other) == said.Other(following)


def test_what_is_stored_may_be_older_than_what_is_proposed_from() -> None:
    """Links moved meanwhile, of which the directory is not told."""
    directory, first, moved, after = Directory(), later(1000, "r"), later(1003, "r"), later(2003, "s")
    propose(directory, START, first)
    assert propose(directory, moved, after) == said.Accepted(after)


def test_a_map_of_another_history_with_the_number_of_what_is_stored_is_not_followed() -> None:
    directory = Directory()
    propose(directory, START, later(1000, "r"))
    assert propose(directory, later(1000, "s"), later(2000, "t")) == said.Other(later(1000, "r"))


def test_who_is_asked_for_neighbours_tells_them_with_their_addresses() -> None:
    directory = Directory()
    stored = later(1000, "r")
    propose(directory, START, stored)
    for broker, neighbours in (("r", ("a", "c")), ("a", ("r",))):
        answer = ask(directory, said.AskForNeighbours(said.VERSION, "net", broker))
        assert answer == said.Neighbours(1000, tuple(member(name) for name in neighbours))
    assert ask(directory, said.AskForTopology(said.VERSION, "net")) == said.Topology(stored)
    for request in (
        said.AskForNeighbours(said.VERSION, "net", "b"),
        said.AskForNeighbours(said.VERSION, "other", "a"),
        said.AskForTopology(said.VERSION, "other"),
    ):
        assert isinstance(ask(directory, request), said.NotKnown)


def test_networks_are_apart() -> None:
    directory = Directory()
    propose(directory, START, later(1000, "r"), "one")
    assert propose(directory, START, later(1000, "s"), "other") == said.Accepted(later(1000, "s"))


CIRCLE = NetworkMap(
    1,
    (member("a"),),
    (),
    steps=(Learn("a", "x", StandInProtocol.SYNCH),),
    resting=(Resting("x", "y"), Resting("y", "x")),
)


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        (later(0), "does not follow"),
        (NetworkMap(1, (), ()), "no members"),
        (NetworkMap(1, (member("a"), member("a")), ()), "twice"),
        (NetworkMap(1, (member("a"), member("b")), ()), "the map that was proposed is none"),
        (CIRCLE, "circle"),
    ],
)
def test_what_is_no_map_that_follows_is_refused_and_changes_nothing(after: NetworkMap, problem: str) -> None:
    directory = Directory()
    before = directory.get_state()
    answer = propose(directory, START, after)
    assert isinstance(answer, said.Refused)
    assert problem in answer.problem
    assert directory.get_state() == before


def test_limits_are_told_by_their_names() -> None:
    directory = Directory(networks_max=1)
    propose(directory, START, later(1), "one")
    assert propose(directory, START, later(1), "two") == said.Refused("the directory has 1 networks, and takes no more")
    assert propose(directory, later(1), later(2), "one") == said.Accepted(later(2))
    long = answer_of(directory.execute(b" " * (REQUEST_BYTES_MAX + 1)))
    assert isinstance(long, said.Refused)
    newer = ask(directory, said.AskForTopology(2, "one"))
    assert newer == said.Refused("version 2 is not known; this is version 1")
    for name in ("", "x" * 161, "a\nb", "ü" * 100):
        assert isinstance(ask(directory, said.AskForTopology(1, name)), said.Refused), name


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"\xff",
        b"{}",
        b"[" * 100_000,
        b'{"ask":"topology","version":1,"network":"n","more":1}',
        b'{"ask":"topology","version":1,"network":"\\ud800"}',
        b'{"ask":"propose","version":1,"network":"n","before_number":-1,"before_digest":"","after":[1,[],[]]}',
        b'{"ask":"propose","version":1,"network":"n","before_number":0,"before_digest":"","after":[9e99,[],[]]}',
        b'{"ask":"propose","version":1,"network":"n","before_number":0,"before_digest":"","after":[1,[["\\udc00","",""]],[]]}',
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(request_: bytes) -> None:
    assert isinstance(answer_of(Directory().execute(request_)), said.Refused)


def test_it_is_the_application_that_a_site_file_names() -> None:
    made = make_application("holdfast.apps.directory:Directory", {}, "site.toml")
    assert made.topics == frozenset()
    assert made.observe(1, 2, "any", {}, b"x") == ()


@given(st.binary(max_size=200))
def test_nothing_that_is_asked_raises(data: bytes) -> None:
    answer_of(Directory().execute(data))


names = st.sampled_from(["a", "b", "c", "r", "s", ""])
links = st.lists(st.tuples(names, names), max_size=4).map(tuple)
maps = st.builds(
    NetworkMap,
    st.integers(-1, 2**63),
    st.lists(names.map(member), max_size=4).map(tuple),
    links,
    links,
    st.lists(st.builds(Learn, names, names, st.sampled_from(StandInProtocol)), max_size=2).map(tuple),
    st.lists(names, max_size=2).map(tuple),
    st.lists(st.builds(Resting, names, names), max_size=3).map(tuple),
)


@given(maps)
def test_no_map_makes_it_raise_or_hang_and_what_it_stores_has_neighbours(after: NetworkMap) -> None:
    directory = Directory()
    answer = propose(directory, NetworkMap(0, (), ()), after)
    assert isinstance(answer, said.Accepted | said.Refused)
    if isinstance(answer, said.Accepted):
        for name in after.names:
            assert isinstance(ask(directory, said.AskForNeighbours(said.VERSION, "net", name)), said.Neighbours)


# ------------------------------------------------------------------------------------------- several stewards at once
moves = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["propose", "deliver", "again", "go on", "hear"]), st.integers(0, 9)),
    max_size=60,
)


@given(moves)
def test_however_proposals_of_several_stewards_meet_there_is_one_history(steps: list[tuple[int, str, int]]) -> None:
    """Each steward knows a map, proposes from it, goes on from what was accepted, and asks again; requests overtake
    each other, and come twice. A checker that knows all requests looks at what was accepted first, one by one."""
    directory = Directory()
    known = [START] * 3
    flying: list[tuple[int, NetworkMap, NetworkMap]] = []  # (steward, before, after): may come now, later, or again
    history: list[tuple[int, NetworkMap]] = []  # (from which number, what): as they were taken in
    for steward, action, choice in steps:
        match action:
            case "propose":
                before = known[steward]
                flying.append((steward, before, later(before.number + 1000, f"r{steward}{choice}")))
            case "go on" if history and known[steward].number >= history[-1][1].number:
                now = known[steward]  # a link moves: of those who know the newest map, one makes the next
                known = [later(now.number + 1, now.names[1]) if one == now else one for one in known]
            case "hear":
                known[steward] = max(known, key=lambda each: each.number)
            case "deliver" | "again" if flying:
                place = choice % len(flying)
                who, before, after = flying[place] if action == "again" else flying.pop(place)
                state = directory.get_state()
                answer = propose(directory, before, after)
                if isinstance(answer, said.Accepted) and directory.get_state() != state:
                    history.append((before.number, after))
                assert isinstance(answer, said.Accepted | said.Other)
                assert not history or answer.map == history[-1][1], "it answers with what is stored"
                if answer.map.number > known[who].number:
                    known[who] = answer.map
    for (_, one), (number, other) in pairwise(history):
        assert one.number <= number < other.number
    assert len({number for number, _ in history}) == len(history)


@given(moves)
def test_equal_requests_make_equal_states_and_a_state_is_taken_over_whole(steps: list[tuple[int, str, int]]) -> None:
    one, two = Directory(), Directory()
    for steward, _, choice in steps:
        before = later(choice * 500, "b")
        request = msgspec.json.encode(
            said.Propose(1, f"net{steward}", before.number, before.digest, later(before.number + 1, f"r{choice}"))
        )
        assert one.execute(request) == two.execute(request)
        third = Directory()
        third.set_state(two.get_state())
        two = third
        assert one.get_state() == two.get_state()
