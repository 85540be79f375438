"""The blocks of docs/performance.md that runs replace."""

from __future__ import annotations

REPLICATION = "benchmarks.replication"


def markers(module: str) -> tuple[str, str]:
    """What stands before and behind the block that a module writes."""
    return f"<!-- begin: python -m {module} --write -->", f"<!-- end: python -m {module} --write -->"


def with_block(document: str, block: str, module: str = REPLICATION) -> str:
    """The document with another block between its markers. ValueError if they are not there, once and in order."""
    begin, end = markers(module)
    if document.count(begin) != 1 or document.count(end) != 1 or document.index(begin) > document.index(end):
        raise ValueError(f"the document has no single pair of markers {begin!r} and {end!r}")
    before, rest = document.split(begin)
    after = rest.split(end)[1]
    return f"{before}{begin}\n{block.strip()}\n{end}{after}"
