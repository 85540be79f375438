"""Multi-Paxos: 2f+1 replicas that behave as one (D4)."""

from __future__ import annotations

from typing import Final

KIND: Final = "paxos"  # as site files name it, and brokers in their handshake
