"""Commands that concern the log of events, but for those that bring events: named subscriptions, and what is kept."""

from __future__ import annotations

from typing import assert_never

from holdfast.protocols.core import commands
from holdfast.protocols.core.commands import LogCommand
from holdfast.protocols.core.cursor_table import CursorTable
from holdfast.protocols.core.log_state import LogState
from holdfast.protocols.core.outputs import Kept, LogLookedAt, Output
from holdfast.protocols.core.staging import Staging


def apply_to_log(
    log: LogState, cursors: CursorTable, staging: Staging, wall: int, command: LogCommand, outputs: list[Output]
) -> None:
    """Those of clients are of sessions that are there; the broker's own have no client."""
    match command:
        case commands.AcknowledgeCursor():
            cursors.acknowledge(command, wall, outputs)
        case commands.OpenCursor():
            cursors.open(command, wall, outputs)
        case commands.CloseCursor():
            cursors.close(command, wall, outputs)
        case commands.ForgetName():
            cursors.forget(command, outputs)
        case commands.RemoveName():
            cursors.remove(command, outputs)
        case commands.LookAtLog():
            outputs.append(LogLookedAt(command.client, command.request))
        case commands.KeepLog():
            log.keep_from(max(command.tail, min(command.wanted, cursors.floor())))
            outputs.append(Kept(log.tail))
        case commands.ExpireStages():
            staging.expire(command.before)
        case _:
            assert_never(command)
