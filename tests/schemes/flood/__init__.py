"""The scheme `flood`, for tests: every event goes to every broker, along every link of a graph that may have cycles.

A publisher is answered when all neighbours of its broker have stored what it published. A client has two links: one to
its broker, and one to a neighbour of that, the witness, which tells it what has come there.
"""

from typing import Final

KIND: Final = "flood"
