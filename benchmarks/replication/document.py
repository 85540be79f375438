"""The block of docs/performance.md that a run replaces."""

from __future__ import annotations

BEGIN = "<!-- begin: python -m benchmarks.replication --write -->"
END = "<!-- end: python -m benchmarks.replication --write -->"


def with_block(document: str, block: str) -> str:
    """The document with another block between its markers. ValueError if they are not there, once and in order."""
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(BEGIN) > document.index(END):
        raise ValueError(f"the document has no single pair of markers {BEGIN!r} and {END!r}")
    before, rest = document.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{block.strip()}\n{END}{after}"
