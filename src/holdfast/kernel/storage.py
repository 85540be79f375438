"""What a node finds on its disk when it is started: for each of its state streams, the records that were kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from holdfast.kernel.messages import Record

# Stream name → its records, oldest first. A snapshot is the first of them: what it stands for is gone.
StoredStreams: TypeAlias = Mapping[str, Sequence[Record]]
