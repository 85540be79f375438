"""What a client publishes, against a broker that counts: nothing is lost, doubled, or answered for another event."""

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.batch import EventBatch
from holdfast.protocols.sessions.messages import Refusal
from holdfast.protocols.sessions.outgoing import Outgoing
from tests.sessions.bench import batch

STEP = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("send"), st.integers(1, 4), st.integers(0, 300)),
    st.tuples(st.just("send"), st.integers(1, 4), st.integers(0, 300)),
    st.tuples(st.just("arrive"), st.integers(0, 5), st.just(0)),  # so many of the messages under way
    st.tuples(st.just("late"), st.integers(1, 3), st.just(0)),  # so many of those of lost links
    st.tuples(st.just("answer"), st.just(0), st.just(0)),
    st.tuples(st.just("repeat"), st.just(0), st.just(0)),
    st.tuples(st.just("lose"), st.integers(0, 3), st.just(0)),  # the link, and the next before there is a session
    st.tuples(
        st.just("resume"), st.integers(0, 3), st.just(0)
    ),  # a new link; so many of the messages under way arrived
    st.tuples(st.just("forget"), st.integers(0, 3), st.booleans()),  # and the broker forgot the client, or everything
)


def one(sequence: int) -> EventBatch:
    return EventBatch.read(batch(sequence))


class Publisher:
    """Drives `Outgoing` as the client does, and plays its broker and its application."""

    def __init__(self, window: int) -> None:
        self.outgoing = Outgoing(window)
        self.window = window
        self.sequence = 0
        self.requests: dict[int, dict[int, int]] = {}  # request → place → sequence
        self.settled: dict[int, str] = {}  # sequence → how
        self.completed: list[int] = []
        self.under_way: list[tuple[int, list[int]]] = []
        self.late: list[tuple[int, list[int]]] = []  # of links that are lost: a broker may still come to it
        self.accepted: list[int] = []  # the sequences that the session's broker took; SKIPPED in place of some
        self.ever_accepted: list[int] = []
        self.retried: set[int] = set()
        self.highest = 0  # number that was sent in this session

    def add(self, count: int, retry: bool) -> None:
        request = len(self.requests) + 1
        sequences = list(range(self.sequence + 1, self.sequence + count + 1))
        self.sequence += count
        self.requests[request] = dict(enumerate(sequences))
        self.retried.update(sequences if retry else [])
        made = [(place, sequence, one(sequence)) for place, sequence in enumerate(sequences)]
        self.outgoing.add(request, made, [], retry)

    def send(self, count: int, bytes_max: int) -> None:
        ready = self.outgoing.ready
        before = self.outgoing.in_flight
        first, sent, skipped = self.outgoing.take(count, bytes_max)
        events = [] if sent is None else sent.slices
        taken = len(events) + skipped
        assert ready == bool(taken)
        assert not (events and skipped)
        assert taken <= count
        assert self.outgoing.in_flight == before + taken <= self.window
        assert len(events) < 2 or sum(map(len, events)) <= bytes_max
        if taken:
            sequences = [int(bytes(data)[4]) for data in events] or [SKIPPED] * skipped
            assert first == self.outgoing.answered + before + 1
            self.highest = max(self.highest, first + taken - 1)
            self.under_way.append((first, sequences))

    def arrive(self, count: int) -> None:
        self._take(self.under_way[:count])
        del self.under_way[:count]

    def arrive_late(self, count: int) -> None:
        """A broker comes to what it was told over a link that is gone, at its gate or in its group's log."""
        self._take(self.late[:count])
        del self.late[:count]

    def _take(self, messages: list[tuple[int, list[int]]]) -> None:
        for first, sequences in messages:
            for number, sequence in enumerate(sequences, first):
                if number <= len(self.accepted):
                    taken = self.accepted[number - 1]
                    assert SKIPPED in (taken, sequence) or taken == sequence, "a number is one event's, for ever"
                elif number == len(self.accepted) + 1:
                    self.accepted.append(sequence)
                    if sequence != SKIPPED:
                        self.ever_accepted.append(sequence)

    def answer(self) -> None:
        for number, sequence, request, place in self.outgoing.answer(len(self.accepted)):
            assert self.accepted[number - 1] == sequence == self.requests[request][place]
            self.settle(request, place, "accepted")

    def settle(self, request: int, place: int, how: str) -> None:
        sequence = self.requests[request][place]
        assert sequence not in self.settled
        self.settled[sequence] = how
        done = self.outgoing.settle(request, place, None if how == "accepted" else (Refusal.EVENT, how))
        wanted = self.requests[request]
        if all(one in self.settled for one in wanted.values()):
            refused = [
                (p, Refusal.EVENT, self.settled[one]) for p, one in wanted.items() if self.settled[one] != "accepted"
            ]
            assert done == refused
            self.completed.append(request)
        else:
            assert done is None

    def lose_link(self, arrived: int) -> None:
        self.arrive(arrived)
        self.late, self.under_way = self.late + self.under_way, []
        for sequence, request, place in self.outgoing.give_up_unretried():
            assert sequence not in self.retried
            assert self.requests[request][place] == sequence
            self.settle(request, place, "lost")

    def resume(self, arrived: int) -> None:
        self.lose_link(arrived)
        self.answer()
        self.outgoing.resend_all()

    def forget(self, arrived: int, everything: bool) -> None:
        self.lose_link(arrived)
        if not everything:
            for _, request, place in self.outgoing.give_up_sent():
                self.settle(request, place, "in doubt")
        self.accepted, self.late = [], []  # of a session that is over
        self.highest = 0
        self.outgoing.restart()
        self.outgoing.resend_all()


