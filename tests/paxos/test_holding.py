"""What a replica holds is what is on its disk, not what it has executed."""

from holdfast.schemes.paxos.holding import Holding


def test_a_slot_is_held_when_what_came_of_it_is_on_the_disk() -> None:
    holding = Holding()
    assert holding.look(executed=4, made=10, durable=10) == 4
    assert holding.look(executed=5, made=12, durable=10) == 4
    assert holding.look(executed=6, made=13, durable=12) == 5  # the last look's mark is reached
    assert holding.look(executed=9, made=20, durable=13) == 6
    assert holding.look(executed=9, made=20, durable=20) == 9


def test_slots_that_nothing_came_of_are_held_at_once() -> None:
    holding = Holding()
    assert [holding.look(slot, 0, 0) for slot in (1, 2, 7)] == [1, 2, 7]


def test_looking_often_at_a_disk_that_stands_still_costs_nothing() -> None:
    holding = Holding()
    assert {holding.look(5, 9, 3) for _ in range(1_000)} == {0}
    assert len(holding._marks) == 1


def test_what_came_of_slots_is_counted_in_its_own_numbers() -> None:
    """Five slots made a hundred events, of which the disk has seven: nothing of the five is held for sure."""
    holding = Holding()
    assert holding.look(5, 100, 7) == 0
    assert holding.look(5, 100, 7) == 0
    assert holding.look(6, 101, 100) == 5
