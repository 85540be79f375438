"""Commands for the core: sensible ones that hit each other, and any at all."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from holdfast.model.event import Event, EventBytes, encode_batch, encode_event
from holdfast.protocols.core import commands
from holdfast.protocols.core.commands import Command
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.sessions.messages import Overflow

CLIENTS = ["client:a", "client:b", "client:c"]
FILTERS = ["n > 2", "topic = 't'", "n < 3 OR topic LIKE 't%'", "n = 1", "not a filter ("]

client = st.sampled_from(CLIENTS)
number = st.integers(1, 3)
overflow = st.sampled_from(Overflow)

VALUES = st.one_of(
    st.integers(0, 5), st.sampled_from([float("nan"), float("inf"), 2**64 - 1, 1.5, "text", True]), st.text(max_size=3)
)


# When, and for how long: by the time of the first command, for ever, over, not over yet; and beyond 64 bits.
NOW = 1_700_000_000 * 10**9
times = st.sampled_from([(0, 0)] * 3 + [(NOW, -1), (NOW, 1), (NOW, 4), (NOW, 7), (NOW, 10**9), (2**64 - 1, 2**64 - 1)])


def _event(sequence: int, topic: str, attributes: dict[str, Any], payload: bytes, times: tuple[int, int]) -> EventBytes:
    return encode_event(Event("p", 1, sequence, topic, attributes, payload, *times))


events = st.builds(
    _event,
    st.integers(1, 100),
    st.sampled_from(["", "t", "u", "count"]),
    st.dictionaries(st.sampled_from(["n", "m", "topic", "x" * 200]), VALUES, max_size=3),
    st.binary(max_size=40),
    times,
)
batches = st.builds(encode_batch, st.lists(events, max_size=5))


def step(kind: str, *fields: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(st.just(kind), client, *fields)


# With a log: cursors of two names, stages of two queries, and the tail.
names = st.sampled_from(["risk", "audit"])
starts = st.sampled_from([-1, 0, 1, 2, 5, 99])
log_steps = (
    step("open cursor", number, names, st.sampled_from(FILTERS), starts, st.booleans(), st.booleans()),
    step("open cursor", number, names, st.sampled_from(FILTERS), st.just(0), st.just(False), st.just(False)),
    step("close cursor", number),
    step("acknowledge", number, st.integers(0, 12)),
    step("forget", names),
    step("remove", names, st.booleans()),
    step("stage", st.sampled_from(["q", "r"]), st.integers(1, 3), st.sampled_from(["s", "t"]), number, batches),
    step(
        "commit", st.sampled_from(["q", "r"]), st.integers(1, 3), st.sampled_from([(), ("s",), ("s", "t"), ("t", "t")])
    ),
    step("keep", st.integers(0, 9)),
    step("expire", st.integers(0, 20)),
)

# A step becomes a command when it is known which epoch its client has, and how far that has published.
steps = st.lists(
    st.one_of(
        step("open", st.integers(1, 2), st.sampled_from(["none", "own", "older"])),
        step("end"),
        step("subscribe", number, st.sampled_from(FILTERS), overflow),
        step("unsubscribe", number),
        step("advertise", number, st.sampled_from(FILTERS)),
        step("unadvertise", number),
        step("end subscription", number),
        step("publish", st.integers(-2, 2), st.integers(0, 3), batches),
        step("publish", st.just(0), st.integers(0, 3), batches),
        step("receive", st.lists(st.tuples(number, st.integers(0, 12), st.integers(0, 4)), max_size=3)),
        step("expire events", st.integers(0, 25)),
        step("drop"),
        step("execute", st.integers(-2, 2), st.integers(0, 2), st.sampled_from([b"a", b"fail", bytes(9)])),
        *log_steps,
    ),
    min_size=12,
    max_size=25,
)


def to_command(core: BrokerCore, step: tuple[Any, ...]) -> Command:
    kind, name, *fields = step
    session = core.sessions.get(name)
    epoch = 0 if session is None else session.epoch
    accepted = 0 if session is None else session.accepted
    match kind:
        case "open":
            instance, known = fields
            return commands.OpenSession(name, instance, {"none": 0, "own": epoch, "older": max(0, epoch - 1)}[known])
        case "end":
            return commands.EndSession(name, epoch)
        case "subscribe":
            return commands.Subscribe(name, epoch, fields[0], fields[1], fields[2], 4)
        case "unsubscribe":
            return commands.Unsubscribe(name, epoch, fields[0])
        case "advertise":
            return commands.Advertise(name, epoch, fields[0], fields[1])
        case "unadvertise":
            return commands.Unadvertise(name, epoch, fields[0])
        case "end subscription":
            return commands.EndSubscription(name, epoch, fields[0], "because")
        case "publish":
            return commands.Publish(name, epoch, accepted + 1 + fields[0], accepted - fields[1], fields[2])
        case "execute":
            confirmed = 0 if session is None else session.confirmed
            return commands.Execute(name, epoch, confirmed + 1 + fields[0], confirmed + fields[1], fields[2])
        case "receive":
            said = fields[0]
            late = tuple(x for _, _, x in said)
            numbers = tuple(n for n, _, _ in said), tuple(r for _, r, _ in said)
            return commands.Receive(name, epoch, *numbers, late if any(late) else ())
        case "expire events":
            return commands.ExpireEvents("", NOW + fields[0])
        case "open cursor":
            known = core.cursors.cursors.get(fields[1])
            generation = known.generation if known is not None and fields[5] else 0
            return commands.OpenCursor(
                name, epoch, fields[0], fields[1], fields[2], fields[3], fields[4], 4, generation, core.events, -1, 2
            )
        case "close cursor":
            return commands.CloseCursor(name, epoch, fields[0])
        case "acknowledge":
            return commands.AcknowledgeCursor(name, epoch, fields[0], fields[1])
        case "forget":
            return commands.ForgetName(name, epoch, 1, fields[0])
        case "remove":
            return commands.RemoveName("", "operator:o", 1, fields[0], fields[1])
        case "stage":
            return commands.StageEvents(name, epoch, 2, fields[0], fields[1], 1, fields[2], fields[3], fields[4])
        case "commit":
            return commands.CommitStages(name, epoch, 3, fields[0], fields[1], fields[2])
        case "keep":
            return commands.KeepLog("", fields[0])
        case "expire":
            return commands.ExpireStages("", NOW + fields[0])
    return commands.DropSubscriptions(name, epoch)


integers = st.one_of(st.integers(-(2**63), 2**64 - 1), st.sampled_from([0, 1, -1, 2**62, 2**63, 2**64 - 1]))
raw = st.one_of(st.builds(msgspec.Raw, st.binary(max_size=30)), batches)
some = st.lists(integers, max_size=4).map(tuple)
texts = st.one_of(st.sampled_from(FILTERS), st.text(max_size=9))
anyone = st.one_of(client, st.text(max_size=4))

# Whatever can be decoded; epochs are mostly that of the first session, so that something happens.
epochs = st.one_of(st.just(1_700_000_000_000), integers)
any_commands = st.lists(
    st.one_of(
        st.builds(commands.OpenSession, anyone, integers, epochs, integers),
        st.builds(commands.EndSession, anyone, epochs),
        st.builds(commands.Subscribe, anyone, epochs, integers, texts, overflow, integers),
        st.builds(commands.Unsubscribe, anyone, epochs, integers),
        st.builds(commands.EndSubscription, anyone, epochs, integers, st.text(max_size=3)),
        st.builds(commands.Publish, anyone, epochs, st.one_of(st.just(1), integers), integers, raw),
        st.builds(commands.Receive, anyone, epochs, some, some),
        st.builds(commands.Receive, anyone, epochs, some, some, some),
        st.builds(commands.ExpireEvents, anyone, integers),
        st.builds(commands.DropSubscriptions, anyone, epochs),
        st.builds(commands.Execute, anyone, epochs, integers, integers, st.binary(max_size=9)),
        st.builds(commands.Execute, anyone, epochs, st.integers(1, 4), st.integers(0, 3), st.binary(max_size=9)),
        st.builds(
            commands.OpenCursor,
            anyone,
            epochs,
            integers,
            texts,
            texts,
            integers,
            st.booleans(),
            integers,
            integers,
            integers,
            integers,
            integers,
        ),
        st.builds(commands.CloseCursor, anyone, epochs, integers),
        st.builds(commands.AcknowledgeCursor, anyone, epochs, integers, integers),
        st.builds(commands.ForgetName, anyone, epochs, integers, texts),
        st.builds(commands.RemoveName, anyone, texts, integers, texts, st.booleans()),
        st.builds(commands.StageEvents, anyone, epochs, integers, texts, integers, integers, texts, integers, raw),
        st.builds(commands.CommitStages, anyone, epochs, integers, texts, integers, st.lists(texts).map(tuple)),
        st.builds(commands.ExpireStages, anyone, integers),
        st.builds(commands.KeepLog, anyone, integers),
    ),
    min_size=6,
    max_size=12,
)
