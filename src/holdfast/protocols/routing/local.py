"""What the broker's own clients want and advertise, under the ids that the network knows it by."""

from __future__ import annotations

from holdfast.kernel.outbox import Outbox
from holdfast.model import Filter
from holdfast.protocols.core.interests import ADVERTISEMENT, Interest, Interests, Key
from holdfast.protocols.routing.router import LOCAL, Router
from holdfast.protocols.routing.settling import Settling


def broker_of(entry: str) -> str:
    """The name of the broker whose client's an entry is, from its id."""
    return entry.rsplit(".", 2)[0]


class EntryIds:
    """The ids of this broker's entries: its name, its life and a running number. They are unique in the network, and
    never used again."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._incarnation = self._last = 0

    def begin(self, incarnation: int) -> None:
        self._incarnation = incarnation

    def new(self) -> str:
        self._last += 1
        return f"{self._name}.{self._incarnation}.{self._last}"


class LocalInterests:
    """The subscriptions and advertisements of this broker's clients, as entries of the router's tables."""

    def __init__(self, ids: EntryIds, interests: Interests, router: Router, settling: Settling) -> None:
        self._ids = ids
        self._interests = interests
        self._router = router
        self._settling = settling
        self._entries: dict[Key, str] = {}
        self.owners: dict[str, str] = {}  # entry → the subscription that it stands for, for traces
        self.left: list[str] = []  # clients that left, for who keeps something for them
        self._asked: dict[int, str] = {}  # tickets of what clients have advertised, for who waits for them

    def advertise(self, filter: Filter, entry: str = "") -> str:
        """The entry, which is a new one unless it was there before."""
        entry = entry or self._ids.new()
        self._router.advertise(LOCAL, entry, filter)
        return entry

    def unadvertise(self, entry: str) -> None:
        self._router.unadvertise(LOCAL, entry)

    def ask(self) -> int:
        """The ticket that is answered when what is advertised now is known wherever it may be wanted."""
        return self._settling.ask(LOCAL)

    def update(self) -> None:
        """Brings the router up to date with the clients."""
        if not self._interests.have_changed:
            return
        changes, left = self._interests.take()
        self.left += left
        for change in changes:
            if isinstance(change, Interest):
                self._remove(change.key)  # a name may have another filter now
                self._add(change)
            else:
                self._remove(change)

    def take_left(self) -> list[str]:
        left, self.left = self.left, []
        return left

    def take_asked(self) -> dict[int, str]:
        asked, self._asked = self._asked, {}
        return asked

    def _add(self, interest: Interest) -> None:
        if interest.key[0] == ADVERTISEMENT:
            self._entries[interest.key] = self.advertise(interest.filter)
            self._asked[self.ask()] = interest.key[1]
            return
        entry = self._entries[interest.key] = self._ids.new()
        if interest.owner:
            self.owners[entry] = interest.owner
        self._router.subscribe(LOCAL, entry, interest.filter)

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.owners.pop(entry, None)
            if key[0] == ADVERTISEMENT:
                self.unadvertise(entry)
            else:
                self._router.unsubscribe(LOCAL, entry)

    def note_changes(self, node: str, out: Outbox) -> None:
        """What has changed in the tables, for traces."""
        changed = self._router.take_changed()
        if not out.tracing:
            return
        for table, entry, source, filter, present in changed:
            owner = self.owners.get(entry, "")
            out.note(
                "routed",
                node=node,
                table=table,
                entry=entry,
                source=source,
                filter=str(filter),
                owner=owner,
                present=present,
            )
        out.note("table_size", node=node, table="routes", entries=len(self._router.subscriptions))
        out.note("table_size", node=node, table="advertisements", entries=len(self._router.advertisements))
