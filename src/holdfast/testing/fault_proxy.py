"""A TCP proxy that delays, stalls, cuts and resets, for tests and demos over real sockets.

    async with FaultProxy("127.0.0.1:7411") as proxy:
        async with holdfast.connect(f"holdfast://{proxy.address}") as bus:
            proxy.stall(to_server=True)      # nothing gets through in that direction; the connection stays
            proxy.reset()                    # all connections are reset; new ones are accepted
            proxy.refuse = True              # new ones are not
            proxy.heal()

It delays by holding what it read; order is kept, as TCP keeps it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from types import TracebackType

CHUNK_BYTES = 64 * 1024


class _Gate:
    """Open or shut, in one direction of all connections."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()

    def set(self, is_open: bool) -> None:
        if is_open:
            self._open.set()
        else:
            self._open.clear()

    async def passed(self) -> None:
        await self._open.wait()


class FaultProxy:
    """Stands between clients and one server."""

    def __init__(self, server: str, delay_s: float = 0.0, bytes_per_second: int = 0) -> None:
        host, _, port = server.rpartition(":")
        self._server = (host.strip("[]"), int(port))
        self.delay_s = delay_s
        self.bytes_per_second = bytes_per_second  # 0: no limit; a slow reader, seen from the server
        self.refuse = False
        self.address = ""
        self._to_server, self._to_client = _Gate(), _Gate()
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> FaultProxy:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._listener.sockets[0].getsockname()[:2]
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.close()
        self.reset()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -------------------------------------------------------------------------------------------------------- faults
    def stall(self, *, to_server: bool = False, to_client: bool = False) -> None:
        """Lets nothing through in a direction, or in both; what was sent arrives after `heal`."""
        if to_server:
            self._to_server.set(False)
        if to_client:
            self._to_client.set(False)

    def heal(self) -> None:
        """Everything gets through again, and connections are accepted."""
        self.refuse = False
        self._to_server.set(True)
        self._to_client.set(True)

    def reset(self) -> None:
        """Resets every connection, on both sides, losing what was under way."""
        for writer in list(self._writers):
            raw = writer.get_extra_info("socket")
            if raw is not None:
                # Closing with a linger of no time sends a reset.
                with contextlib.suppress(OSError):
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    # --------------------------------------------------------------------------------------------------- connections
    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuse:
            writer.transport.abort()
            return
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._server)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, server_writer}
        for source, target, gate in (
            (reader, server_writer, self._to_server),
            (server_reader, writer, self._to_client),
        ):
            task = asyncio.create_task(self._pass_on(source, target, gate))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, gate: _Gate) -> None:
        try:
            while data := await source.read(CHUNK_BYTES):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                if self.bytes_per_second:
                    await asyncio.sleep(len(data) / self.bytes_per_second)
                await gate.passed()
                target.write(data)
                await target.drain()
            await gate.passed()  # that the source closed is not seen on the other side of a broken cable either
        except OSError:
            pass
        finally:
            self._writers.discard(target)
            target.close()
