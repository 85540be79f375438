"""What a publisher says that it will publish, as its application sees it."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import Any

from holdfast.client import refusals
from holdfast.client.connection import Connection
from holdfast.protocols.sessions import requests


class Advertisement:
    """Made by `bus.advertise`: await it, or use it with `async with`, which ends it."""

    def __init__(self, connection: Connection, text: str) -> None:
        self.filter = text
        self._connection = connection
        self._number = 0

    def __await__(self) -> Generator[Any, None, Advertisement]:
        return self._make().__await__()

    async def __aenter__(self) -> Advertisement:
        return await self._make()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _make(self) -> Advertisement:
        if not self._number:
            result = await self._connection.ask(requests.MakeAdvertisement(self.filter))
            if not isinstance(result, requests.AdvertisementMade):
                raise refusals.of_filter(result, self.filter)
            self._number = result.advertisement
        return self

    async def close(self) -> None:
        """Takes it back. A publisher with none left may publish anything."""
        number, self._number = self._number, 0
        if number:
            await self._connection.tell(requests.EndAdvertisement(number))
