"""One broker of a network on the bench; the test says what its neighbours say."""

from __future__ import annotations

from random import Random
from typing import Any

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.kernel.inputs import LinkDown, LinkUp, Received, Started
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.outbox import Append, Disconnect, Effect, Send
from holdfast.kernel.storage import EVENTS, LogBounds
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.links import Links
from holdfast.protocols.routing.messages import Introduction
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.settings import Reliability, RoutingSettings
from holdfast.schemes.catalogue import RECORDS
from holdfast.schemes.tree.parts import make_broker
from holdfast.topology.graph import BrokerGraph
from tests.sessions.bench import Bench

# The tree is that of the first two links: `middle` between the others.
OVERLAY = BrokerGraph(("middle", "left", "right"), (("middle", "left"), ("middle", "right"), ("left", "right")))


class NetworkBench(Bench):
    """The broker in the middle. Neighbours have names, and one link each."""

    def __init__(self, level: str, **settings: Any) -> None:
        self.routing = RoutingSettings("middle", OVERLAY, reliability=Reliability(level), **settings)
        buffers = self.routing.reliability.buffers
        super().__init__(make_broker(BrokerSettings("middle", buffers), Random(1), {}, routing=self.routing))
        self.links: dict[str, int] = {}
        self._last_link = 0
        self.handle(Started(1, "disk", {EVENTS: LogBounds(1, 1)}) if buffers else Started(1))

    def _part(self, kind: type) -> Any:
        return next(part for part in self.node.parts if isinstance(part, kind))

    @property
    def neighbours(self) -> Neighbours:
        part: Neighbours = self._part(Neighbours)
        return part

    @property
    def forwarding(self) -> Forwarding:
        part: Forwarding = self._part(Forwarding)
        return part

    def is_linked(self, name: str) -> bool:
        links: Links = self._part(Links)
        return name in links.acquaintances

    def up(self, name: str, incarnation: int = 1) -> list[Effect]:
        self._last_link += 1
        self.links[name] = self._last_link
        return self.handle(LinkUp(self._last_link, name, incarnation, Role.BROKER, False))

    def down(self, name: str) -> list[Effect]:
        return self.handle(LinkDown(self.links.pop(name), name, "gone"))

    def say(self, name: str, *said: Message) -> list[Effect]:
        """The turn's effects. What is to be written can be written."""
        effects = self.handle(Received(self.links[name], name, list(said)))
        for effect in effects:
            if isinstance(effect, Append):
                RECORDS.encode(effect.record)
        return effects

    def introduction(self, name: str, **fields: Any) -> Introduction:
        feed = f"disk of {name}" if self.routing.reliability.buffers else ""
        digest = self.routing.founding_map.digest
        return Introduction(self.routing.network_id, **{"feed": feed, "map_digest": digest, **fields})

    def meet(self, *names: str) -> None:
        for name in names:
            self.up(name)
            self.say(name, self.introduction(name))

    def closed(self, name: str, *said: Message) -> str:
        """Why the link is closed after something was said, and only that one."""
        gone = [effect for effect in self.say(name, *said) if isinstance(effect, Disconnect)]
        assert [effect.link for effect in gone] == [self.links[name]], "the link that it came by, and no other"
        reason = gone[0].reason
        self.down(name)
        return reason

    def told(self, effects: list[Effect], name: str) -> list[Message]:
        return [effect.message for effect in effects if isinstance(effect, Send) and effect.to == name]
