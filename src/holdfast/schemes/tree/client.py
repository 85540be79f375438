"""The client of this scheme: that of any broker, at one broker of the network."""

from __future__ import annotations

from typing import Final

from holdfast.broker.client_assembly import make_client
from holdfast.broker.scheme_client import SchemeClient, client_catalogue_of
from holdfast.schemes.tree import KIND

CLIENT: Final = SchemeClient(make_client, client_catalogue_of(KIND))
