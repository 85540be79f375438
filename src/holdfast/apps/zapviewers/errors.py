"""What goes wrong with logs of set-top boxes, and with questions about viewers."""

from __future__ import annotations

from holdfast.errors import HoldfastError


class ZapError(HoldfastError, ValueError):
    """A synthetic log of set-top boxes that can't be made as asked, or a question about viewers without an answer."""
