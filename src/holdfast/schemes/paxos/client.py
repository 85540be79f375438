"""The client of this scheme: that of any broker; it knows all replicas, and proposes to all where they take it."""

from __future__ import annotations

from holdfast.broker.client_assembly import make_client

__all__ = ["make_client"]
