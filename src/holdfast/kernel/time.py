"""Time is an integer number of nanoseconds, everywhere."""

from typing import Final

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
