"""Where brokers come from that could stand in (D0-A9, D0-B2): one interface, and those that are asked one after the
other.

- *Spares that run already* are found and reserved by the node itself, before anything here is asked: they are members
  of nothing, answer, and cost nobody anything. There is nothing to do for them here, neither to provide nor to release.
- *Spares that do not run* are started on this machine: `started`.
- *Brokers of other sites* are borrowed: `borrowing`; what they are lent by is `lending`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from holdfast.schemes.tree.standin.cycle.errands import Failed, Provided, Released


class Provisioner(Protocol):
    async def provide(self, faulty: str, taken: Collection[str]) -> Provided | Failed:
        """Gets a broker that could stand in for one, under a name that is not taken. Asked again for the same broker,
        it may give the same one, as long as that is not taken."""
        ...

    async def release(self, name: str) -> Released | Failed | None:
        """Gives a broker back, or ends it; it is no member any more. None if it did not come from here."""
        ...


class Provisioners:
    """Several, asked in this order."""

    def __init__(self, kinds: Sequence[Provisioner]) -> None:
        self._kinds = tuple(kinds)

    async def provide(self, faulty: str, taken: Collection[str]) -> Provided | Failed:
        problems = []
        for kind in self._kinds:
            found = await kind.provide(faulty, taken)
            if isinstance(found, Provided):
                return found
            problems.append(found.problem)
        none = "no spare that runs is free, and the site file has no [standin.processes] and no [standin.borrow]"
        return Failed("; ".join(problems) or none)

    async def release(self, name: str) -> Released | Failed | None:
        for kind in self._kinds:
            done = await kind.release(name)
            if done is not None:
                return done
        return Released()  # a spare that ran already goes on running
