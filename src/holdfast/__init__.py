"""Holdfast: content-based publish/subscribe that keeps its promises while brokers and links fail.

This module is the public interface, and nothing else.
"""

from holdfast.errors import DuplicateId, EventError, FilterError, HoldfastError, UnknownId
from holdfast.matching import Explanation, FilterIndex, Reason
from holdfast.model import DEFAULT_LIMITS, Filter, FilterLimits
from holdfast.model.padres import attributes_from_padres

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_LIMITS",
    "DuplicateId",
    "EventError",
    "Explanation",
    "Filter",
    "FilterError",
    "FilterIndex",
    "FilterLimits",
    "HoldfastError",
    "Reason",
    "UnknownId",
    "attributes_from_padres",
]
