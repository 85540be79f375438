"""`holdfast standin`: what it asks for, what it waits for, and what it says; to brokers that answer by their map."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from holdfast.cli import changing, network_view
from holdfast.cli.network_view import Network
from holdfast.cli.standin import GOES_ON
from tests.cli.network_bench import SPARE, Brokers, address_of, peer_address_of, site_text
from tests.cli.test_main import run

SPARE_AT = {"address": address_of(SPARE), "peer_address": peer_address_of(SPARE)}
Said = tuple[int, list[str], list[str]]
Command = functools.partial[Said]


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    """b3 is down."""
    made = Brokers()
    made.running.remove("b3")
    monkeypatch.setattr(network_view, "Network", functools.partial(Network, make=made.desk))
    monkeypatch.setattr(network_view, "LOOK_EVERY_S", 0.001)
    return made


@pytest.fixture
def standin(brokers: Brokers, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """`holdfast standin VERB SITE …`: its exit code, and the lines of both outputs."""
    site = tmp_path / "site.toml"
    site.write_text(site_text())

    def ask(verb: str, *options: str, where: str = str(site)) -> Said:
        code = run("standin", verb, where, *options)
        told = capsys.readouterr()
        return code, told.out.splitlines(), told.err.splitlines()

    return functools.partial(ask)


REPLACED = ("b8 learns the tables of b3 (synch)", "done: members b1, b2, b8, b4; links b1-b2, b2-b8, b8-b4; map 1002")


def test_a_spare_takes_the_place_of_a_broker_that_is_down_where_the_site_file_says_that_it_is(
    standin: Command, brokers: Brokers
) -> None:
    brokers.looks = 20
    assert standin("replace", "b3", "--by", SPARE) == (0, [*REPLACED], [])
    assert brokers.asked == [
        ("b1", "replace", {"id": "b3", "by": SPARE, "protocol": "synch", "mode": "failover", **SPARE_AT})
    ]


@pytest.mark.parametrize("protocol", ["basic", "synch", "increm"])
def test_the_protocol_is_the_one_that_was_asked_for(standin: Command, brokers: Brokers, protocol: str) -> None:
    brokers.looks = 20
    code, told, _ = standin("replace", "b3", "--by", SPARE, "--protocol", protocol)
    assert (code, told[0]) == (0, f"b8 learns the tables of b3 ({protocol})")
    assert standin("replace", "b3", "--by", SPARE, "--protocol", "other")[0] == 2


def test_a_broker_that_no_site_file_lists_is_named_by_its_addresses(standin: Command, brokers: Brokers) -> None:
    places = ("--address", SPARE_AT["address"], "--peer-address", SPARE_AT["peer_address"])
    where = f"holdfast://{address_of('b2')},{address_of('b1')}"
    assert standin("replace", "b3", "--by", SPARE, *places, where=where)[0] == 0
    assert brokers.asked[0][2] == {"id": "b3", "by": SPARE, "protocol": "synch", "mode": "failover", **SPARE_AT}


def test_the_place_is_handed_back_step_by_step(standin: Command, brokers: Brokers) -> None:
    assert standin("replace", "b3", "--by", SPARE)[0] == 0
    brokers.running.add("b3")
    brokers.looks = 20
    assert standin("hand-back", "b3") == (
        0,
        [
            "b2 moves from b8 to b3; 2 more steps",
            "b4 moves from b8 to b3; 1 more step",
            "b8 is on its way out",
            "done: members b1, b2, b4, b3; links b1-b2, b2-b3, b4-b3; map 1006",
        ],
        [],
    )
    told = {"id": "b3", "address": address_of("b3"), "peer_address": peer_address_of("b3")}
    assert brokers.asked[-1] == ("b1", "hand-back", told)
    assert standin("show")[1] == ["nobody stands in for another", "spares: b8"]


def test_show_tells_who_stands_in_what_is_waited_for_and_which_spares_are_there(
    standin: Command, brokers: Brokers
) -> None:
    assert standin("show") == (0, ["nobody stands in for another", "spares: b8"], [])
    brokers.stalled = "b8 has not heard everything from b4"
    assert standin("replace", "b3", "--by", SPARE, "--wait", "0.02")[0] == 1
    assert standin("show") == (
        0,
        [
            "b8 stands in for b3, which does not answer",
            "change: b8 learns the tables of b3 (synch)",
            "it waits: b8 has not heard everything from b4",
            "spares: none that answers",
        ],
        [],
    )
    brokers.stalled = ""
    brokers.running.add("b3")
    assert standin("show")[1][0] == "b8 stands in for b3, which runs again: `hand-back` gives it its place"


def test_a_spare_that_does_not_answer_is_shown_as_such(standin: Command, brokers: Brokers) -> None:
    brokers.running.remove(SPARE)
    told = ["nobody stands in for another", "spares: none that answers", "b8 is a spare, and does not answer"]
    assert standin("show") == (0, told, [])


def test_what_a_stand_in_waits_for_is_told_before_and_when_the_time_is_up(
    standin: Command, brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changing, "TELL_AFTER_S", 0.0)
    brokers.stalled = problem = "b8 has no link with b4"
    assert standin("replace", "b3", "--by", SPARE, "--wait", "0.02") == (
        1,
        [REPLACED[0]],
        [
            f"waiting for up to 0.02 s: {problem}",
            f"not done after 0.02 s: {REPLACED[0]}: {problem}",
            GOES_ON,
        ],
    )


REFUSED = [
    (("b7", "--by", SPARE), "there is no broker 'b7' in this network; there is b1, b2, b3, b4"),
    (("b3", "--by", "b4"), "'b4' is a member already: a stand-in is a broker that runs, and is none"),
    (
        ("b2", "--by", SPARE),
        "b2 answers: stop it first; what it has not passed on is on its disk, and goes on when it has its place back",
    ),
    (
        ("b3", "--by", SPARE, "--also-lost", "b1"),
        "b1 answers: stop it first; what it has not passed on is on its disk, and goes on when it has its place back",
    ),
]


@pytest.mark.parametrize(("options", "problem"), REFUSED)
def test_what_goes_against_the_network_is_refused_with_the_reason(
    standin: Command, brokers: Brokers, options: tuple[str, ...], problem: str
) -> None:
    assert standin("replace", *options) == (1, [], [f"not changed: {problem}"])
    assert brokers.map == brokers.founded


def test_a_stand_in_that_is_no_broker_of_the_site_is_asked_where_it_is(standin: Command, brokers: Brokers) -> None:
    code, _, said = standin("replace", "b3", "--by", "b9")
    assert code == 2
    assert said[0].startswith("holdfast: where b9 is to be found is not known: add it to ")
    assert standin("replace", "b3", "--by", "b3")[2] == [
        "holdfast: b3 can't stand in for itself: name a spare with --by"
    ]
    assert brokers.asked == []


def test_a_stand_in_that_does_not_answer_or_is_of_another_site_is_not_asked_for(
    standin: Command, brokers: Brokers
) -> None:
    brokers.running.remove(SPARE)
    problem = f"b8 does not answer at {address_of(SPARE)}, and is started first: connection refused"
    assert standin("replace", "b3", "--by", SPARE) == (1, [], [f"not changed: {problem}"])
    brokers.running.add(SPARE)
    brokers.more_facts[SPARE] = {"reliability": "none"}
    problem = "b8 has the reliability 'none', and the network 'buffered': give it the same site file"
    assert standin("replace", "b3", "--by", SPARE)[2] == [f"not changed: {problem}"]
    assert brokers.asked == []


def test_networks_without_standin_and_networks_with_detours_say_so(standin: Command, brokers: Brokers) -> None:
    brokers.stand_ins = False
    problem = "not changed: nobody stands in for brokers of this network: the site file has no [standin]"
    assert standin("replace", "b3", "--by", SPARE)[2] == [problem]
    brokers.stand_ins, brokers.detours = True, True
    problem = "not changed: at levels that detour, events go around a broker that fails, and nobody stands in for it"
    assert standin("replace", "b3", "--by", SPARE)[2] == [problem]


def test_brokers_that_were_started_without_standin_beside_others_are_named(standin: Command, brokers: Brokers) -> None:
    brokers.without_stand_ins = {"b2", SPARE}
    problem = "not changed: b2, b8: started without [standin], as others have it: restart with their file"
    assert standin("replace", "b3", "--by", SPARE) == (1, [], [problem])
    assert brokers.asked == []


def test_a_second_replacement_is_refused_while_one_is_under_way_but_for_the_stand_in_s_own(
    standin: Command, brokers: Brokers
) -> None:
    brokers.stalled = "b8 has no link with b4"
    assert standin("replace", "b3", "--by", SPARE, "--wait", "0.02")[0] == 1
    brokers.running.remove("b4")
    brokers.running.add("b9")
    brokers.named[address_of("b9")] = "b9"
    places = ("--address", address_of("b9"), "--peer-address", peer_address_of("b9"))
    problem = "not changed: another change is under way: b8 learns the tables of b3 (synch)"
    assert standin("replace", "b4", "--by", "b9", *places)[2] == [problem]
    brokers.running.remove(SPARE)
    brokers.stalled = ""
    assert standin("replace", SPARE, "--by", "b9", *places)[0] == 0
    assert brokers.map.stand_in("b3") == brokers.map.stand_in(SPARE) == "b9"


def test_the_keeper_is_replaced_by_a_word_to_the_next_member(standin: Command, brokers: Brokers) -> None:
    brokers.running = {"b2", "b3", "b4", SPARE}
    assert standin("replace", "b1", "--by", SPARE)[0] == 0
    assert brokers.asked == [
        ("b2", "replace", {"id": "b1", "by": SPARE, "protocol": "synch", "mode": "failover", **SPARE_AT})
    ]
    assert brokers.map.keeper == SPARE


def test_of_two_that_are_down_at_once_the_other_is_not_waited_for(standin: Command, brokers: Brokers) -> None:
    brokers.running = {"b3", "b4", SPARE}
    problem = f"not done after 0.01 s: b2 orders changes, and does not answer: {address_of('b1')}: connection refused"
    code, _, said = standin("replace", "b1", "--by", SPARE, "--wait", "0.01")
    assert (code, said[0].startswith("not done after 0.01 s: the keeper is lost, so b2 orders this change")) == (
        1,
        True,
    )
    assert problem not in said
    assert standin("replace", "b1", "--by", SPARE, "--also-lost", "b2")[0] == 0
    assert brokers.asked[-1][::2] == ("b3", {**brokers.asked[-1][2], "also_lost": "b2"})


def test_nobody_who_answers_is_said_with_the_reasons(standin: Command, brokers: Brokers) -> None:
    brokers.running.clear()
    lines = ["no broker of a network answers"]
    lines += [f"  {address_of(name)}: connection refused" for name in ("b1", "b2", "b3", "b4", SPARE)]
    assert standin("show", "--wait", "0") == (1, [], lines)
    assert standin("replace", "b3", "--by", SPARE, "--wait", "0.01") == (1, [], lines)


def test_a_place_is_handed_back_to_a_broker_that_runs_and_had_it(standin: Command, brokers: Brokers) -> None:
    brokers.running.add("b3")
    assert standin("hand-back", "b3")[2] == ["not changed: 'b3' is a member, and nobody stands in for it"]
    brokers.running.remove("b3")
    assert standin("replace", "b3", "--by", SPARE)[0] == 0
    problem = f"not changed: b3 does not answer at {address_of('b3')}, and is started first: connection refused"
    assert standin("hand-back", "b3")[2] == [problem]


@pytest.mark.parametrize("mode", ["ms", "ms-ro"])
def test_the_work_of_a_slow_broker_is_shared_and_handed_back(standin: Command, brokers: Brokers, mode: str) -> None:
    brokers.running.add("b3")
    code, said, _ = standin("replace", "b3", "--by", SPARE, "--mode", mode)
    assert (code, said[-1].partition(";")[0]) == (0, "done: members b1, b2, b3, b4, b8")
    assert brokers.asked[0][2]["mode"] == mode
    assert standin("show")[1] == ["b8 shares the work of b3", "spares: none that answers"]
    code, said, _ = standin("hand-back", "b3")
    assert (code, said[-1].partition(";")[0]) == (0, "done: members b1, b2, b3, b4")
    assert standin("show")[1] == ["nobody stands in for another", "spares: b8"]


def test_a_hand_back_that_was_forgotten_is_asked_for_again(standin: Command, brokers: Brokers) -> None:
    brokers.running.add("b3")
    assert standin("replace", "b3", "--by", SPARE, "--mode", "ms")[0] == 0
    brokers.forgets = 2
    assert standin("hand-back", "b3")[0] == 0
    assert [action for _, action, _ in brokers.asked] == ["replace", *["hand-back"] * 3]
