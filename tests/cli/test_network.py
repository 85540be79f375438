"""`holdfast network`: whom it asks, what it waits for, and what it says; against brokers that answer by their map."""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec
import pytest

from holdfast.cli import changing, network_changes, network_view
from holdfast.cli.network_view import Network
from tests.cli.network_bench import SPARE, Brokers, address_of, peer_address_of, site_text
from tests.cli.test_main import run

GOES_ON = network_changes.GOES_ON + "\n"


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(network_view, "Network", functools.partial(Network, make=made.desk))
    monkeypatch.setattr(network_view, "LOOK_EVERY_S", 0.001)
    return made


@pytest.fixture
def site(tmp_path: Path) -> str:
    (tmp_path / "site.toml").write_text(site_text())
    return str(tmp_path / "site.toml")


Said = tuple[int, list[str], list[str]]
Command = functools.partial[Said]


@pytest.fixture
def network(brokers: Brokers, site: str, capsys: pytest.CaptureFixture[str]) -> Command:
    """`holdfast network VERB SITE …`: its exit code, and the lines of both outputs."""

    def ask(verb: str, *options: str, where: str = site) -> Said:
        code = run("network", verb, where, *options)
        told = capsys.readouterr()
        return code, told.out.splitlines(), told.err.splitlines()

    return functools.partial(ask)


def test_show_tells_members_links_and_who_keeps_the_order(network: Command) -> None:
    told = ["members: b1, b2, b3, b4; b1 keeps the order of changes; map 0", "links: b1-b2, b2-b3, b3-b4"]
    assert network("show") == (0, [*told, "b8: no member of this network yet"], [])
    assert network("show", where=f"holdfast://{address_of('b3')}") == (0, told, [])


def test_show_tells_what_is_under_way_why_it_waits_and_who_does_not_answer(network: Command, brokers: Brokers) -> None:
    brokers.change("b1", "remove-broker", {"id": "b2"})
    brokers.stalled = "b2 is down"
    brokers.running -= {"b1", "b2", SPARE}
    brokers.more_facts["b3"] = {"difference": "the site file joins b1 and b4, the map does not"}
    brokers.more_facts["b4"] = {"map": "0"}
    assert network("show") == (
        0,
        [
            "members: b1, b2, b3, b4; b1 keeps the order of changes; map 1",
            "links: b1-b2, b2-b3, b3-b4",
            "change: b3 moves from b2 to b1; 1 more step",
            "it waits: b2 is down",
            "the site file joins b1 and b4, the map does not",
            "b4: has not heard of this map yet",
            "b1 does not answer: without it no change begins",
        ],
        [],
    )


def test_nobody_who_answers_is_said_with_the_reasons(network: Command, brokers: Brokers) -> None:
    brokers.running.clear()
    lines = ["no broker of a network answers"]
    lines += [f"  {address_of(name)}: connection refused" for name in ("b1", "b2", "b3", "b4", SPARE)]
    assert network("show", "--wait", "0") == (1, [], lines)
    waiting = "no broker answers yet: waiting for up to 0.01 s"
    assert network("show", "--wait", "0.01") == (1, [], [waiting, *lines])
    assert network("remove-broker", "--id", "b2", "--wait", "0.01") == (1, [], lines)


def test_brokers_that_are_no_network_are_not_waited_for(
    network: Command, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers, "facts", lambda name: {"scheme": "tree"})
    code, _, said = network("remove-broker", "--id", "b2")
    assert (code, said[1]) == (1, f"  {address_of('b1')}: b1 belongs to no network that can be changed")


# ------------------------------------------------------------------------------------------------------------- changes
def test_a_broker_is_added_where_the_site_file_says_that_it_is(network: Command, brokers: Brokers) -> None:
    assert network("add-broker", "--id", SPARE, "--at", "b4") == (
        0,
        ["done: members b1, b2, b3, b4, b8; links b1-b2, b2-b3, b3-b4, b4-b8; map 1"],
        [],
    )
    told = {"id": SPARE, "address": address_of(SPARE), "peer_address": peer_address_of(SPARE), "at": "b4"}
    assert brokers.asked == [("b1", "add-broker", told)]


def test_each_step_is_told_as_it_goes(network: Command, brokers: Brokers) -> None:
    brokers.looks = 20
    assert network("add-broker", "--id", SPARE, "--at", "b2", "--between", "b3") == (
        0,
        [
            "b3 moves from b2 to b8",
            "done: members b1, b2, b3, b4, b8; links b1-b2, b3-b8, b3-b4, b2-b8; map 2",
        ],
        [],
    )
    assert network("remove-broker", "--id", "b2") == (
        0,
        [
            "b8 moves from b2 to b1; 1 more step",
            "b2 is on its way out",
            "done: members b1, b3, b4, b8; links b3-b8, b3-b4, b8-b1; map 5",
        ],
        [],
    )


