"""What applications publish."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from holdfast.kernel.time import MILLISECOND
from holdfast.model.values import Value, check_mapping
from holdfast.protocols.sessions import requests

# What publish_many takes: attributes, or attributes with a topic.
Publication: TypeAlias = Mapping[str, Value] | tuple[Mapping[str, Value], str]


def new_event(attributes: Mapping[str, Value], topic: str, payload: bytes, lifetime: float | None) -> requests.NewEvent:
    if type(attributes) is not dict:
        check_mapping(attributes)
    nanoseconds = 0
    if lifetime is not None:
        if not 0 < lifetime < math.inf:
            raise ValueError(f"lifetime is {lifetime} s, and has to be positive and finite; leave it out for ever")
        # To the nearest one: 1.001 s is a little less than 1,001 ms as a float.
        nanoseconds = max(1, round(lifetime * 1_000) * MILLISECOND)
    return requests.NewEvent(attributes, topic, payload, nanoseconds)


def from_publication(event: Publication) -> requests.NewEvent:
    if isinstance(event, tuple):
        return requests.NewEvent(event[0], event[1])
    if type(event) is not dict:
        check_mapping(event)
    return requests.NewEvent(event)
