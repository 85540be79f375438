"""What the parts of a network's broker are made with."""

from __future__ import annotations

import msgspec

from holdfast.protocols.routing.answers import Answers
from holdfast.protocols.routing.forwarding import Forwarding
from holdfast.protocols.routing.gate import Gate
from holdfast.protocols.routing.neighbours import Neighbours
from holdfast.protocols.routing.router import Router
from holdfast.protocols.routing.store import EventStore
from holdfast.protocols.routing.teller import Teller
from holdfast.schemes.tree.mapping import Mapping
from holdfast.schemes.tree.moving import MoveWords, Moving
from holdfast.schemes.tree.standin.cycle.agreement import Agreement
from holdfast.schemes.tree.standin.cycle.complaints import Complaints
from holdfast.schemes.tree.standin.cycle.monitor import Monitor
from holdfast.schemes.tree.standin.cycle.reservation import Reservation
from holdfast.schemes.tree.standin.cycle.returning import Returning
from holdfast.schemes.tree.standin.cycle.steward import Steward
from holdfast.schemes.tree.standin.learning import Learning
from holdfast.schemes.tree.standin.relieving import Relieving
from holdfast.schemes.tree.standin.signals import Signals
from holdfast.schemes.tree.standin.teaching import Teaching
from holdfast.schemes.tree.standin.withdrawing import Withdrawing


class NetworkKit(msgspec.Struct, frozen=True):
    """What the parts are made with; tests put mutants in their place."""

    router: type[Router] = Router
    neighbours: type[Neighbours] = Neighbours
    answers: type[Answers] = Answers
    teller: type[Teller] = Teller
    forwarding: type[Forwarding] = Forwarding
    store: type[EventStore] = EventStore
    gate: type[Gate] = Gate
    mapping: type[Mapping] = Mapping
    moving: type[Moving] = Moving
    words: type[MoveWords] = MoveWords
    learning: type[Learning] = Learning
    teaching: type[Teaching] = Teaching
    relieving: type[Relieving] = Relieving
    signals: type[Signals] = Signals
    withdrawing: type[Withdrawing] = Withdrawing
    monitor: type[Monitor] = Monitor
    complaints: type[Complaints] = Complaints
    agreement: type[Agreement] = Agreement
    reservation: type[Reservation] = Reservation
    steward: type[Steward] = Steward
    returning: type[Returning] = Returning
