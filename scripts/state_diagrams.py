"""Draws the tables of states in docs/groups.md from the code: python scripts/state_diagrams.py [--check]."""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from pathlib import Path

from holdfast.protocols.sessions import conversation
from holdfast.schemes.paxos import formation, proposer

TARGET = Path(__file__).parent.parent / "docs" / "groups.md"
BEGIN, END = "<!-- diagrams -->\n", "<!-- end of diagrams -->\n"
Table = Mapping[enum.Enum, frozenset[enum.Enum]]


def diagram(title: str, where: str, table: Table) -> str:
    """One machine: its states, and from where to where it goes."""
    states = list(table)
    lines = [
        f"**{title}** (`{where}`; a change that is not drawn here stops the node):\n",
        "```mermaid",
        "stateDiagram-v2",
    ]
    lines.append(f"    [*] --> {states[0].value}")
    for state in states:
        lines += [f"    {state.value} --> {other.value}" for other in states if other in table[state]]
        if not table[state]:
            lines.append(f"    {state.value} --> [*]")
    return "\n".join([*lines, "```\n"])


def diagrams() -> str:
    return "\n".join(
        [
            diagram("The proposer of a replica", "schemes/paxos/proposer.py", proposer.TRANSITIONS),
            diagram("Whether a replica's disk counts", "schemes/paxos/formation.py", formation.TRANSITIONS),
            diagram("A client", "protocols/sessions/conversation.py", conversation.TRANSITIONS),
        ]
    )


def document(text: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{diagrams()}\n{END}{after}"


def main() -> int:
    text = TARGET.read_text()
    wanted = document(text)
    if "--check" in sys.argv[1:]:
        return int(text != wanted)
    TARGET.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
