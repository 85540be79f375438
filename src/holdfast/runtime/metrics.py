"""`/metrics` in the text format of Prometheus, and `/healthz`: a very small HTTP server, for GET and nothing else."""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Mapping, Sequence
from typing import Final, cast

from holdfast.broker.measures import MEASURES, MEASURES_BY_NAME, MEASURES_BY_REASON
from holdfast.runtime.refusals import REASONS
from holdfast.runtime.runner import NodeRunner

REQUEST_BYTES_MAX: Final = 4 * 1024
REQUEST_WITHIN_S: Final = 5.0
CONNECTIONS_MAX: Final = 16
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


def exposition(
    runners: Sequence[NodeRunner], of_scheme: Mapping[str, str], by_name: Mapping[str, str] | None = None
) -> str:
    """All measures of some brokers, and of the process that they share. `of_scheme` and `by_name`: what brokers of
    their scheme measure besides what all do, with its meaning."""
    measured = [(runner.name, runner.measure()) for runner in runners]
    lines = []
    for name, meaning in {**MEASURES, **of_scheme}.items():
        rows = [f'holdfast_{name}{{broker="{broker}"}} {values[name]}' for broker, values in measured if name in values]
        if rows:
            lines += [*_heading(name, meaning), *rows]
    each = [(runner.name, runner.measure_each()) for runner in runners]
    for name, meaning in {**MEASURES_BY_NAME, **(by_name or {})}.items():
        rows = [
            f'holdfast_{name}{{broker="{broker}",name="{_label(label)}"}} {value}'
            for broker, values in each
            for label, value in values.get(name, {}).items()
        ]
        if rows:
            lines += [*_heading(name, meaning), *rows]
    for name, meaning in MEASURES_BY_REASON.items():
        lines += _heading(name, meaning)
        for runner in runners:
            # All of them, also at 0: a counter that appears with its first refusal hides that one.
            for reason in REASONS:
                labels = f'broker="{runner.name}",reason="{reason}"'
                lines.append(f"holdfast_{name}{{{labels}}} {runner.refusals[reason]}")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    for name, meaning, value in (
        ("process_cpu_seconds_total", "processor time of this process", f"{usage.ru_utime + usage.ru_stime:.3f}"),
        ("process_peak_resident_bytes", "the most memory that this process has had", str(peak)),
    ):
        lines += [*_heading(name, meaning), f"holdfast_{name} {value}"]
    return "\n".join(lines) + "\n"


def _label(text: str) -> str:
    """As the format wants what users chose: without it a name could end its line and begin another."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _heading(name: str, meaning: str) -> list[str]:
    kind = "counter" if name.endswith("_total") else "gauge"
    return [f"# HELP holdfast_{name} {meaning}", f"# TYPE holdfast_{name} {kind}"]


class MetricsServer:
    """Listens on one address for all brokers of a process, which are of one scheme."""

    def __init__(
        self, runners: Sequence[NodeRunner], of_scheme: Mapping[str, str], by_name: Mapping[str, str] | None = None
    ) -> None:
        self.runners = runners
        self.of_scheme = of_scheme
        self.by_name = by_name
        self.connections: set[_Exchange] = set()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Exchange(self), host, port)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.close()
            await self._server.wait_closed()

    def answer(self, method: str, path: str) -> tuple[str, str]:
        """Status line and body."""
        if method not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "only GET\n"
        if path == "/metrics":
            return "200 OK", exposition(self.runners, self.of_scheme, self.by_name)
        if path == "/healthz":
            stopped = [runner.name for runner in self.runners if runner.stopped.is_set()]
            if stopped:
                return "503 Service Unavailable", f"stopped: {', '.join(stopped)}\n"
            return "200 OK", "ok\n"
        return "404 Not Found", "there is /metrics and /healthz\n"


class _Exchange(asyncio.Protocol):
    """One connection: one request, one answer."""

    def __init__(self, server: MetricsServer) -> None:
        self._server = server
        self._request = b""
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._server.connections) >= CONNECTIONS_MAX:
            self._transport.abort()
            return
        self._server.connections.add(self)
        self._deadline = asyncio.get_running_loop().call_later(REQUEST_WITHIN_S, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        self._request += data
        head, found, _ = self._request.partition(b"\r\n\r\n")
        if not found and len(self._request) <= REQUEST_BYTES_MAX:
            return
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) == 3 and words[2].startswith("HTTP/1.") and found:
            status, body = self._server.answer(words[0], words[1].partition("?")[0])
        else:
            status, body = "400 Bad Request", "this is no request that is understood here\n"
        payload = body.encode()
        lines = [f"HTTP/1.1 {status}", f"Content-Type: {_TEXT}", f"Content-Length: {len(payload)}", "Connection: close"]
        answer = "\r\n".join([*lines, "", ""]).encode()
        if self._transport is not None:
            self._transport.write(answer if words[0] == "HEAD" else answer + payload)
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
