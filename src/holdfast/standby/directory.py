"""Asking the directory: an interface, and the kind that asks a group which hosts it (D0-A10).

The other kind, in which all members of a network agree among themselves, is in the node, which needs nobody beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from holdfast.apps.directory import messages as said
from holdfast.client import Bus
from holdfast.errors import HoldfastError
from holdfast.protocols.routing.flaws import flaw
from holdfast.protocols.routing.network_map import NetworkMap
from holdfast.schemes.tree.standin.cycle.errands import Accepted, Failed

ANSWER_WITHIN_S: Final = 5.0
_MAYBE: Final = "what was proposed may have been accepted all the same, and may be proposed again"

_decode = msgspec.json.Decoder(said.Answer).decode


class Directory(Protocol):
    async def propose(self, before: NetworkMap, after: NetworkMap) -> Accepted | Failed:
        """Lets a map follow another. `Accepted` has what counts, which may be another one that was accepted first.
        Equal proposals may be repeated; of different ones from one map, one is accepted at most."""
        ...

    async def neighbours(self, broker: str) -> said.Neighbours | Failed:
        """Who is joined with a broker."""
        ...

    async def topology(self) -> NetworkMap | Failed:
        """The whole map."""
        ...


class GroupDirectory:
    """Over a client's connection, which is made when it is first needed, and finds the members of the group that
    answer by itself."""

    def __init__(
        self, network: str, addresses: Sequence[str], name: str = "", within_s: float = ANSWER_WITHIN_S
    ) -> None:
        self._network = network
        self._url = f"holdfast://{','.join(addresses)}"
        self._shown = ", ".join(addresses)
        self._name = name
        self._within_s = within_s
        self._bus: Bus | None = None
        self._trying: Bus | None = None  # the last one, also if it never was connected
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        bus, self._bus = self._bus, None
        if bus is not None:
            await bus.close()

    async def propose(self, before: NetworkMap, after: NetworkMap) -> Accepted | Failed:
        request = said.Propose(said.VERSION, self._network, before.number, before.digest, after)
        answer = await self._ask(request)
        match answer:
            case said.Accepted(map=found):
                return Accepted(found)
            case said.Other(map=found) if problem := _not_ours(before, found):
                return Failed(f"the directory at {self._shown} has {problem}")
            case said.Other(map=found):
                return Accepted(found)
            case Failed(problem=problem):
                return Failed(f"{problem}; {_MAYBE}")
            case _:
                return self._odd(answer)

    async def neighbours(self, broker: str) -> said.Neighbours | Failed:
        answer = await self._ask(said.AskForNeighbours(said.VERSION, self._network, broker))
        return answer if isinstance(answer, said.Neighbours | Failed) else self._odd(answer)

    async def topology(self) -> NetworkMap | Failed:
        answer = await self._ask(said.AskForTopology(said.VERSION, self._network))
        if isinstance(answer, said.Topology):
            return answer.map
        return answer if isinstance(answer, Failed) else self._odd(answer)

    def _odd(self, answer: said.Answer) -> Failed:
        if isinstance(answer, said.Refused | said.NotKnown):
            return Failed(f"the directory at {self._shown}: {answer.problem}")
        return Failed(f"the directory at {self._shown} answered something else: {type(answer).__name__}")

    async def _ask(self, request: said.Request) -> said.Answer | Failed:
        try:
            async with asyncio.timeout(self._within_s):
                bus = await self._connected()
                data = await bus.ask(msgspec.json.encode(request))
        except TimeoutError:
            why = f" ({self._trying.reason})" if self._trying is not None and self._trying.reason else ""
            return Failed(f"the directory at {self._shown} did not answer within {self._within_s:g} s{why}")
        except HoldfastError as error:
            if self._bus is not None and not isinstance(error, TimeoutError):
                await self.close()  # whatever ended it, the next question begins anew
            return Failed(f"the directory at {self._shown} can't be asked: {error}")
        try:
            answer: said.Answer = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Failed(f"what is hosted at {self._shown} is no directory: see [standin.directory]")
        return answer

    async def _connected(self) -> Bus:
        async with self._opening:
            if self._bus is None:
                bus = self._trying = Bus(self._url, self._name, timeout_s=self._within_s)
                await bus.open()
                self._bus = bus
            return self._bus


def _not_ours(before: NetworkMap, found: NetworkMap) -> str:
    """Why a map that was answered can't be of this network's history; empty if it can."""
    if wrong := flaw(found):
        return f"a map that is none: {wrong}"
    if found.number <= before.number:
        return f"another map {found.number} than this network: its history is another one; ask an operator"
    if not set(before.names) & {*found.names, *found.former}:
        return "a map of another network under this name: each network needs a name of its own"
    return ""
