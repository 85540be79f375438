"""A real browser for tests: Chromium without a window, driven by its own protocol over two pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

NAMES = ("chromium", "chromium-browser", "google-chrome")
ANSWER_BYTES_MAX = 64 * 1024 * 1024


def find_chromium() -> str | None:
    """Where Chromium is; None if it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Tab:
    """One page in the browser, and what the browser complained about or asked the network for."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._commands, self._answers = commands, answers
        self._count = 0
        self._session: str | None = None
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        conditions = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        self.call("Network.emulateNetworkConditions", offline=True, **conditions)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command and its answer."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, page: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Opens a page from the disk, and waits until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._loaded = False
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not self._loaded:
            self._next()

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def screenshot(self, output: Path) -> bytes:
        """A picture of the whole page, also below what a window would show."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        output.write_bytes(base64.b64decode(picture))
        return output.read_bytes()

    def _next(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._read())
        parameters = message.get("params", {})
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Log.entryAdded":
                self.complaints.append(str(parameters["entry"]["text"]))
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(parameters))
            case "Network.requestWillBeSent":
                self.requests.append(str(parameters["request"]["url"]))
        return message

    def _read(self) -> bytes:
        piece = bytearray()
        while (sign := self._answers.read(1)) != b"\0":
            assert sign, "Chromium has ended"
            piece += sign
            assert len(piece) < ANSWER_BYTES_MAX
        return bytes(piece)


@contextmanager
def open_tab(chromium: str, folder: Path) -> Iterator[Tab]:
    """A browser with its profile in a folder, for as long as it is used."""
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
    options.append(f"--user-data-dir={folder / 'profile'}")
    # The protocol speaks over descriptors 3 and 4.
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$@" 3<&{read_commands} 4>&{write_answers}', "bash", chromium, *options],
        pass_fds=(read_commands, write_answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_answers)
    try:
        with open(write_commands, "wb") as commands, open(read_answers, "rb") as answers:
            tab = Tab(commands, answers)
            yield tab
            commands.write(b'{"id":0,"method":"Browser.close"}\0')
            commands.flush()
            process.wait(30)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
