"""A durable append-only log of several streams, in segment files: docs/log.md.

Plain synchronous files; it knows no event loop, no node and no message: a record is a kind and bytes.
"""

from holdfast.storage.files import Files, SystemFiles
from holdfast.storage.log import Log, open_log
from holdfast.storage.reading import LogRecord
from holdfast.storage.recovery import Cut, Opening
from holdfast.storage.retention import Retention
from holdfast.storage.settings import LogSettings
from holdfast.storage.writer import LogWriter

__all__ = [
    "Cut",
    "Files",
    "Log",
    "LogRecord",
    "LogSettings",
    "LogWriter",
    "Opening",
    "Retention",
    "SystemFiles",
    "open_log",
]
