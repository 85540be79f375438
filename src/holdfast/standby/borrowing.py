"""Brokers that other sites lend (D0-A9): asked of a broker there, as an operator, and given back likewise.

A request to lend is answered at once with whether it has begun; what came of it stands among that broker's facts, under
the ticket of the request. Nothing has to be remembered here: whoever sees to a stand-in later asks all lenders.
"""

from __future__ import annotations

import asyncio
import secrets
import time
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from holdfast.broker.site import Site
from holdfast.client.operator import BrokerDesk
from holdfast.protocols.operating.operator import Unreachable
from holdfast.schemes.tree.standin.cycle.errands import Failed, Lent, Provided, Released
from holdfast.schemes.tree.standin.cycle.lending import GIVE_BACK, LEND, LENDING, outcome_of
from holdfast.standby.lent_site import Wish, pack, told

LEND_WITHIN_S: Final = 25.0  # whoever needs one tries again, then, and finds what was begun
ASK_WITHIN_S: Final = 3.0
_LOOK_EVERY_S: Final = 0.2


class GoesOn(NamedTuple):
    """A lender may have lent one, and has not said so yet."""

    problem: str


class Borrowing:
    """For a site, from brokers at these addresses, one after the other."""

    def __init__(self, site: Site, where: str, lenders: Sequence[str], within_s: float = LEND_WITHIN_S) -> None:
        self._site = site
        self._where = where
        self._lenders = tuple(lenders)
        self._within_s = within_s
        self._tickets: dict[str, str] = {}  # for whom → that of a request of which nothing has come yet, or this broker

    async def provide(self, faulty: str, taken: Collection[str]) -> Provided | Failed:
        if self._where in ("", "-"):
            return Failed("nothing can be borrowed: this broker was not given a site file by its name")
        try:
            document = tomllib.loads(await asyncio.to_thread(Path(self._where).read_text, "utf-8"))
        except (OSError, ValueError) as error:
            return Failed(f"nothing can be borrowed: {self._where}: {error}")
        site = {**told(document), "name": self._site.name}
        wish = pack(Wish(site, tuple(sorted(taken)), faulty))
        if wish is None:
            return Failed(f"nothing can be borrowed: {self._where} is too large for a request")
        # One for all: two brokers of one lender know of each other's. And the same one again: what was begun is found.
        ticket = self._tickets.setdefault(faulty, secrets.token_hex(8))
        problems, goes_on = list[str](), False
        for address in self._lenders:
            found = await self._borrow(address, {"to": self._site.name, "ticket": ticket, "wish": wish})
            if isinstance(found, Lent) and found.member.name in taken:
                found = f"{address} has lent {found.member.name}, which is not free"
            if isinstance(found, Lent):
                until = time.strftime("%H:%M:%S", time.localtime(found.until_s))
                return Provided(found.member, f"borrowed from {address} until {until}")
            goes_on = goes_on or isinstance(found, GoesOn)
            problems.append(found if isinstance(found, str) else found.problem)
        if not goes_on:
            self._tickets.pop(faulty, None)
        return Failed(f"nobody lends a broker: {'; '.join(problems)}")

    async def _borrow(self, address: str, asked: dict[str, str]) -> Lent | GoesOn | str:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._within_s
        async with BrokerDesk(address, ASK_WITHIN_S) as desk:
            begun = await desk.change(LEND, asked)
            if isinstance(begun, Unreachable):
                return f"{address} does not answer: {begun.reason}"
            if begun.problem:
                return f"{address}: {begun.problem}"
            silence = ""
            while clock() < deadline:
                answer = await desk.inspect(0)
                if isinstance(answer, Unreachable):
                    silence = f", and does not answer now: {answer.reason}"
                else:
                    silence = ""
                    found = outcome_of(answer.facts.get(LENDING, ""), asked["ticket"])
                    if found is not None:
                        return found if isinstance(found, Lent) else found.problem
                await asyncio.sleep(_LOOK_EVERY_S)
        problem = f"{address} began to lend one, and has not said within {self._within_s:g} s what came of it{silence}"
        return GoesOn(problem)

    async def release(self, name: str) -> Released | Failed | None:
        """To whoever lent it. A lender that is silent takes it back when its time is over."""
        if name in {entry.id for entry in self._site.brokers}:
            return None
        self._tickets = {}  # what comes next is another request
        asked = {"to": self._site.name, "id": name}
        problems = []
        for address in self._lenders:  # each takes back what it has lent, and nothing else
            async with BrokerDesk(address, ASK_WITHIN_S) as desk:
                begun = await desk.change(GIVE_BACK, asked)
            if isinstance(begun, Unreachable):
                problems.append(f"{address} does not answer: {begun.reason}")
            elif begun.problem:
                problems.append(f"{address}: {begun.problem}")
        if len(problems) < len(self._lenders):
            return Released()
        return Failed(f"{name} is not given back before its time is over: {'; '.join(problems)}")
