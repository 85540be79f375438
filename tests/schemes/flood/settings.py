"""What people may choose of a flooded network, and what one broker of it is told."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec.structs import replace

from holdfast.broker.scheme import Told
from holdfast.kernel.node import broken
from holdfast.kernel.settings import milliseconds
from holdfast.kernel.time import MILLISECOND


class Neighbour(msgspec.Struct, frozen=True):
    address: str
    client_address: str
    is_dialled: bool


class FloodSettings(msgspec.Struct, frozen=True):
    name: str = ""
    near: dict[str, Neighbour] = {}
    dial_every: Annotated[
        int, milliseconds("dial_every_ms", "how long after its link was lost a neighbour is dialled again")
    ] = 250 * MILLISECOND


DEFAULTS: Final = FloodSettings()


def flood_of(told: Told) -> FloodSettings:
    if not isinstance(told.settings, FloodSettings):
        broken("the settings are those of the scheme", settings=type(told.settings).__name__)
    own = told.broker.name
    order = [place.id for place in told.places]
    near = {
        place.id: Neighbour(place.peer_address, place.client_address, order.index(own) < order.index(place.id))
        for place in told.places
        if (own, place.id) in told.links or (place.id, own) in told.links
    }
    return replace(told.settings, name=own, near=near)
