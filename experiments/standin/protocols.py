"""The nine protocols of D0-A33, what each of them guarantees (D0-C6 to C14), and how an operator asks for one."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.protocols.routing.network_map import REPLACING, StandInMode, StandInProtocol
from holdfast.sim.scenario import Operate

COMPLETE: Final = "complete"
ORDERED: Final = "ordered"


class Case(msgspec.Struct, frozen=True):
    """A line of Table 1."""

    protocol: StandInProtocol
    mode: StandInMode

    def __str__(self) -> str:
        return f"{self.protocol.value}-{self.mode.value}"

    @property
    def is_permanent(self) -> bool:
        return self.mode is StandInMode.FAILOVER

    @property
    def keeps_order_of_stored(self) -> bool:
        """Whether it works where events are stored, in their order."""
        return self.protocol is not StandInProtocol.INCREM and not self.mode.orders

    @property
    def strength(self) -> str:
        """Of the properties that are asked for where the failure is permanent, and where it is transient."""
        return "weak" if self.is_permanent else "strong"

    def checkers(self, faulty: str) -> dict[str, str]:
        """The checkers of the two properties, by property."""
        if self.is_permanent:
            return {COMPLETE: f"weak-complete:{faulty}", ORDERED: f"weak-ordered:{faulty}"}
        return {COMPLETE: "complete", ORDERED: "publisher-order"}

    def operation(self, at_ms: int, faulty: str, stand_in: str) -> Operate:
        """Brokers of the simulator are found under their names."""
        told = {"id": faulty, "by": stand_in, "address": stand_in, "peer_address": stand_in}
        told["protocol"] = self.protocol.value
        told["mode"] = self.mode.value
        return Operate(at_ms=at_ms, action="replace", told=told)


CASES: Final = tuple(Case(protocol, mode) for mode in REPLACING for protocol in StandInProtocol)

_BASIC, _SYNCH, _INCREM = StandInProtocol.BASIC, StandInProtocol.SYNCH, StandInProtocol.INCREM
# Whether the paper says that it is complete, and that it is ordered.
TABLE_1: Final[dict[Case, tuple[bool, bool]]] = {
    Case(_BASIC, StandInMode.FAILOVER): (False, True),  # D0-C6
    Case(_SYNCH, StandInMode.FAILOVER): (True, True),  # D0-C7
    Case(_INCREM, StandInMode.FAILOVER): (True, False),  # D0-C8
    Case(_BASIC, StandInMode.SHARE): (False, False),  # D0-C9
    Case(_SYNCH, StandInMode.SHARE): (True, False),  # D0-C10
    Case(_INCREM, StandInMode.SHARE): (True, False),  # D0-C11
    Case(_BASIC, StandInMode.ORDERED): (False, True),  # D0-C12
    Case(_SYNCH, StandInMode.ORDERED): (True, True),  # D0-C13
    Case(_INCREM, StandInMode.ORDERED): (True, True),  # D0-C14
}


def promised(case: Case) -> tuple[str, ...]:
    """The properties that the paper says it has."""
    return tuple(name for name, has in zip((COMPLETE, ORDERED), TABLE_1[case], strict=True) if has)
