"""One named subscription at its client: how far it is, and what its application has still to take."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Sequence

from holdfast.kernel.node import require
from holdfast.protocols.cursors import requests
from holdfast.protocols.cursors.messages import CursorOpened, CursorProgress, OpenCursor


class CursorPhase(enum.Enum):
    OPENING = "opening"
    LIVE = "live"
    CLOSING = "closing"  # nothing is handed over any more; the broker may not know yet


class FollowedCursor:
    """Compared by identity."""

    __slots__ = (
        "_positions", "acknowledged", "asked", "command", "consumed", "enders", "expired", "gap", "generation",
        "log_id", "maker", "member_since", "number", "phase", "received", "reported", "unreported", "waiters", "wanted",
    )  # fmt: skip

    def __init__(self, number: int, maker: int, command: requests.MakeCursor) -> None:
        self.number = number
        self.command = command
        self.phase = CursorPhase.OPENING
        self.maker: int | None = maker
        self.enders: list[int] = []
        self.generation = 0
        self.log_id = ""  # of the log that its positions are of
        self.member_since = 0  # that log's broker, of its network
        self.received = 0  # everything up to this position has arrived
        self.consumed = 0
        self.expired = 0  # events that were not handed over, here or already by the broker
        self.acknowledged = 0  # as the broker says
        self.wanted = 0  # to be acknowledged
        self.waiters: list[tuple[int, int]] = []  # (position, request)
        self.gap = False
        self.asked = False  # the broker does not seem to know how far we are
        self.unreported = 0  # events consumed since the last report
        self.reported = 0
        self._positions: deque[int] = deque()  # handed over and not consumed

    def take_maker(self) -> int | None:
        """The request that waits for it, which is answered now."""
        maker, self.maker = self.maker, None
        return maker

    def end(self) -> list[int]:
        """Nothing is handed over any more. The requests that wait for an acknowledgement."""
        self.phase = CursorPhase.CLOSING
        waiters, self.waiters = self.waiters, []
        return [request for _, request in waiters]

    def reopen(self) -> None:
        """The broker may have given it up with an earlier session."""
        self.phase = CursorPhase.OPENING

    def want(self, position: int, request: int) -> None:
        """The application is done with all up to the position; `request` waits for the broker's word, if not 0."""
        self.wanted = max(self.wanted, position)
        if request:
            self.waiters.append((position, request))

    def acknowledge(self, position: int) -> None:
        self.acknowledged = position

    def take_answered(self) -> list[int]:
        """The requests that waited for what is acknowledged now."""
        answered = [request for position, request in self.waiters if position <= self.acknowledged]
        self.waiters = [waiter for waiter in self.waiters if waiter[0] > self.acknowledged]
        return answered

    def note_gap(self) -> None:
        self.gap = True

    def note_asked(self) -> None:
        self.asked = True

    def expire(self, count: int) -> None:
        self.expired += count

    def report(self) -> None:
        self.reported, self.unreported = self.received, 0
        self.gap = self.asked = False

    def opening(self) -> OpenCursor:
        command = self.command
        # In this life of the client the place is the broker's affair: it is not moved again.
        move = command.move and not self.generation
        return OpenCursor(
            self.number,
            command.name,
            command.filter,
            command.start,
            move,
            command.window,
            self.generation,
            self.received,
            len(self._positions),
        )

    def progress(self) -> CursorProgress:
        unconsumed = len(self._positions)
        return CursorProgress(self.number, self.received, self.consumed, self.gap, self.expired, unconsumed)

    def came_back(self, member_since: int) -> bool:
        """The log is here again. Whether its broker was not in the network for a while since it was read before: what
        was published there meanwhile is not in it."""
        was_apart = member_since > self.member_since
        self.member_since = member_since
        return was_apart

    def opened(self, message: CursorOpened, log_id: str, member_since: int) -> None:
        if not self.generation:
            self.log_id, self.member_since = log_id, member_since
            self.received = self.consumed = message.after
        self.generation = message.generation
        self.acknowledged = max(self.acknowledged, message.acknowledged)
        self.phase = CursorPhase.LIVE

    def hand_over(self, positions: Sequence[int], through: int) -> None:
        self.received, self.gap = through, False
        self._positions.extend(positions)
        if not self._positions:
            self.consumed = through

    def consume(self, count: int) -> None:
        self.unreported += count
        for _ in range(min(count, len(self._positions))):
            self.consumed = self._positions.popleft()
        if not self._positions:
            self.consumed = self.received

    @property
    def urgent(self) -> bool:
        quarter = max(1, self.command.window // 4)
        return self.gap or self.asked or self.unreported >= quarter or self.received - self.reported >= quarter

    def check_invariants(self) -> None:
        require(self.consumed <= self.received, "what is consumed was received", name=self.command.name)
