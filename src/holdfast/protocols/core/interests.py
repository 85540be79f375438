"""What the clients of one broker want and advertise, as the other brokers of its network have to know it.

The core says what comes and goes; whoever routes takes the changes. It is no part of the core's state: after a restart
everything that is there is a change.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from holdfast.model import Filter

# ("subscription", client, number), ("name", name), ("advertisement", client, number)
Key: TypeAlias = tuple[str, ...]

SUBSCRIPTION: Final = "subscription"
NAME: Final = "name"
ADVERTISEMENT: Final = "advertisement"


class Interest(NamedTuple):
    """Something that is wanted or advertised. `owner` names the subscription in traces: its client, and its number."""

    key: Key
    filter: Filter
    owner: str = ""


class Interests:
    """Changes since the last look, in order: an Interest that came, or the key of one that went."""

    are_told = True  # to other brokers, which may want what is published here

    def __init__(self) -> None:
        self._changes: list[Interest | Key] = []
        self._left: list[str] = []
        self.have_changed = False
        self._advertised: dict[str, dict[Key, None]] = {}  # client → its advertisements

    def subscribed(self, client: str, number: int, filter: Filter) -> None:
        owner = f"{client.partition(':')[2]}/{number}"
        self._add(Interest((SUBSCRIPTION, client, str(number)), filter, owner))

    def unsubscribed(self, client: str, number: int) -> None:
        self._add((SUBSCRIPTION, client, str(number)))

    def named(self, name: str, filter: Filter) -> None:
        """A name is there, or has another filter now."""
        self._add(Interest((NAME, name), filter))

    def unnamed(self, name: str) -> None:
        self._add((NAME, name))

    def advertised(self, client: str, number: int, text: str) -> None:
        key = (ADVERTISEMENT, client, str(number))
        self._advertised.setdefault(client, {})[key] = None
        self._add(Interest(key, Filter(text)))

    def unadvertised(self, client: str, number: int) -> None:
        key = (ADVERTISEMENT, client, str(number))
        if self._advertised.get(client, {}).pop(key, key) is None:
            self._add(key)

    def left(self, client: str) -> None:
        """The client advertises nothing any more. What it wanted is taken back one by one."""
        self._changes += self._advertised.pop(client, {})
        self._left.append(client)
        self.have_changed = True

    def _add(self, change: Interest | Key) -> None:
        self._changes.append(change)
        self.have_changed = True

    def take(self) -> tuple[list[Interest | Key], list[str]]:
        """What has changed, and which clients left."""
        taken = (self._changes, self._left)
        self._changes, self._left, self.have_changed = [], [], False
        return taken


class Untold(Interests):
    """Of a broker on its own: nobody is told, so that nothing is kept."""

    are_told = False

    def subscribed(self, client: str, number: int, filter: Filter) -> None:
        pass

    def unsubscribed(self, client: str, number: int) -> None:
        pass

    def named(self, name: str, filter: Filter) -> None:
        pass

    def unnamed(self, name: str) -> None:
        pass

    def advertised(self, client: str, number: int, text: str) -> None:
        pass

    def unadvertised(self, client: str, number: int) -> None:
        pass

    def left(self, client: str) -> None:
        pass
