"""Appends to a log and says, after each commit, what is safe. Ends when it is killed."""

from __future__ import annotations

import sys

from holdfast.storage import LogSettings, open_log


def main() -> None:
    log = open_log(sys.argv[1], LogSettings(segment_bytes=256 * 1024))
    while True:
        for _ in range(7):
            number = log.next("a")
            log.append("a", 1, b"%d," % number * 30)
        log.commit()
        print(number, flush=True)


if __name__ == "__main__":
    main()
