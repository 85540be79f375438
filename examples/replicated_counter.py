"""A counter that survives: each replica in a process of its own, and anyone may add.

python -m examples.replicated_counter SITE 0|1|2      run one replica of the site's group
python -m examples.replicated_counter SITE add        add one, and print the count
"""

import sys

from holdfast.client.p2s import dial, new_replica


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def execute(self, request: bytes) -> bytes:
        self.count += int(request)
        return str(self.count).encode()

    def get_state(self, slot_marker: int) -> tuple[int, bytes]:
        return slot_marker, str(self.count).encode()

    def set_state(self, state: bytes) -> None:
        self.count = int(state)


if __name__ == "__main__":
    site, what = sys.argv[1:]
    if what == "add":
        with dial(site) as conn:
            print(conn.send_request(b"1").decode())
    else:
        new_replica(int(what), 1, site, Counter()).run()