def test_a_link_is_replaced_and_brokers_are_joined_at_one_that_was_chosen(network: Command, brokers: Brokers) -> None:
    code, told, _ = network("add-link", "--between", "b1", "b4", "--instead-of", "b2", "b3")
    assert code == 0
    assert told[-1].startswith("done: members b1, b2, b3, b4; links ")
    assert {frozenset(link) for link in brokers.map.tree} == {frozenset(("b1", other)) for other in ("b2", "b4")} | {
        frozenset(("b3", "b4"))
    }
    assert brokers.asked[-1][2] == {"one": "b1", "other": "b4", "instead_of": "b2,b3"}
    assert network("remove-broker", "--id", "b1", "--at", "b4")[0] == 0
    assert brokers.asked[-1] == ("b1", "remove-broker", {"id": "b1", "at": "b4"})
    assert brokers.map.keeper == "b2"


def test_the_keeper_is_found_though_it_joined_later_and_only_others_are_named(
    network: Command, brokers: Brokers
) -> None:
    for told in (("add-broker", "--id", SPARE, "--at", "b2"), *(("remove-broker", "--id", f"b{n}") for n in (1, 3, 4))):
        assert network(*told)[0] == 0
    assert brokers.map.names == ("b2", SPARE)
    where = f"holdfast://{address_of(SPARE)}"
    assert network("remove-broker", "--id", SPARE, where=where)[2] == [
        "not changed: a network has two brokers or more: stop it, and describe a site of one broker"
    ]
    assert brokers.asked[-1][0] == "b2"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("remove-broker", "--id", "b7"), "there is no broker 'b7' in this network; there is b1, b2, b3, b4"),
        (
            ("remove-broker", "--id", "b2", "--at", "b4"),
            "the neighbours of b2 are b1, b3; they can't be joined at 'b4'",
        ),
        (
            ("add-broker", "--id", SPARE, "--at", "b9"),
            "there is no broker 'b9' in this network; there is b1, b2, b3, b4",
        ),
        (
            ("add-broker", "--id", SPARE, "--at", "b1", "--between", "b3"),
            "no link that events are routed along joins b1 and b3",
        ),
        (("add-broker", "--id", "b2", "--at", "b1"), "b2 is a member already"),
        (
            ("add-link", "--between", "b1", "b3"),
            "at this level only a tree is used: say which link it is instead of, one of b1-b2, b2-b3",
        ),
        (
            ("add-link", "--between", "b1", "b3", "--instead-of", "b3", "b4"),
            "only a link of the way between b1 and b3 can be replaced by it: one of b1-b2, b2-b3",
        ),
        (
            ("remove-link", "--between", "b1", "b2"),
            "without the link between b1 and b2 the network falls apart: add another instead of it",
        ),
        (("remove-link", "--between", "b1", "b3"), "no link joins b1 and b3"),
        (
            ("remove-broker", "--id", "b3", "--lost"),
            "b3 answers: stop it for good first, or take it out without --lost",
        ),
    ],
)
def test_what_goes_against_the_network_is_refused_with_the_reason(
    network: Command, brokers: Brokers, options: tuple[str, ...], problem: str
) -> None:
    assert network(*options) == (1, [], [f"not changed: {problem}"])
    assert brokers.map == brokers.founded


def test_a_second_change_is_refused_while_one_is_under_way(network: Command, brokers: Brokers) -> None:
    brokers.stalled = "b2 is down"
    said = ["not done after 0.02 s: b3 moves from b2 to b1; 1 more step: b2 is down", GOES_ON.rstrip()]
    told = ["b3 moves from b2 to b1; 1 more step"]
    assert network("remove-broker", "--id", "b2", "--wait", "0.02") == (1, told, said)
    problem = "not changed: another change is under way: b3 moves from b2 to b1; 1 more step"
    assert network("remove-broker", "--id", "b4") == (1, [], [problem])


def test_what_is_waited_for_is_told_before_the_time_is_up(
    network: Command, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "TELL_AFTER_S", 0.0)
    brokers.stalled, brokers.more_facts["b3"] = "b1 has no link with b2", {"change_problem": "b3 has no link with b2"}
    problem = "b1 has no link with b2; b3 has no link with b2"
    _, _, said = network("remove-broker", "--id", "b2", "--wait", "0.02")
    assert said[0] == f"waiting for up to 0.02 s: {problem}"
    assert said[1] == f"not done after 0.02 s: b3 moves from b2 to b1; 1 more step: {problem}"
    assert f"it waits: {problem}" in network("show")[1]
    brokers.running.remove("b1")
    told = f"waiting for up to 0.02 s: b1 orders changes, and does not answer: {address_of('b1')}: connection refused"
    assert network("remove-broker", "--id", "b4", "--wait", "0.02")[2][0] == told
    brokers.running.clear()
    told = "waiting for up to 0.02 s: no broker answers"
    assert network("remove-broker", "--id", "b4", "--wait", "0.02")[2][0] == told


