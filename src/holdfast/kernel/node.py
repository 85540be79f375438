"""What a node is, and how one of ours stops when it finds itself broken.

A node is a deterministic machine: its state and what it asks for are a function of its configuration, its random
generator, the durable streams that it was made from, and the inputs so far. It reads no clock, no socket and no file.
A restart is construction: from the configuration, a generator and what the disk kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol

if TYPE_CHECKING:
    from holdfast.kernel.inputs import Input
    from holdfast.kernel.outbox import Outbox


class InvariantBroken(AssertionError):  # noqa: N818 - a state, not an error of the caller
    """A node found a state that it believed impossible. It must stop: what it would say next can't be trusted."""

    def __init__(self, claim: str, fields: dict[str, object]) -> None:
        super().__init__(claim, fields)
        self.claim = claim
        self.fields = fields

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{self.claim} ({shown})" if shown else self.claim


def require(holds: object, claim: str, **fields: object) -> None:
    """Stops the node unless `holds`. Not an `assert`: it stays when Python optimises."""
    if not holds:
        broken(claim, **fields)


def broken(claim: str, **fields: object) -> NoReturn:
    raise InvariantBroken(claim, fields)


class Node(Protocol):
    """Anything that a driver can run."""

    def handle(self, inputs: list[Input], out: Outbox) -> None:
        """Takes in everything that happened and says through `out` what is to be done about it.

        How a driver cuts the stream of inputs into lists never changes the sequence of messages to any destination.
        """
        ...

    def check_invariants(self) -> None:
        """Raises `InvariantBroken` if the state is one that should be impossible. Slow; drivers call it in tests."""
        ...
