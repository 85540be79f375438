"""A stream that can't be read, for a mistake in its options.

PySpark 4.3 fails on its own if a data source raises instead of giving a reader, and shows that error last. So it is
given one, whose first answer is the mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from holdfast.errors import HoldfastError, renewed


class RefusedStream(DataSourceStreamReader):
    """Whatever it is asked, it raises the mistake."""

    def __init__(self, problem: HoldfastError) -> None:
        self._problem = problem.with_traceback(None)

    def initialOffset(self) -> dict[str, Any]:
        self._refuse()

    def latestOffset(self, *_: Any) -> dict[str, Any]:
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._refuse()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise renewed(self._problem)