SKIPPED = 0


def sequences_of(publisher: Publisher) -> list[int]:
    return list(range(1, publisher.sequence + 1))


@given(window=st.integers(1, 5), steps=st.lists(STEP, min_size=12, max_size=30))
@settings(max_examples=200)
def test_every_event_is_settled_once_and_what_is_accepted_was(
    window: int, steps: list[tuple[str, int, int | bool]]
) -> None:
    publisher = Publisher(window)
    for step, one, two in steps:
        match step:
            case "add":
                publisher.add(one, bool(two))
            case "send":
                publisher.send(one, int(two))
            case "arrive":
                publisher.arrive(one)
            case "late":
                publisher.arrive_late(one)
            case "answer":
                publisher.answer()
            case "repeat":
                publisher.outgoing.resend_all()
            case "lose":
                publisher.lose_link(one)
                publisher.resume(0)
            case "resume":
                publisher.resume(one)
            case "forget":
                publisher.forget(one, bool(two))
        publisher.outgoing.check_invariants()
        assert publisher.outgoing.answered <= len(publisher.accepted)
        assert publisher.outgoing.sent == publisher.highest
    for _ in range(2 * publisher.sequence + 2):
        publisher.send(10, 10_000)
        publisher.arrive(10)
        publisher.answer()
        publisher.outgoing.check_invariants()
    # All that is left is answered in the end.
    assert sorted(publisher.settled) == sequences_of(publisher)
    assert sorted(publisher.completed) == sorted(publisher.requests)
    accepted = [sequence for sequence in sequences_of(publisher) if publisher.settled[sequence] == "accepted"]
    assert set(accepted) <= set(publisher.ever_accepted)
    assert all(publisher.settled[sequence] != "lost" for sequence in publisher.retried)


def test_what_was_given_up_keeps_its_number_so_that_it_is_never_taken_for_what_comes_later() -> None:
    publisher = Publisher(window=3)
    publisher.add(1, retry=False)
    publisher.add(1, retry=True)
    publisher.send(3, 1_000)
    publisher.resume(arrived=0)  # the first is given up, and its broker has not come to it
    publisher.add(1, retry=True)
    for wanted in [(1, [SKIPPED]), (2, [2, 3])]:
        publisher.send(3, 1_000)
        assert publisher.under_way[-1] == wanted
    publisher.arrive_late(1)  # now it has
    publisher.arrive(2)
    publisher.answer()
    assert publisher.accepted == [1, 2, 3]
    assert publisher.settled == {1: "lost", 2: "accepted", 3: "accepted"}


def test_everything_can_be_given_up_at_once() -> None:
    outgoing = Outgoing(2)
    outgoing.add(1, [(0, 1, one(1)), (2, 3, one(3))], [(1, Refusal.EVENT, "bad")], retry=False)
    outgoing.add(2, [(0, 4, one(4))], [], retry=True)
    outgoing.add(3, [], [], retry=True)
    outgoing.take(10, 1000)
    assert outgoing.give_up_unretried() == [(1, 1, 0), (3, 1, 2)]
    assert outgoing.settle(1, 2, None) is None
    assert outgoing.settle(1, 0, (None, "gone")) == [(0, None, "gone"), (1, Refusal.EVENT, "bad")]
    assert outgoing.give_up_all() == [(4, 2, 0)]
    assert (outgoing.in_flight, outgoing.ready) == (0, False)
    assert outgoing.settle(2, 0, None) == []
    outgoing.check_invariants()


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    unretried=st.integers(0, 255),
    sent=st.integers(0, 40),
    accepted=st.integers(0, 40),
)
def test_answering_everything_at_once_is_answering_one_by_one(
    sizes: list[int], unretried: int, sent: int, accepted: int
) -> None:
    pair = []
    for _ in range(2):
        outgoing, sequence = Outgoing(100), 0
        for request, size in enumerate(sizes, 1):
            made = [(place, sequence + place + 1, one(sequence + place + 1)) for place in range(size)]
            sequence += size
            outgoing.add(request, made, [], retry=not unretried >> request & 1)
        outgoing.take(sent, 10**6)
        outgoing.give_up_unretried()
        pair.append(outgoing)
    at_once, one_by_one = pair
    accepted = min(accepted, at_once.sent)
    done = []
    for _, _, request, place in one_by_one.answer(accepted):
        refused = one_by_one.settle(request, place, None)
        if refused is not None:
            done.append((request, refused))
    assert at_once.answer_all(accepted) == done
    state = [(o.answered, o.in_flight, len(o), list(o._requests)) for o in pair]
    assert state[0] == state[1]
