"""How long a client waits for a broker that says nothing, before it turns to another one.

With one address there is no use in hurrying. With several, a broker that stopped without closing its links (its process
stands still, or the way to it is cut) is left soon; if that was wrong, the way is merely long, and the next time the
client waits longer.
"""

from __future__ import annotations

from holdfast.protocols.sessions.conversation import ClientSettings

ROUND_TRIPS = 4  # a broker may be silent for so many


class Patience:
    """Depends on whether there is another broker to turn to."""

    def __init__(self, settings: ClientSettings) -> None:
        self.has_choice = False
        self._settings = settings
        self._silent_after = settings.silent_after_with_choice
        self._opening_max = settings.opening_max_with_choice
        self._pinged_at = 0
        self._is_guess = False  # how long to wait, since the last broker was silent

    @property
    def ping_every(self) -> int:
        return self._settings.ping_every_with_choice if self.has_choice else self._settings.ping_every

    @property
    def silent_after(self) -> int:
        return self._silent_after if self.has_choice else self._settings.silent_after

    @property
    def opening_max(self) -> int:
        return self._opening_max if self.has_choice else self._settings.opening_max

    def choose_among(self, several: bool) -> None:
        self.has_choice = several

    def needs_ping(self, heard_at: int, now: int) -> bool:
        """With a choice pings are frequent, so that they are saved where other traffic shows as much. It does not show
        how long the way is, which is to be found out after a silence, or every silence would double the patience."""
        return not self.has_choice or self._is_guess or now - heard_at >= self.ping_every // 2

    def pinged(self, now: int) -> None:
        self._pinged_at = self._pinged_at or now

    def answered(self, now: int) -> None:
        if self._pinged_at:
            needed = max(ROUND_TRIPS * (now - self._pinged_at), self._settings.silent_after_with_choice)
            self._silent_after = min(needed, self._settings.silent_after)
            self._pinged_at, self._is_guess = 0, False

    def was_silent(self) -> None:
        self._pinged_at, self._is_guess = 0, True
        self._silent_after = min(2 * self._silent_after, self._settings.silent_after)

    def was_not_opened(self) -> None:
        self._opening_max = min(2 * self._opening_max, self._settings.opening_max)

    def opened(self) -> None:
        self._pinged_at = 0
        self._opening_max = self._settings.opening_max_with_choice
