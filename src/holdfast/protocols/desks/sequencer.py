"""Sequencers decide the order of commands; the simplest, of a broker on its own, takes them as they come.

With a journal it keeps every command that it applied, one record a turn, so that a restart finds the same core; what
the node says then waits for the disk, as everything does by default. Now and then a snapshot takes the journal's place.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from holdfast.kernel.inputs import Started
from holdfast.kernel.messages import NOMINAL_WEIGHT
from holdfast.kernel.node import broken, require
from holdfast.kernel.notices import Notice
from holdfast.kernel.outbox import Outbox
from holdfast.kernel.parts import Part
from holdfast.kernel.sequencing import CommandsApplied
from holdfast.kernel.storage import StoredStreams
from holdfast.protocols.core.commands import RECORD_FORMAT, Applied, Command, CoreState
from holdfast.protocols.core.core import BrokerCore
from holdfast.protocols.core.judgement import Known
from holdfast.protocols.core.outputs import Entered, Logged

STREAM = "state"
SNAPSHOT_EVERY = 4_096  # commands
SNAPSHOT_BYTES = 64 * 1024 * 1024  # of commands; a restart has to read and apply them all
CHECK_SHARE = 8  # invariants are looked at after every command with fewer sessions, and more rarely with more


class Sequencer(Protocol):
    """What decides the order of commands. It tells what came of them: `CommandsApplied`."""

    @property
    def is_serving(self) -> bool:
        """Whether commands are taken here, and all that clients were ever told is known; they are served only then."""
        ...

    @property
    def applies_at_once(self) -> bool:
        """Whether a command is applied when it is submitted; if not, later, or never, and others may come before it."""
        ...

    @property
    def applied_is_safe(self) -> bool:
        """Whether what is applied is safe already, without this node's own disk."""
        ...

    @property
    def shares_log(self) -> bool:
        """Whether the log of events is the same at several nodes: it has its name from the core, not from a disk."""
        ...

    @property
    def leader_addresses(self) -> tuple[str, ...]:
        """Where they are taken, if not here, and if that is known."""
        ...

    def submit(self, command: Command, out: Outbox, known: Known | None = None) -> None:
        """`known`: of its events, so that the core need not look if the command is applied now."""
        ...

    @property
    def takes_direct(self) -> bool:
        """Whether clients may say publications to every replica themselves, now (D4-A6)."""
        ...

    @property
    def direct_addresses(self) -> tuple[str, ...]:
        """Where clients find the other replicas."""
        ...

    def submit_direct(self, command: Command, out: Outbox) -> None:
        """A command that the client says to every replica itself, which makes the same bytes of it. It may be lost."""
        ...


class JournalLarge(Notice, frozen=True):
    """A snapshot would be smaller than the journal that it takes the place of."""


