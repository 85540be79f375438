"""One value of every type that is ever encoded, with every field away from its default, by name.

When a type gets a new last field, give its example a value for it and add a line to the golden file; the older lines
stay, and must go on being read.
"""

from typing import Any

import msgspec

from holdfast.codec import Registry
from holdfast.kernel.messages import Message
from holdfast.model.event import Event, encode_batch, encode_event
from holdfast.protocols.core import commands
from holdfast.protocols.cursors import messages as log
from holdfast.protocols.failure.messages import Alive
from holdfast.protocols.operating.messages import (
    Change,
    ChangeBegun,
    HistoryEntry,
    HistoryTold,
    Inspect,
    Inspected,
    LeadershipMoved,
    LinkReport,
    ListNames,
    MoveLeadership,
    NameRemoved,
    NameReport,
    NamesListed,
    RemoveName,
    SubscriptionReport,
    TellHistory,
)
from holdfast.protocols.routing import messages as routing
from holdfast.protocols.routing.network_map import (
    Leave,
    Move,
    NetworkMap,
    NetworkMember,
    StandInProtocol,
)
from holdfast.protocols.sessions import messages
from holdfast.protocols.sessions.messages import Overflow, Refusal
from holdfast.schemes.paxos import messages as paxos
from holdfast.schemes.paxos.membership import GroupMember, Membership
from holdfast.schemes.paxos.settings import Protocol
from holdfast.schemes.tree.bypass import messages as bypass
from holdfast.schemes.tree.standin import messages as standin
from holdfast.schemes.tree.standin.cycle import messages as cycle

EVENT = Event("p", 7, 300, "stock", {"price": 101.5, "symbol": "IBM", "open": True, "lot": -5}, b"\x00\xff", 11, 12)
BATCH = encode_batch([encode_event(EVENT), encode_event(Event("q", 1, 1, "", {}))])

