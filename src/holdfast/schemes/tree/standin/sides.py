"""What a stand-in's neighbour tells it and hears from it, where the stand-in has a place in the tree, and where it
stands beside the broker whose work it shares."""

from __future__ import annotations

from typing import Protocol

from holdfast.kernel.outbox import Outbox
from holdfast.model import Filter
from holdfast.protocols.routing.messages import Routes, Told
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.router import Router
from holdfast.protocols.routing.words import read
from holdfast.schemes.tree.standin.relief import Relief


class Side(Protocol):
    """Of one stand-in, while it learns."""

    def begin(self, out: Outbox) -> None:
        """From now on it is told of what changes; all else is told in this conversation."""

    def advertised(self) -> dict[str, Filter]:
        """All that it is to be told of advertisements."""
        ...

    def wanted(self) -> dict[str, Filter]:
        """All that it may be told of subscriptions."""
        ...

    def hear_advertised(self, told: list[Told], out: Outbox) -> dict[str, Filter]:
        """It has told advertisements; gives those that are known. What they pull, `take_pulled` gives."""
        ...

    def known(self, told: list[Told]) -> dict[str, Filter]:
        """Of advertisements that it has told, those that are known."""
        ...

    def take_pulled(self, out: Outbox) -> dict[str, Filter]:
        """Subscriptions that advertisements of its own have just pulled."""
        ...

    def hear_subscribed(self, told: list[Told], out: Outbox) -> None: ...


class InPlace:
    """In the tree, where the broker was that it replaces."""

    def __init__(self, neighbours: Neighbours, peer: str) -> None:
        self._neighbours = neighbours
        self._router: Router = neighbours.router
        self._peer = peer

    def begin(self, out: Outbox) -> None:
        self._neighbours.teller.begin(self._peer)
        self._neighbours.teller.take(self._peer, out)  # it is all in the tables, and told from there

    def advertised(self) -> dict[str, Filter]:
        return self._router.advertisement_outlets[self._peer].told()

    def wanted(self) -> dict[str, Filter]:
        return self._router.subscription_outlets[self._peer].told()

    def hear_advertised(self, told: list[Told], out: Outbox) -> dict[str, Filter]:
        self._neighbours.heard.hear(self._peer, Routes(advertisements=told), out)
        return self.known(told)

    def known(self, told: list[Told]) -> dict[str, Filter]:
        theirs = self._router.advertisements.by_source[self._peer]
        return {entry: theirs[entry] for entry, _ in told if entry in theirs}

    def take_pulled(self, out: Outbox) -> dict[str, Filter]:
        return dict(self._neighbours.teller.take(self._peer, out)[1].told)

    def hear_subscribed(self, told: list[Told], out: Outbox) -> None:
        self._neighbours.heard.hear(self._peer, Routes(subscriptions=told), out)


class Apart:
    """Beside the broker whose work it shares."""

    def __init__(self, roster: Roster, relief: Relief) -> None:
        self._roster = roster
        self._relief = relief

    def begin(self, out: Outbox) -> None:
        self._relief.sync()

    def advertised(self) -> dict[str, Filter]:
        return self._relief.advertisements.told()

    def wanted(self) -> dict[str, Filter]:
        return self._relief.subscriptions.told()

    def hear_advertised(self, told: list[Told], out: Outbox) -> dict[str, Filter]:
        routes = Routes(advertisements=told)
        telling = read(self._roster, self._relief.side, routes)
        self._relief.hear(routes, telling)
        return telling.advertisements

    def known(self, told: list[Told]) -> dict[str, Filter]:
        return dict(read(self._roster, self._relief.side, Routes(advertisements=told)).advertisements)

    def take_pulled(self, out: Outbox) -> dict[str, Filter]:
        return dict(self._relief.subscriptions.take().told)

    def hear_subscribed(self, told: list[Told], out: Outbox) -> None:
        routes = Routes(subscriptions=told)
        self._relief.hear(routes, read(self._roster, self._relief.side, routes))