def test_what_was_asked_for_is_looked_at_also_if_the_time_is_up_by_then(network: Command, brokers: Brokers) -> None:
    brokers.more_facts[SPARE] = {"map": "0"}
    said = ["not done after 1e-09 s: b8 is a member, and nobody has a link with it yet", GOES_ON.rstrip()]
    assert network("add-broker", "--id", SPARE, "--at", "b4", "--wait", "1e-9") == (1, [], said)


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (
            {"reliability": "none"},
            "b8 has the reliability 'none', and the network 'buffered': give it the same site file",
        ),
        ({"scheme": "paxos"}, "b8 has the scheme 'paxos', and the network 'tree': give it the same site file"),
        (
            {"network": "of another name"},
            "b8 belongs to another network: in its site file `name`, or `advertisements` of `[routing]`, differs; give"
            " it the same one",
        ),
    ],
)
def test_a_new_broker_of_another_site_is_not_asked_for(
    network: Command, brokers: Brokers, facts: dict[str, str], problem: str
) -> None:
    brokers.more_facts[SPARE] = facts
    assert network("add-broker", "--id", SPARE, "--at", "b4") == (1, [], [f"not changed: {problem}"])
    assert brokers.asked == []


def test_a_new_broker_has_to_be_there_and_to_be_the_one_that_is_named(network: Command, brokers: Brokers) -> None:
    brokers.named[address_of(SPARE)] = "b9"
    brokers.running.add("b9")
    where = address_of(SPARE)
    problem = f"not changed: b9 answers at {where}, not b8"
    assert network("add-broker", "--id", SPARE, "--at", "b4") == (1, [], [problem])
    brokers.running.remove("b9")
    problem = f"not changed: b8 does not answer at {where}, and is started first: connection refused"
    assert network("add-broker", "--id", SPARE, "--at", "b4") == (1, [], [problem])


def test_a_new_broker_is_waited_for_until_it_has_the_map(network: Command, brokers: Brokers) -> None:
    brokers.more_facts[SPARE] = {"map": "0"}
    said = ["not done after 0.02 s: b8 is a member, and nobody has a link with it yet", GOES_ON.rstrip()]
    assert network("add-broker", "--id", SPARE, "--at", "b4", "--wait", "0.02") == (1, [], said)
    assert network("remove-broker", "--id", SPARE)[0] == 0


def test_a_broker_that_is_lost_is_declared_so_at_the_keeper_and_the_keeper_at_the_second_member(
    network: Command, brokers: Brokers
) -> None:
    brokers.running.remove("b3")
    assert network("remove-broker", "--id", "b3", "--lost", "--at", "b4") == (
        0,
        ["done: members b1, b2, b4; links b1-b2, b4-b2; map 1001"],
        [],
    )
    assert brokers.asked == [("b1", "remove-broker", {"id": "b3", "at": "b4", "lost": "yes"})]
    brokers.running.remove("b1")
    assert network("remove-broker", "--id", "b1", "--lost")[0] == 0
    assert brokers.asked[-1] == ("b2", "remove-broker", {"id": "b1", "lost": "yes"})


def test_where_the_second_member_is_has_to_be_known_if_the_keeper_is_lost(network: Command, brokers: Brokers) -> None:
    brokers.running.remove("b1")
    where = f"holdfast://{address_of('b4')}"
    problem = "not done after 0.01 s: the keeper is lost, so b2 orders this change, and it does not answer: name its"
    code, _, said = network("remove-broker", "--id", "b1", "--lost", "--wait", "0.01", where=where)
    assert (code, said) == (1, [f"{problem} address in a URL, or in the site file; or say --also-lost b2, if it is"])


def test_several_that_are_lost_at_once_are_declared_so_one_after_the_other(network: Command, brokers: Brokers) -> None:
    """The keeper and the next member: whoever is left orders that, and not those."""
    brokers.running -= {"b1", "b2"}
    assert network("remove-broker", "--id", "b1", "--lost", "--also-lost", "b2")[0] == 0
    assert brokers.asked == [("b3", "remove-broker", {"id": "b1", "lost": "yes", "also_lost": "b2"})]
    assert network("remove-broker", "--id", "b2", "--lost")[1] == ["done: members b3, b4; links b3-b4; map 2002"]
    assert brokers.asked[-1] == ("b3", "remove-broker", {"id": "b2", "lost": "yes"})