MEMBERSHIP = Membership(
    (
        GroupMember("b1", 0, "p1", "c1", "disk", leaving=True),
        GroupMember("b4", 1, "p4", "c4", "other", votes=False, replaces="b1"),
    ),
    2,
    5,
    ("b0",),
    Protocol.MULTI,
)
NETWORK = NetworkMap(
    7,
    (NetworkMember("b1", "c1", "p1"), NetworkMember("b2", "c2", "p2"), NetworkMember("b3", "c3", "p3")),
    (("b1", "b2"), ("b2", "b3")),
    (("b1", "b3"),),
    (Move("b3", "b2", "b1"), Leave("b2")),
    ("b0",),
)
STAGE = routing.MoveStage(7, routing.MoveWord.TAKEN, 9)
NAME = NameReport("risk", "a", True, 1, 2, 3, 4, 5, 6, "price > 1")
VALUE = msgspec.Raw(b"\x93\x07\x91\xc3\x02")  # Proposal(7, [true], 2), as it was written before it had a change
MESSAGE_EXAMPLES: list[Message] = [
    messages.OpenSession(2**62, 3, (1, 2), (10, 20), (9, 19)),
    messages.Subscribe(4, "price > 100", Overflow.DROP_OLDEST, 77),
    messages.Unsubscribe(5),
    messages.Advertise(6, "price > 1"),
    messages.Unadvertise(7),
    messages.Publish(6, BATCH, 5, True, 2),
    messages.OpenDirect(1_700_000_000_000, 2**62),
    messages.DirectChanged(("b2:7411", "b3:7411")),
    messages.Progress((1, 2), (30, 40), (29, 39), True, (0, 1)),
    messages.CloseSession(),
    messages.Ping(),
    messages.SessionOpened(
        1_700_000_000_000,
        8,
        4096,
        9,
        (3,),
        ("b2:7411",),
        ((7, Refusal.EVENT, "is nan"),),
        "",
        16,
        ("b3:7411",),
        True,
        7,
        1_007,
    ),
    messages.SessionRefused(Refusal.SUPERSEDED, "another client"),
    messages.SessionClosed(),
    messages.Redirect(("b3:7411", "b4:7411")),
    messages.AlternatesChanged(("b4:7411",)),
    messages.Subscribed(10),
    messages.SubscribeRefused(11, Refusal.FILTER, "no filter", 5, "a literal"),
    messages.Unsubscribed(12),
    messages.Advertised(13),
    messages.AdvertiseRefused(14, messages.Refusal.FILTER, "bad", 3, "a name"),
    messages.Unadvertised(15),
    messages.SubscriptionEnded(13, "overflow"),
    messages.Accepted(14, ((13, Refusal.LIMIT, "too much"), (14, Refusal.CONFLICT, "in use"))),
    messages.Deliver([(1, 15, 1), (2, 16, 1)], encode_batch([encode_event(EVENT), encode_event(EVENT)]), [(3, 2)]),
    messages.Dropped(17, 18, (3, 4, 9, 9)),
    messages.Pong(),
    messages.AskApplication(4, b"\x01", 3),
    messages.ApplicationAnswered(4, b"\x02", Refusal.APPLICATION_FAILED, "no", "request_bytes", 7),
    Inspect(3, 50, True, 7),
    Inspected(
        3,
        "b1",
        4,
        5,
        {"sessions": 6},
        {"scheme": "tree"},
        7,
        (LinkReport("client:a", "client", 8, 9, 10),),
        (SubscriptionReport("a", 1, "price > 1", 2, 3, 4, 5),),
        (NAME,),
    ),
    ListNames(3, "risk", 7),
    NamesListed(3, "b1", (NAME,), 9, True, "no log"),
    RemoveName(3, "risk", True),
    NameRemoved(3, True, "a", 5, "no"),
    TellHistory(3),
    HistoryTold(3, "b1", (HistoryEntry(1_700_000_000, 1_001, "b8 stands in for b3"),), "no"),
    MoveLeadership(3, "r2"),
    LeadershipMoved(3, "r2", "no"),
    Change(7, "replace", {"id": "b4", "replaces": "b2"}),
    ChangeBegun(7, "b2 is on its way out"),
    log.OpenCursor(1, "risk", "price > 1", 5, True, 100, 2, 7, 6),
    log.CursorOpened(1, 2, 3, 4),
    log.CursorRefused(1, Refusal.POSITION_GONE, "gone", 2, "a name", 9),
    log.CloseCursor(1),
    log.CursorClosed(1),
    log.CursorEnded(1, Refusal.SUPERSEDED, "another", 9),
    log.CursorEvents(1, 2, 9, [3, 4], encode_batch([encode_event(EVENT), encode_event(EVENT)]), [1, 2], [5]),
    log.CursorProgress(1, 9, 8, True, 2, 3),
    log.Acknowledge(1, 9),
    log.Acknowledged(1, 9),
    log.ForgetName(1, "risk"),
    log.NameForgotten(1, True),
    log.AskLog(1, 2, 3),
    log.LogTold(1, "abc", 2, 3, 4),
    log.ReadRange(1, "price > 1", 2, 3, 4, 5),
    log.RangeRead(1, "abc", 9, [3], encode_batch([encode_event(EVENT)]), 4),
    log.LogRefused(1, Refusal.NO_LOG, "none", 2, 3, "a name"),
    log.StageEvents(1, "query", 2, 3, "stage", 4, BATCH),
    log.Staged(1, 2),
    log.CommitStages(1, "query", 2, ("stage", "other")),
    log.StagesCommitted(1, 2, 3, True),
    log.AskEvents(4),
    log.EventsTold(4, [log.LoggedBatch(3, 5, encode_batch([encode_event(EVENT)]))]),
    log.EventsGone(4, 9),
    paxos.Greeting("disk", {"b1": "disk", "b2": "other"}, True, True, {"members": "b1, b2"}, MEMBERSHIP),
    paxos.Canvass(65),
    paxos.CanvassAnswer(65, True),
    paxos.TakeOver(65),
    paxos.Prepare(65, 2),
    paxos.Promise(65, 2, [paxos.Vote(3, 64, VALUE)], 1, 2, 3),
    paxos.Refused(129),
    paxos.Accept(65, 3, [VALUE, VALUE]),
    paxos.Learn(65, [3, 4]),
    paxos.Suggest(65, 3, VALUE),
    paxos.Voted(65, 3, VALUE),
    paxos.FastLearn(65, [3, 4], [b"\x01" * 16, b"\x02" * 16]),
    paxos.Heartbeat(65, 4, 5),
    paxos.HeartbeatSeen(65, 3, 5),
    paxos.AskDecided(4),
    paxos.Decided(4, [VALUE], 7),
    paxos.AskSnapshot(4, 100),
    paxos.SnapshotPart(4, 200, b"\x01" * 32, 100, b"\x02\x03"),
    routing.Introduction("network", "disk-1", "disk-2", 17, 7, "digest", False),
    routing.Routes([("b1.7.1", "topic = 't'")], [("b1.7.2", "")], ["b1.7.3"], ["b1.7.4"], True, False, False, 5),
    routing.Settled(6),
    routing.Forward(9, BATCH),
    routing.AcknowledgeEvents(10),
    routing.NetworkMapTold(NETWORK),
    routing.NetworkMapKnown(7, "digest", True),
    routing.MoveSaid(7, routing.MoveWord.PASSED, 9, ["a = 1"]),
    standin.StandInRequest(7),
    standin.StandInAdvertised(7, [("b1.7.1", "topic = 't'")], True),
    standin.StandInSubscribed(7, [("b1.7.2", "")], ["b1.7.1"]),
    standin.StandInDone(7),
    standin.StandInForward(9, BATCH, [["b1.7.2"], []]),
    standin.StandInSignal("b7", "b1", [standin.Through("client:a", 3, 9)], True),
    standin.StandInLeft(7),
    standin.StandInOwn("b3", [("b3.7.1", "topic = 't'")], ("b3.7.2",), True, True),
    cycle.Complained("b2", "b3", "crash", "unreachable for 5.0 s", 7),
    cycle.Reserve("b3"),
    cycle.Reserved("b3", "kept for b4"),
    cycle.AskConsent(7, "d1", 9, "b3", NetworkMember("b8", "c8", "p8"), StandInProtocol.SYNCH, "d2"),
    cycle.Consented(7, "d2", 9, "hears from b3"),
    cycle.ConsentReturned(7, "d2"),
    cycle.ConsentQuestioned(7, "d2"),
    cycle.WhetherHere(),
    cycle.Here(),
    standin.StandInPreferred(7, ["b1.7.2", "b1.7.3"]),
    Alive(),
    bypass.LinkStates((bypass.LinkState("b1", 7, 8, ("b2", "b3"), True),)),
    bypass.Detour("b1", "b2", 3, 200, b"\x01\x02", True),
]

