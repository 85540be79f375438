"""Operators beside a scenario's brokers: each asks for one change, again and again until it has begun or is refused.

An operator does what people do. It asks any broker how it is, follows `keeper` and `keeper_address` of its facts, if it
tells some, to whom changes are asked of, and asks there. While nobody answers, or another change is under way, it tries
again. What is refused twice while nothing is under way, by a broker that is the one to ask, is refused for good. If
the change takes a broker out, its operator may end that broker's process, some time after a member has said that it is
none any more.

What comes of it is in the trace, as `control` rows: `change-asked`, and then one of `change-begun`, `change-refused`
and `change-given-up`. `uncertain`: an answer was lost before, so that the change may have begun already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from holdfast.broker.client_assembly import make_operator
from holdfast.kernel.links import Role
from holdfast.kernel.time import MILLISECOND
from holdfast.protocols.operating.messages import ChangeBegun, Inspected
from holdfast.protocols.operating.operator import AskBroker, AskToChange
from holdfast.sim.machine import Machine, Program
from holdfast.sim.scenario import Operate
from holdfast.trace import schema

if TYPE_CHECKING:
    from holdfast.sim.simulation import Simulation

ANSWERED_WITHIN: Final = 1_500 * MILLISECOND
PAUSE: Final = 300 * MILLISECOND  # before it asks again
FOLLOWED_MAX: Final = 2  # from broker to broker, before the next one in turn is tried
REFUSALS: Final = 2
_LOOK, _ASK, _LOOK_AGAIN = 1, 2, 3  # requests; each attempt has a node of its own


class ScenarioOperator(Program):
    """What stands beside an operator's node. Each attempt has a new node, with a link to one broker."""

    def __init__(
        self,
        simulation: Simulation,
        name: str,
        operation: Operate,
        brokers: Sequence[str],
        until: int,
        end_broker: Callable[[str], None],
    ) -> None:
        self._simulation = simulation
        self._operation = operation
        self._brokers = tuple(brokers)
        self._until = until
        self._end_broker = end_broker
        self._turn = 0  # whom it tries next
        self._address = ""
        self._followed = 0
        self._facts: Mapping[str, str] = {}  # of the broker that it talks to, before it asked
        self._problem = "nobody answered"
        self._refusals = 0
        self._is_asking = False
        self._uncertain = False  # it asked once, and heard nothing
        self._watching = False  # for a broker to be let go
        self._machine = simulation.add_machine(
            name, Role.OPERATOR, lambda rng, streams: make_operator(self._address), program=self
        )

    def begin(self, _: object) -> None:
        self._note("change-asked", action=self._operation.action, told=self._operation.told)
        self._try("")

    # ----------------------------------------------------------------------------------------------------- attempts
    def _try(self, address: str) -> None:
        """Asks how the broker is that has an address, or the next one in turn."""
        if self._simulation.now > self._until and not self._watching:
            self._note("change-given-up", problem=self._problem)
            return
        if not address:
            address = self._brokers[self._turn % len(self._brokers)]
            self._turn += 1
            self._followed = 0
        self._address = address
        self._machine.start()
        self._machine.request(_LOOK, AskBroker(links=0))
        self._simulation.after(ANSWERED_WITHIN, self._lose_patience, self._machine.life)

    def _lose_patience(self, life: int) -> None:
        if self._machine.life == life:
            self._try_again()

    def _try_again(self, address: str = "", pause: int = PAUSE) -> None:
        """Not within a turn of the node, which ends with this."""
        self._machine.stop(power_cut=False)
        self._uncertain = self._uncertain or self._is_asking
        self._is_asking = False
        self._simulation.after(pause, self._try, address)

    def on_complete(self, machine: Machine, request: int, result: Any) -> None:
        self._simulation.after(0, self._go_on, (machine.life, request, result))

    def _go_on(self, arguments: tuple[int, int, Any]) -> None:
        life, request, result = arguments
        if self._machine.life != life:
            return
        if isinstance(result, ChangeBegun):
            self._answered(result)
        elif not isinstance(result, Inspected):
            self._try_again()
        elif self._watching:
            self._watch(result)
        elif request == _LOOK:
            self._looked(result)
        else:
            self._looked_again(result)

    # ------------------------------------------------------------------------------------------------------- asking
    def _looked(self, found: Inspected) -> None:
        keeper, address = self._keeper(found.facts)
        if keeper not in ("", found.broker):
            self._followed += 1
            self._try_again(address if self._followed <= FOLLOWED_MAX else "", 0)
            return
        self._facts = found.facts
        self._is_asking = True
        self._machine.request(_ASK, AskToChange(self._operation.action, self._operation.told))

    def _keeper(self, facts: Mapping[str, str]) -> tuple[str, str]:
        """Who is to be asked, and where; empty if nobody says. Of a keeper that is lost, or whose place another broker
        is to take, the next member is."""
        keeper, members = facts.get("keeper", ""), facts.get("members", "").split(", ")
        told = self._operation.told
        is_replaced = self._operation.action == "replace" and told.get("mode", "failover") == "failover"
        is_gone = bool(told.get("lost")) or is_replaced
        if is_gone and keeper == told.get("id") and len(members) > 1:
            return members[1], members[1]  # in the simulator, brokers are found under their names
        return keeper, facts.get("keeper_address", keeper)

    def _answered(self, answer: ChangeBegun) -> None:
        self._is_asking = False
        if not answer.problem:
            self._uncertain = False
            self._finish("change-begun", at=self._address)
            return
        self._problem = answer.problem
        self._machine.request(_LOOK_AGAIN, AskBroker(links=0))

    def _looked_again(self, found: Inspected) -> None:
        """After a refusal. If nothing was under way meanwhile, and this is whom to ask, it is meant."""
        keeper, _ = self._keeper(found.facts)
        before, now = self._facts, found.facts
        idle = "change" not in before and "change" not in now and before.get("map") == now.get("map")
        self._refusals = self._refusals + 1 if keeper == found.broker and idle else 0
        if self._refusals >= REFUSALS:
            self._finish("change-refused", problem=self._problem, at=self._address)
        else:
            self._try_again(self._address)

    def _finish(self, what: str, **detail: Any) -> None:
        self._note(what, **detail)
        self._watching = bool(self._operation.ends) and (what == "change-begun" or self._uncertain)
        if self._watching:
            self._try_again()
        else:
            self._machine.stop(power_cut=False)

    # ----------------------------------------------------------------------------------------------------- watching
    def _watch(self, found: Inspected) -> None:
        """Whether a member says that the broker is none, by a map that is newer than the one by which it was one."""
        members, leaver = found.facts.get("members", "").split(", "), self._operation.ends
        is_newer = int(found.facts.get("map", "0")) > int(self._facts.get("map", "0"))
        if is_newer and found.broker in members and leaver not in members:
            self._machine.stop(power_cut=False)
            self._simulation.after(self._operation.ends_after_ms * MILLISECOND, self._end_broker, leaver)
        else:
            self._try_again()

    def _note(self, what: str, **detail: Any) -> None:
        if self._simulation.tracing:
            if self._uncertain:
                detail["uncertain"] = True
            row = schema.Control(t=self._simulation.now, node=self._machine.name, what=what, detail=detail)
            self._simulation.emit(row)
