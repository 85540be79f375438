"""Notices: what a part of a node has to tell the parts above it.

A part asks its collaborators, which its constructor got, and tells notices to whoever hears them: so neither has to be
made before the other, and who hears what is found by searching for the type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec


class Notice(msgspec.Struct, frozen=True, gc=False):
    """Something has come about in this turn; never about a single event. Parts that list it get it: `on_<notice>`."""


Hearers = Mapping[type[Notice], Sequence[Callable[[Any, Any], None]]]
