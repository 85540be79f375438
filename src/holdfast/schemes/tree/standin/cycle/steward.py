"""One member sees to it that a broker gets a stand-in: D0-B2, and says at each moment how far that is.

What it decides from is what the broker's neighbours have measured (`complaints`); that a broker failed, it tries for
itself first. It finds a spare, lets all agree on the map in which that one stands in, and makes it; what follows is the
protocols' affair. One case at a time: a network in which several brokers are down is mended one broker after another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import ClassVar, Final

from holdfast.kernel.inputs import TimerKey
from holdfast.kernel.links import Role
from holdfast.kernel.messages import Message
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import NOW, Level, Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.time import SECOND
from holdfast.protocols.routing.flaws import flaw
from holdfast.protocols.routing.network_map import NetworkMap, StandInMode, StandInProtocol, planned
from holdfast.protocols.routing.notices import MapChanged, MapHeard
from holdfast.protocols.routing.objections import objection
from holdfast.protocols.routing.roster import Roster
from holdfast.protocols.routing.settings import Remedy, ServiceLevels
from holdfast.schemes.tree.mapping import Mapping as MapKeeper
from holdfast.schemes.tree.standin.cycle.calls import Calls
from holdfast.schemes.tree.standin.cycle.case import Case, Stage, wanted
from holdfast.schemes.tree.standin.cycle.complaints import Complaints
from holdfast.schemes.tree.standin.cycle.directory import Directory
from holdfast.schemes.tree.standin.cycle.errand_desk import ErrandDesk
from holdfast.schemes.tree.standin.cycle.errands import Failed, Provide, Provided, Release
from holdfast.schemes.tree.standin.cycle.levels import Cause
from holdfast.schemes.tree.standin.cycle.memory import Memory
from holdfast.schemes.tree.standin.cycle.messages import Reserve, Reserved, short
from holdfast.schemes.tree.standin.cycle.notices import ErrandEnded, Looked
from holdfast.schemes.tree.standin.cycle.spares import Pool, taken_names

BROKERS: Final = frozenset({Role.BROKER})
RESERVED_WITHIN: Final = 3 * SECOND
STARTED_WITHIN: Final = 20 * SECOND  # a broker that was provided, and may be a process that is just being started
PROVIDED_WITHIN: Final = 60 * SECOND
GO_ON_EVERY: Final = SECOND // 10  # while there is a case
RETRIED_AFTER: Final = 3 * SECOND
SHOWN_FOR: Final = 60 * SECOND  # why nothing came of a case
ASKED_MAX: Final = 8  # cases that operators want, and that wait for their turn


class Steward(Part):
    """Behind `Complaints`."""

    name: ClassVar[str] = "steward"
    messages: ClassVar[Mapping[type[Message], frozenset[Role]]] = {Reserved: BROKERS}
    notices: ClassVar[tuple[type[Notice], ...]] = (Looked, ErrandEnded, MapChanged)
    due = False

    def __init__(
        self,
        levels: ServiceLevels,
        roster: Roster,
        mapping: MapKeeper,
        calls: Calls,
        complaints: Complaints,
        directory: Directory,
        pool: Pool,
        errands: ErrandDesk,
        memory: Memory,
    ) -> None:
        self._levels = levels
        self._roster = roster
        self._mapping = mapping
        self._calls = calls
        self._complaints = complaints
        self._directory = directory
        self._pool = pool
        self._errands = errands
        self._memory = memory
        self._case: Case | None = None
        self._asked: dict[str, Case] = {}  # by operators, and not begun
        self._errand = 0  # that is waited for
        self._given_up: dict[str, tuple[int, str]] = {}  # of whom → when, and why
        self._cases = Counter[Cause]()
        self._failures = 0

    @property
    def is_busy(self) -> bool:
        return self._case is not None or bool(self._asked)

    # ---------------------------------------------------------------------------------------------------- operators
    def ask(self, faulty: str, mode: StandInMode, protocol: StandInProtocol, out: Outbox) -> str:
        """An operator wants a broker to be replaced, by whoever is free; gives what is against it."""
        network = self._roster.map
        cause = Cause.CRASH if mode is StandInMode.FAILOVER else Cause.CONGESTION
        cause = Cause.MAINTENANCE if mode is StandInMode.HAND_OVER else cause
        names = [name for name in network.names if name != faulty or cause is not Cause.CRASH]
        if problem := self._mapping.against(mode, protocol):
            return problem
        if network.find(faulty) is None:
            return f"there is no broker {faulty[:64]!r} in this network; there is {', '.join(network.names[:20])}"
        if names[0] != self._roster.name:
            return f"{names[0]} keeps the map of this network: ask it"
        if self._case is not None and self._case.faulty == faulty:
            return ""
        if len(self._asked) >= ASKED_MAX:
            return "so many are asked for already: wait for them"
        how = wanted(faulty, mode, protocol, asked=True)
        self._asked[faulty] = Case(faulty, cause, "an operator asked for it", how, out.now)
        self._given_up.pop(faulty, None)
        return ""

    # --------------------------------------------------------------------------------------------------------- cases
    def on_looked(self, looked: Looked, out: Outbox) -> None:
        self._look(out)

    def _look(self, out: Outbox) -> None:
        roster = self._roster
        if not roster.is_member or roster.shares is not None:
            self._drop(out)
            self._asked = {}
            return
        for name in [name for name, (at, _) in self._given_up.items() if out.now - at >= SHOWN_FOR]:
            del self._given_up[name]
        if self._case is None:
            self._begin(out)
        if self._case is not None:
            self._go_on(self._case, out)
        if self._case is not None:
            out.set_timer((self.name, "go on"), GO_ON_EVERY)

    def on_timer(self, key: TimerKey, out: Outbox) -> None:
        if self._case is not None:
            self._look(out)

    def _begin(self, out: Outbox) -> None:
        case = self._next(out)
        if case is None:
            return
        self._case = case
        if case.faulty in self._given_up:
            return  # the same as a moment ago: said once, or nothing else would be remembered
        self._cases[case.cause] += 1
        self._tell(f"{case.faulty} needs a stand-in ({case.cause.value}): {case.reason}", out, Level.WARNING)

    def _next(self, out: Outbox) -> Case | None:
        network, levels, now = self._roster.map, self._levels, out.now
        if self._asked:
            return self._asked.pop(next(iter(self._asked)))
        for faulty, reason in self._complaints.failed().items():
            if self._may_begin(faulty, Cause.CRASH, out):
                case = Case(faulty, Cause.CRASH, reason, wanted(faulty, StandInMode.FAILOVER, levels.protocol), now)
                if network.shares(faulty) is not None:
                    case.remove()
                return case
        is_keeper = self._roster.name == network.keeper
        if levels.congestion is Remedy.NOTHING or not is_keeper or network.steps:
            return None
        mode = StandInMode(levels.congestion.value)
        for faulty, reason in self._complaints.congested().items():
            alone = network.beside_of(faulty) is None and network.shares(faulty) is None
            if alone and self._may_begin(faulty, Cause.CONGESTION, out):
                return Case(faulty, Cause.CONGESTION, reason, wanted(faulty, mode, levels.protocol), now)
        return None

    def _may_begin(self, faulty: str, cause: Cause, out: Outbox) -> bool:
        at, _ = self._given_up.get(faulty, (out.now - RETRIED_AFTER, ""))
        if out.now - at < RETRIED_AFTER or self._roster.map.find(faulty) is None:
            return False
        return self._complaints.who_sees_to(faulty, cause, out) == self._roster.name

    def _go_on(self, case: Case, out: Outbox) -> None:
        match case.stage:
            case Stage.CHECKING:
                self._check(case, out)
            case Stage.SEEKING:
                self._seek(case, out)
            case Stage.PROVIDING:
                if out.now - case.since >= PROVIDED_WITHIN:
                    self._give_up(case, "the program beside the broker provides none in time", out)
            case Stage.RESERVING:
                self._reserve(case, out)
            case Stage.AGREEING:
                self._agree(case, out)
            case Stage.LEARNING:
                self._see_it_done(case, out)

    def _is_over(self, case: Case, out: Outbox) -> bool:
        """Whether nobody complains any more: then nothing is made of it."""
        if case.is_asked:
            return False
        still = self._complaints.failed() if case.cause is Cause.CRASH else self._complaints.congested()
        if case.faulty not in still:
            self._tell(f"{case.faulty} is well again, and gets no stand-in", out)
            self._given_up.pop(case.faulty, None)
            self._drop(out)
            return True
        return False

    # -------------------------------------------------------------------------------------------------------- stages
    def _check(self, case: Case, out: Outbox) -> None:
        if self._is_over(case, out):
            return
        if case.cause is Cause.MAINTENANCE and case.faulty != self._roster.name:
            if self._calls.reach(case.faulty, out):
                case.go_to(Stage.SEEKING, out.now)
            elif self._calls.is_absent(case.faulty):
                self._give_up(case, f"{case.faulty} does not answer: if it is down, let it be replaced", out)
        elif case.cause is not Cause.CRASH:
            case.go_to(Stage.SEEKING, out.now)
        elif self._calls.reach(case.faulty, out):
            problem = f"{case.faulty} answers {self._roster.name}: a link is down, or it hangs for some; "
            self._give_up(case, problem + "if it is to be replaced, stop it", out)
        elif self._calls.is_absent(case.faulty):
            obstacle = self._directory.obstacle(self._roster.map, case.faulty, out)
            if obstacle:
                self._give_up(case, obstacle, out)
            elif obstacle is not None:
                case.go_to(Stage.AGREEING if case.removes else Stage.SEEKING, out.now)

    def _seek(self, case: Case, out: Outbox) -> None:
        if self._is_over(case, out):
            return
        beside = self._roster.map.beside_of(case.faulty)
        if beside is not None and case.cause is Cause.CRASH:
            self._take_who_shares(case, beside.name, out)
            return
        for place in self._pool.free(self._roster.map):
            if place.name in case.tried:
                continue
            if self._calls.reach(place.name, out, place.peer_address):
                case.try_spare(place, "", out.now)
                self._reserve(case, out)
            elif self._calls.is_absent(place.name):
                case.refuse_spare(place.name, f"{place.name} does not answer at {place.peer_address}", out.now)
                case.absent.add(place.name)
                continue
            return
        if self._errands.is_served:
            taken = (*taken_names(self._roster.map), *(name for name in case.tried if name not in case.absent))
            self._errand = self._errands.give(Provide(case.faulty, taken), out)
            case.go_to(Stage.PROVIDING, out.now)
        else:
            self._give_up(case, _nobody(case), out)

    def _take_who_shares(self, case: Case, name: str, out: Outbox) -> None:
        """Who shares a broker's work takes its place, and nobody else can: it is a member already."""
        place = self._roster.map.find(name)
        if place is not None and self._calls.reach(name, out):
            case.try_spare(place, "", out.now)
            case.go_to(Stage.AGREEING, out.now)
        elif self._calls.is_absent(name):
            self._give_up(case, f"{name}, which shares its work, does not answer", out)

    def _reserve(self, case: Case, out: Outbox) -> None:
        spare = case.spare
        if spare is None:
            return
        allowed = STARTED_WITHIN if case.provided else RESERVED_WITHIN
        if self._calls.reach(spare.name, out, spare.peer_address):
            out.send(spare.name, Reserve(case.faulty), after=NOW)
        if out.now - case.since >= allowed:
            self._refuse(case, f"{spare.name} does not answer at {spare.peer_address}", out)

    def _refuse(self, case: Case, why: str, out: Outbox) -> None:
        spare, was_provided = case.spare, bool(case.provided)
        if spare is not None:
            case.absent.discard(spare.name)
            case.refuse_spare(spare.name, why, out.now)
            self._release(spare.name if was_provided else "", out)

    def _release(self, provided: str, out: Outbox) -> None:
        """One that was provided is not needed any more; but if it has come to be a member in another way, or is about
        to be one."""
        case = self._case
        is_wanted = case is not None and case.spare is not None and case.spare.name == provided
        if provided and not is_wanted and self._roster.map.find(provided) is None:
            self._errands.give(Release(provided), out)

    def on_reserved(self, peer: str, reserved: Reserved, out: Outbox) -> None:
        case = self._case
        if case is None or case.stage is not Stage.RESERVING or case.spare is None or case.spare.name != peer:
            return
        if reserved.faulty != case.faulty:
            return
        if reserved.problem:
            self._refuse(case, short(reserved.problem), out)
        else:
            case.go_to(Stage.AGREEING, out.now)

    def on_errand_ended(self, ended: ErrandEnded, out: Outbox) -> None:
        case = self._case
        if case is None or ended.number != self._errand or case.stage is not Stage.PROVIDING:
            match ended.outcome:
                case Provided(member):  # it is late
                    self._release(member.name, out)
                case _:
                    pass
            return
        match ended.outcome:
            case Provided(member, note):
                case.try_spare(member, note or "provided", out.now)
            case Failed(problem):
                self._give_up(case, "; ".join([*case.tried.values(), problem]), out)
            case _:
                self._give_up(case, "the program beside the broker answers something else", out)

    def _agree(self, case: Case, out: Outbox) -> None:
        network, change = self._roster.map, case.change
        if self._directory.is_asking:
            answer = self._directory.look(out)
            if answer.map is not None:
                self._take_up(case, answer.map, out)
            elif answer.problem:
                self._give_up(case, answer.problem, out)
            return
        if change is None or self._is_over(case, out):
            return
        problem = objection(network, change, False)
        if case.how.mode is not StandInMode.FAILOVER and network.keeper != self._roster.name:
            problem = f"{network.keeper} keeps the map of this network now: ask it"
        if problem.startswith("another change is under way"):
            case.wait_for(problem)
            return
        if case.how.mode is not StandInMode.FAILOVER and (maker := self._memory.promised_to(network.number)):
            case.wait_for(f"{maker} is about to have a broker replaced")
            return
        after = planned(network, change) if not problem else network
        problem = problem or flaw(after)
        if problem:
            self._give_up(case, problem, out)
            return
        self._mapping.want(change, out)
        if case.how.mode is not StandInMode.FAILOVER:
            self._make(case, after, out)
        elif refusal := self._directory.begin(network, change, after, out):
            self._give_up(case, refusal, out)

    def _take_up(self, case: Case, after: NetworkMap, out: Outbox) -> None:
        """What the directory says follows; which may be something else, that somebody else wanted before."""
        network, change = self._roster.map, case.change
        if change is not None and after == planned(network, change):
            self._make(case, after, out)
        else:
            self._tell(f"map {after.number} was agreed to before", out)
            out.tell(MapHeard(self._roster.name, after))

    def _make(self, case: Case, after: NetworkMap, out: Outbox) -> None:
        by = "nobody" if case.spare is None else case.spare.name
        got = f" ({case.provided})" if case.provided else ""
        what = {
            StandInMode.FAILOVER: f"{by}{got} stands in for {case.faulty}",
            StandInMode.HAND_OVER: f"{by}{got} takes the place of {case.faulty} over",
        }.get(case.how.mode, f"{by}{got} shares the work of {case.faulty}")
        self._tell(f"{case.faulty} is taken out" if case.removes else what, out)
        case.go_to(Stage.LEARNING, out.now)
        self._mapping.make(after, out)

    def on_map_changed(self, changed: MapChanged, out: Outbox) -> None:
        """Another map, which is not the one that was wanted, is looked at anew."""
        case = self._case
        if case is None or case.stage is Stage.LEARNING:
            return
        self._directory.give_up(out)
        if self._roster.map.find(case.faulty) is None or not self._roster.is_member:
            self._drop(out)
        else:
            provided = case.forget_spare()
            case.go_to(Stage.CHECKING, out.now)
            self._release(provided, out)

    def _see_it_done(self, case: Case, out: Outbox) -> None:
        network = self._roster.map
        if not network.steps:
            self._tell(f"{case.faulty}: done with map {network.number}", out)
            self._case = None
        elif self._complaints.failed():
            self._case = None  # what is under way waits for a broker that has failed: that one is next

    # ------------------------------------------------------------------------------------------------------ giving up
    def _give_up(self, case: Case, problem: str, out: Outbox) -> None:
        before = self._given_up.get(case.faulty, (0, ""))[1]
        self._failures += 1
        if problem != before:
            self._tell(f"{case.faulty} gets no stand-in: {problem}", out, Level.WARNING)
        self._given_up[case.faulty] = (out.now, problem)
        self._drop(out)

    def _drop(self, out: Outbox) -> None:
        case, self._case = self._case, None
        if case is None:
            return
        self._directory.give_up(out)
        if case.stage is not Stage.LEARNING:
            self._release(case.forget_spare(), out)

    def _tell(self, text: str, out: Outbox, level: Level = Level.INFO) -> None:
        self._memory.tell(self._roster.map.number, text, out, level)

    def facts(self) -> dict[str, str]:
        facts = {}
        if self._case is not None:
            facts["standin_case"] = str(self._case)
        if self._given_up:
            said = [f"{name} gets no stand-in: {why}" for name, (_, why) in self._given_up.items()]
            facts["standin_problem"] = "; ".join(said)
        return facts

    def measure(self) -> dict[str, int]:
        return {
            "standin_cases": int(self._case is not None),
            "standin_crashes_total": self._cases[Cause.CRASH],
            "standin_congestions_total": self._cases[Cause.CONGESTION],
            "standin_maintenances_total": self._cases[Cause.MAINTENANCE],
            "standin_given_up_total": self._failures,
        }


def _nobody(case: Case) -> str:
    tried = "; ".join(case.tried.values())
    return f"nobody is to spare{f': {tried}' if tried else ''}; start one, or list one with spare = true"
