"""What signals do to a process that serves brokers.

SIGTERM and SIGINT stop it. SIGHUP does so if the terminal that it was started from is gone, as it should then; else
someone wants something read again, there is nothing, and the log says so. Under nohup it stays ignored.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import Final

_OUTPUTS: Final = (1, 2)

log = logging.getLogger("holdfast")


def stop_by_signals(stopping: asyncio.Event) -> None:
    """Has the event set when the process is to stop. In the main thread, with its event loop running."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    terminals = [output for output in _OUTPUTS if os.isatty(output)]

    def hang_up() -> None:
        gone = [output for output in terminals if not os.isatty(output)]
        if not gone:
            log.warning("SIGHUP: nothing is read again while a broker runs; restart it for a changed site file")
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for output in gone:
            os.dup2(nowhere, output)  # what is still said must not fail
        os.close(nowhere)
        stopping.set()

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, hang_up)
