"""Where a bus takes links from others, if its scheme's clients take any."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from holdfast.errors import ListenFailed
from holdfast.runtime.listening import listening
from holdfast.wire.addresses import is_loopback, split_address

if TYPE_CHECKING:
    from holdfast.broker.scheme_client import SchemeClient
    from holdfast.runtime.runner import NodeRunner


class Listening:
    """The address is taken before the bus connects, since brokers may want to hear of it; links are taken afterwards,
    when the scheme is known. `address` has the port that was found then."""

    def __init__(self, name: str, wanted: str) -> None:
        self.address = ""
        self._owner = f"client {name!r}"
        self._wanted = wanted
        if wanted and not is_loopback(self._split()[0]):
            self._fail("it would listen without TLS, for anyone to read and to write; take a loopback address")

    def _split(self) -> tuple[str, int]:
        try:
            host, port = split_address(self._wanted)
        except ValueError:
            host, port = "", 0
        if not host or not 0 <= port < 65_536:
            self._fail("this is no address: write host:port, with port 0 for any that is free")
        return host, port

    def _fail(self, problem: str) -> NoReturn:
        raise ListenFailed(self._owner, self._wanted, problem)

    async def take(self, runner: NodeRunner) -> None:
        """From now on nobody else gets the address, but for one that has taken it just now, too: of those, the first to
        open it has it."""
        if self._wanted:
            host, port = self._split()
            with listening(self._owner, self._wanted):
                port = await runner.listen((), host, port, at_once=False)
            self.address = f"{self._wanted.rpartition(':')[0]}:{port}"

    async def open(self, runner: NodeRunner, client: SchemeClient) -> None:
        """From now on others may come; ListenFailed if clients of the scheme take no links."""
        if self._wanted and not client.listens:
            self._fail(f"clients of the scheme {client.catalogue.scheme!r} take no links")
        if self._wanted:
            roles = sorted(client.listens, key=lambda role: role.value)
            with listening(self._owner, self._wanted):
                await runner.accept(tuple(roles), client.catalogue)