def test_who_answers_is_not_lost_and_who_is_lost_is_named_as_such(network: Command, brokers: Brokers) -> None:
    brokers.running.remove("b1")
    said = network("remove-broker", "--id", "b1", "--lost", "--also-lost", "b2")[2]
    assert said == ["not changed: b2 answers: stop it for good first, or take it out without --lost"]
    code, _, said = network("remove-broker", "--id", "b1", "--also-lost", "b2")
    assert (code, said) == (2, ["holdfast: --also-lost goes with --lost: the one that --id names is lost, too"])
    problem = f"not done after 0.01 s: b1 orders changes, and does not answer: {address_of('b1')}: connection refused"
    brokers.running.remove("b4")
    code, _, said = network("remove-broker", "--id", "b4", "--lost", "--wait", "0.01")
    assert (code, said[0][: len(problem)]) == (1, problem)
    assert said[0].endswith("; say --also-lost b1, if it is")


def test_nothing_is_asked_of_others_while_the_keeper_does_not_answer(network: Command, brokers: Brokers) -> None:
    brokers.running.remove("b1")
    problem = f"not done after 0.01 s: b1 orders changes, and does not answer: {address_of('b1')}: connection refused"
    assert network("remove-broker", "--id", "b4", "--wait", "0.01") == (1, [], [problem])
    assert brokers.asked == []


def test_a_keeper_that_forgot_what_it_was_asked_for_is_asked_again(network: Command, brokers: Brokers) -> None:
    brokers.forgets = 2
    assert network("remove-broker", "--id", "b4")[0] == 0
    assert brokers.asked == [("b1", "remove-broker", {"id": "b4"})] * 3


def test_a_keeper_that_has_an_older_map_than_others_is_waited_for(network: Command, brokers: Brokers) -> None:
    brokers.map = msgspec.structs.replace(brokers.map, number=4)
    brokers.more_facts["b1"] = {"map": "3"}
    problem = "not done after 0.01 s: b1 has not heard of map 4 yet"
    assert network("remove-broker", "--id", "b4", "--wait", "0.01") == (1, [], [problem])
    del brokers.more_facts["b1"]
    assert network("remove-broker", "--id", "b4")[0] == 0


def test_a_change_that_another_operator_ended_is_not_said_to_be_done(network: Command, brokers: Brokers) -> None:
    def overtaken() -> None:
        """Someone declares b4 lost, before b3 has left."""
        brokers.forgets = 1
        brokers.map = msgspec.structs.replace(brokers.map, number=7)

    brokers.before_asked = overtaken
    code, _, said = network("remove-broker", "--id", "b3")
    assert (code, said) == (1, ["not changed: another change came first; the network is now b1-b2, b2-b3, b3-b4"])


def test_options_that_can_not_be_are_refused_before_anyone_is_asked(
    network: Command, brokers: Brokers, tmp_path: Path
) -> None:
    for wait in ("nan", "-1", "0", "inf"):
        assert network("remove-broker", "--id", "b2", "--wait", wait)[0] == 2
    unlisted = ("add-broker", "--id", "b9", "--at", "b4")
    code, _, said = network(*unlisted)
    assert code == 2
    assert "where b9 is to be found is not known: add it to" in said[0]
    for address, problem in (
        ("here", "'here' is no address: write host:port"),
        ("0.0.0.0:7419", "0.0.0.0:7419 is where b9 may listen, and nobody can be sent there: name its machine"),
    ):
        assert network(*unlisted, "--address", address, "--peer-address", "h:1")[2] == [f"holdfast: {problem}"]
    assert network("add-broker", "--id", "b 9", "--at", "b4")[0] == 2
    assert network("add-link", "--between", "b1")[0] == 2
    (tmp_path / "one.toml").write_text('[[broker]]\nid = "b1"\n')
    assert network("show", where=str(tmp_path / "one.toml"))[2] == [
        f"holdfast: {tmp_path}/one.toml describes no network, but one broker of the scheme 'tree'"
    ]
    group = "".join(
        f'[[broker]]\nid = "r{n}"\naddress = "h:{n}"\npeer_address = "h:1{n}"\ndata = "r{n}"\n' for n in (1, 2, 3)
    )
    (tmp_path / "group.toml").write_text(f'[scheme]\nkind = "paxos"\n{group}')
    assert network("show", where=str(tmp_path / "group.toml"))[2] == [
        f"holdfast: {tmp_path}/group.toml describes no network, but a group of the scheme 'paxos'"
    ]
    assert brokers.asked == []
