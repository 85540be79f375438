"""What the broker's own clients want and advertise, under the ids that the network knows it by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.protocols.core.interests import ADVERTISEMENT, Interest, Interests, Key
from holdfast.protocols.routing.router import LOCAL, Router

if TYPE_CHECKING:
    from holdfast.protocols.routing.settling import Settling


def broker_of(entry: str) -> str:
    """The name of the broker whose client's an entry is, from its id."""
    return entry.rsplit(".", 2)[0]


class LocalInterests:
    """Ids are the broker's name, its life and a running number: unique in the network, and never used again."""

    def __init__(self, name: str, interests: Interests) -> None:
        self._name = name
        self._interests = interests
        self.incarnation = 0
        self._last = 0
        self._entries: dict[Key, str] = {}
        self.owners: dict[str, str] = {}  # entry → the subscription that it stands for, for traces
        self._left: list[str] = []  # clients that left, for who keeps something for them
        self._asked: dict[int, str] = {}  # tickets of what clients have advertised, for who waits for them

    def new_entry(self) -> str:
        self._last += 1
        return f"{self._name}.{self.incarnation}.{self._last}"

    def update(self, router: Router, settling: Settling) -> None:
        """Brings the router up to date with the clients."""
        if not self._interests.have_changed:
            return
        changes, left = self._interests.take()
        self._left += left
        for change in changes:
            if isinstance(change, Interest):
                self._remove(change.key, router)  # a name may have another filter now
                self._add(change, router, settling)
            else:
                self._remove(change, router)

    def take_left(self) -> list[str]:
        left, self._left = self._left, []
        return left

    def take_asked(self) -> dict[int, str]:
        asked, self._asked = self._asked, {}
        return asked

    def _add(self, interest: Interest, router: Router, settling: Settling) -> None:
        entry = self._entries[interest.key] = self.new_entry()
        if interest.key[0] == ADVERTISEMENT:
            router.advertise(LOCAL, entry, interest.filter)
            self._asked[settling.ask(LOCAL)] = interest.key[1]
            return
        if interest.owner:
            self.owners[entry] = interest.owner
        router.subscribe(LOCAL, entry, interest.filter)

    def _remove(self, key: Key, router: Router) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.owners.pop(entry, None)
            if key[0] == ADVERTISEMENT:
                router.unadvertise(LOCAL, entry)
            else:
                router.unsubscribe(LOCAL, entry)
