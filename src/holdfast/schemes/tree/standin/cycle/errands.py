"""What a broker can't do by itself, since it has no processes, no files and no sessions elsewhere: errands for the
program beside it.

The program asks for the next errand (`TakeErrand`), which is answered when there is one, runs it, and says what came of
it (`EndErrand`). Several may be under way. An errand that is not ended is not given again: the broker goes on without,
when its patience is over, so that each has to be one that may be run twice.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from holdfast.protocols.routing.network_map import NetworkMap, NetworkMember


class Provide(msgspec.Struct, frozen=True, gc=False):
    """Get a broker that could stand in for `faulty`, besides the spares that run and that the broker finds by itself.
    `taken`: names that are not free, since they are or were members, or are on their way."""

    faulty: str
    taken: tuple[str, ...]


class Release(msgspec.Struct, frozen=True, gc=False):
    """A broker that was provided is not needed any more, and is no member: its process may be ended, or it is given
    back. Also said of spares that nobody had to provide, of which the program knows nothing."""

    name: str


class Propose(msgspec.Struct, frozen=True, gc=False):
    """Ask the directory's group to let `after` follow `before`."""

    before: NetworkMap
    after: NetworkMap


class Lend(msgspec.Struct, frozen=True, gc=False):
    """Another site wishes to borrow one of this site's spares. `taken`: those that are not free, since they are or were
    members here, or are on their way. Equal tickets are one request; `wish` is for the program."""

    borrower: str
    ticket: str
    wish: str
    taken: tuple[str, ...] = ()


class TakeBack(msgspec.Struct, frozen=True, gc=False):
    """Another site has no use any more for the broker that was lent to it under this name."""

    borrower: str
    name: str


Errand: TypeAlias = Provide | Release | Propose | Lend | TakeBack


class Provided(msgspec.Struct, frozen=True, gc=False):
    """A broker that runs, or is being started; `note` says how it was got, for people."""

    member: NetworkMember
    note: str = ""


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """The directory has this map: the one that was proposed; or one that came before it, which has to be taken up."""

    map: NetworkMap


class Failed(msgspec.Struct, frozen=True, gc=False):
    """Nothing came of it, and why, for operators. Of `Propose` it may have been accepted all the same."""

    problem: str


class Released(msgspec.Struct, frozen=True, gc=False):
    pass


class Lent(msgspec.Struct, frozen=True, gc=False):
    """A broker that runs as a spare of the borrower's network, until so many seconds after 1970."""

    member: NetworkMember
    until_s: int


Outcome: TypeAlias = Provided | Accepted | Failed | Released | Lent


# ----------------------------------------------------------------------------------- between the program and its broker
class TakeErrand(msgspec.Struct, frozen=True, gc=False):
    """A request: completes with a `Given`, when there is one."""


class Given(msgspec.Struct, frozen=True, gc=False):
    number: int
    errand: Errand


class EndErrand(msgspec.Struct, frozen=True, gc=False):
    """A request: what came of an errand. Completes at once, with None."""

    number: int
    outcome: Outcome