class DirectSequencer(Part):
    """Applies commands in the order in which they are submitted."""

    name: ClassVar[str] = "sequencer"
    due = False
    applies_at_once = True
    applied_is_safe = False
    shares_log = False

    def __init__(self, core: BrokerCore, journal: bool, snapshot_every: int = SNAPSHOT_EVERY) -> None:
        self._core = core
        self._journal = journal
        self._snapshot_every = snapshot_every
        self._snapshot_after_bytes = SNAPSHOT_BYTES
        self._turn: list[Command] = []
        self._since_snapshot = 0  # commands
        self._journal_bytes = 0  # of those commands, about
        self._snapshot_bytes = 0  # of the last one
        self._checked = 0
        self.recovered: list[Logged] = []  # what the journal says was accepted; the log may lack the end of it
        self.recovered_entered: list[Entered] = []  # and what it says was published here

    @property
    def is_serving(self) -> bool:
        return True

    @property
    def leader_addresses(self) -> tuple[str, ...]:
        return ()

    @property
    def takes_direct(self) -> bool:
        return False

    @property
    def direct_addresses(self) -> tuple[str, ...]:
        return ()

    def submit_direct(self, command: Command, out: Outbox) -> None:
        broken("a broker on its own is every replica", client=command.client)

    def recover(self, streams: StoredStreams) -> None:
        """Brings the core to where the journal ends."""
        for record in streams.get(STREAM, ()):
            if not isinstance(record, Applied | CoreState):
                broken("the journal holds commands and states", record=type(record).__name__)
            require(record.format == RECORD_FORMAT, "the journal's format is known", format=record.format)
            match record:
                case CoreState():
                    self._core.set_state(record.state)
                    self._since_snapshot = self._journal_bytes = 0
                    self._snapshot_bytes = len(record.state)
                case Applied():
                    following = self._core.number + 1
                    require(
                        record.number == following, "the journal has no gap", number=record.number, wanted=following
                    )
                    self._core.hosting.replay_as(record.application)
                    for command in record.commands:
                        outputs = self._core.apply(self._core.number + 1, record.wall, command)
                        self.recovered += [output for output in outputs if isinstance(output, Logged)]
                        self.recovered_entered += [output for output in outputs if isinstance(output, Entered)]
                    self._count(record.commands)
        self._core.hosting.go_on()

    def on_started(self, started: Started, out: Outbox) -> None:
        if self._is_large:
            out.tell(JournalLarge())  # an idle broker would read the same journal at every start

    def submit(self, command: Command, out: Outbox, known: Known | None = None) -> None:
        """Puts a command in its place: here, at once."""
        outputs = self._core.apply(self._core.number + 1, out.wall, command, known)
        if self._journal:
            self._turn.append(command)
            self.due = True
        if outputs or self._core.interests.have_changed:
            out.tell(CommandsApplied(outputs))

    def finish(self, out: Outbox) -> None:
        """Journals the turn, before anyone is told of it."""
        self.due = False
        commands, self._turn = self._turn, []
        first, application = self._core.number - len(commands) + 1, self._core.hosting.name
        out.append(STREAM, Applied(first, out.wall, commands, application=application))
        self._count(commands)
        if self._is_large:
            out.tell(JournalLarge())

    def _count(self, commands: list[Command]) -> None:
        self._since_snapshot += len(commands)
        sizes = [len(getattr(command, "events", b"")) + len(getattr(command, "data", b"")) for command in commands]
        self._journal_bytes += NOMINAL_WEIGHT * len(commands) + sum(sizes)

    @property
    def _is_large(self) -> bool:
        """Not before the journal is as large as the last snapshot: so both together cost at most twice the journal."""
        # What is staged is a part of the state, and gone soon: a large journal waits until it is.
        large = self._journal_bytes >= max(self._snapshot_after_bytes, 4 * self._core.staging.bytes)
        return (self._since_snapshot >= self._snapshot_every or large) and self._journal_bytes >= self._snapshot_bytes

    def snapshot(self, out: Outbox) -> None:
        state = self._core.get_state()
        self._since_snapshot = self._journal_bytes = 0
        self._snapshot_bytes = len(state)
        out.snapshot(STREAM, CoreState(self._core.number, state))

    def check_invariants(self) -> None:
        require(self.due or not self._turn, "a turn is journalled at its end")
        # A look at all sessions after every command would make large runs quadratic; small ones get it.
        if self._core.number - self._checked > len(self._core.sessions) // CHECK_SHARE:
            self._core.check_invariants()
            self._checked = self._core.number


class SnapshotTaker(Part):
    """The last part of a node: a snapshot takes the journal's place when all that the journal says has been done.

    Taken any earlier, it could be on the disk, and the events of its turn not in the log.
    """

    name: ClassVar[str] = "snapshots"
    due = False
    notices: ClassVar[tuple[type[Notice], ...]] = (JournalLarge,)

    def __init__(self, sequencer: DirectSequencer) -> None:
        self._sequencer = sequencer

    def on_journal_large(self, large: JournalLarge, out: Outbox) -> None:
        self.due = True

    def finish(self, out: Outbox) -> None:
        self.due = False
        self._sequencer.snapshot(out)
