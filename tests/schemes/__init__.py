"""Tests that every scheme passes. A third scheme, `flood`, is registered here, as one of another package would be."""

from holdfast.broker.registry import SCHEMES

SCHEMES.add("flood", "tests.schemes.flood")