COMMAND_EXAMPLES: list[commands.Command] = [
    commands.OpenSession("client:a", 2**62, 3, 4),
    commands.EndSession("client:a", 3),
    commands.Subscribe("client:a", 3, 4, "price > 100", Overflow.BLOCK, 77),
    commands.Unsubscribe("client:a", 3, 4),
    commands.EndSubscription("client:a", 3, 4, "overflow"),
    commands.Publish("client:a", 3, 6, 5, BATCH, 2),
    commands.Receive("client:a", 3, (1, 2), (30, 40), (0, 1)),
    commands.DropSubscriptions("client:a", 3),
    commands.Advertise("client:a", 3, 4, "price > 1"),
    commands.Unadvertise("client:a", 3, 4),
    commands.OpenCursor("client:a", 3, 1, "risk", "price > 1", 5, True, 100, 2, 7, 8, 9),
    commands.CloseCursor("client:a", 3, 1),
    commands.AcknowledgeCursor("client:a", 3, 1, 9),
    commands.ForgetName("client:a", 3, 1, "risk"),
    commands.StageEvents("client:a", 3, 1, "query", 2, 3, "stage", 4, BATCH),
    commands.CommitStages("client:a", 3, 1, "query", 2, ("stage",)),
    commands.ExpireStages("", 5),
    commands.KeepLog("", 6, 9),
    commands.LookAtLog("client:a", 3, 4),
    commands.Execute("client:a", 3, 4, 2, b"\x01\x02"),
    commands.Arrive("", "b2", "disk-2", (4, 9), BATCH),
    commands.ExpireEvents("", 5),
    commands.RemoveName("", "operator:o", 3, "risk", True),
]

