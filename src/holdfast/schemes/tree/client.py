"""The client of this scheme: that of any broker, at one broker of the network."""

from __future__ import annotations

from holdfast.broker.client_assembly import make_client

__all__ = ["make_client"]
