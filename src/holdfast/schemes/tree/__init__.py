"""The scheme `tree`: one broker, or many that are joined by links and route events along a tree of them (D0, D1)."""

from __future__ import annotations

from typing import Final

KIND: Final = "tree"  # as site files name it, and brokers in their handshake