# As they were when the first journals were written: what came since has its default.
EARLY_COMMANDS: list[commands.Command] = [
    commands.OpenSession("client:a", 2**62, 3),
    *COMMAND_EXAMPLES[1:5],
    commands.Publish("client:a", 3, 6, 5, BATCH),
    commands.Receive("client:a", 3, (1, 2), (30, 40)),
    *COMMAND_EXAMPLES[7:8],
]
RECORD_EXAMPLES = [
    commands.Applied(100, 200, EARLY_COMMANDS, application="a.b:c"),
    commands.CoreState(101, b"\x01\x02"),
    commands.LoggedEvents(7, 8, BATCH),
    paxos.Formed({"b1": "disk"}, True, ("b1",), {}, MEMBERSHIP),
    paxos.Promised(65),
    paxos.AcceptedVotes(65, 3, [VALUE]),
    paxos.AcceptorState(65, [paxos.Vote(3, 65, VALUE)], 2),
    paxos.ReplicaState(4, 9, b"\x01\x02", b"\x03" * 32, MEMBERSHIP, trimmed=3),
    routing.RoutesTold("b2", routing.Routes([("b1.7.1", "")])),
    routing.TableState(
        {"b2": ([("b1.7.1", "")], [("b1.7.2", "a = 1")])},
        ["b2"],
        topics=[routing.TopicAdvertised("b1.7.3", "client:a", "t")],
        answered={"b2": ["a = 1"]},
        near=["b2"],
        stage=STAGE,
    ),
    routing.TopicAdvertised("b1.7.3", "client:a", "t"),
    routing.TopicUnadvertised("b1.7.3"),
    routing.AdvertisementsAnswered("b2", ["a = 1"], ["a > 2"]),
    routing.NeighboursChanged(["b1", "b3"], {"b2": "b3"}, STAGE),
    routing.MapAdopted(NETWORK),
    cycle.CycleState(cycle.Promised(7, "b1", "d2"), [cycle.Happened(9, "b1", 1_001, "b8 stands in for b3")]),
    routing.EventsStored(
        3, 100, {"b2": 7}, {"b2": ("disk-2", 9)}, BATCH, [(0,), (0, 1)], moves=[routing.FeedMoved("b1", "b2", 4, 7, 2)]
    ),
]

# Commands are no registry's: they travel inside `Applied`, told apart by their tags.
COMMANDS = msgspec.msgpack.Decoder(commands.Command)
EVENTS = msgspec.msgpack.Decoder(Event)


def plain(value: Any) -> Any:
    """The value in plain types, with bytes in place of `Raw`, which does not compare."""
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    if isinstance(value, msgspec.Struct):
        return [type(value).__name__, *(plain(getattr(value, name)) for name in value.__struct_fields__)]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def examples_of(examples: list[Any]) -> dict[str, Any]:
    """The examples by the names of their types."""
    return {type(example).__name__: example for example in examples}


def names_of(registry: Registry[Any]) -> list[str]:
    """Of the types of the package, sorted. Whatever tests ran before may have registered schemes of their own."""
    ours = [type_ for type_ in registry.types.values() if type_.__module__.startswith("holdfast.")]
    return sorted(type_.__name__ for type_ in ours)
