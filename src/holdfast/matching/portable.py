"""The portable engine: the index in plain Python, for where the kernel can't be compiled.

A conjunction is found by one thing that must hold: an equality (or each value of an IN list), a prefix, or the
presence of an attribute. Candidates are asked one by one. Correct, and fast enough for some thousand filters.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeAlias

from holdfast.errors import DuplicateId, UnknownId
from holdfast.matching.engine import Attributes, Event, Id, plain_event, readable_event
from holdfast.matching.plan import PRESENCE, STRING, Conjunction, utf8
from holdfast.model.batch import EventBatch
from holdfast.model.filter import Filter
from holdfast.model.values import TOPIC

Key: TypeAlias = tuple[Any, ...]
ALWAYS: Key = ("always",)


class PortableEngine(Generic[Id]):
    """An engine of the index in plain Python."""

    def __init__(self) -> None:
        self._numbers: dict[Id, int] = {}
        self._records: dict[int, tuple[Id, Filter, tuple[Key, ...]]] = {}
        self._clusters: dict[Key, dict[int, None]] = {}
        self._prefix_lengths: dict[str, dict[int, int]] = {}
        self._next_number = 0
        self._events = self._candidates = self._probed = 0

    def add(self, id: Id, filter: Filter, conjunctions: tuple[Conjunction, ...], /) -> None:
        keys = tuple({key: None for conjunction in conjunctions for key in _access(conjunction)})
        number = self._next_number
        self._next_number += 1
        # One step: the id's own __eq__ may run here, and may add the same id.
        if self._numbers.setdefault(id, number) != number:
            raise DuplicateId(f"the index already holds a filter under the id {id!r}; remove it first", id)
        self._records[number] = (id, filter, keys)
        for key in keys:
            if key not in self._clusters:
                self._clusters[key] = {}
                self._count_prefix(key, 1)
            self._clusters[key][number] = None

    def remove(self, id: Id, /) -> None:
        number = self._numbers.pop(id, None)
        if number is None:
            raise UnknownId(f"the index holds no filter under the id {id!r}", id)
        _, _, keys = self._records.pop(number)
        for key in keys:
            del self._clusters[key][number]
            if not self._clusters[key]:
                del self._clusters[key]
                self._count_prefix(key, -1)

    def _count_prefix(self, key: Key, change: int) -> None:
        """Keeps the lengths of the prefixes in use, which say how much of an event's string to look up."""
        if key[0] != "prefix":
            return
        _, name, prefix = key
        lengths = self._prefix_lengths.setdefault(name, {})
        lengths[len(prefix)] = lengths.get(len(prefix), 0) + change
        if not lengths[len(prefix)]:
            del lengths[len(prefix)]

    def match(self, attributes: Attributes, topic: str = "", /) -> list[Id]:
        return self._match(plain_event(attributes, topic), topic)

    def match_batch(self, events: Iterable[Event], /) -> list[list[Id]]:
        pairs = [event if isinstance(event, tuple) and len(event) == 2 else (event, "") for event in events]
        return [
            self._match(plain_event(attributes, topic, row), topic) for row, (attributes, topic) in enumerate(pairs)
        ]

    def match_encoded(self, batch: EventBatch, /) -> dict[Id, Sequence[int]]:
        rows: dict[Id, list[int]] = {}
        for row, ids in enumerate(self._match_encoded(batch)):
            for id in ids:
                rows.setdefault(id, []).append(row)
        everything = range(len(batch))
        return {id: found if len(found) < len(everything) else everything for id, found in rows.items()}

    def rows_matching(self, batch: EventBatch, /) -> Sequence[int]:
        rows = [row for row, ids in enumerate(self._match_encoded(batch)) if ids]
        return rows if len(rows) < len(batch) else range(len(batch))

    def _match_encoded(self, batch: EventBatch) -> Iterator[list[Id]]:
        for row in range(len(batch) if self._records else 0):
            event = readable_event(batch, row)
            yield self._match(plain_event(event.attributes, event.topic, row), event.topic)

    def match_columns(self, batch: Any, /) -> tuple[array[int], list[Id]]:
        rows: array[int] = array("q")
        ids: list[Id] = []
        for row, (attributes, topic) in enumerate(_events_of(batch, self._names())):
            found = self._match(plain_event(attributes, topic, row), topic)
            rows.extend([row] * len(found))
            ids += found
        return rows, ids

    def _names(self) -> frozenset[str]:
        return frozenset(name for _, filter, _ in self._records.values() for name in filter.attributes)

    def _match(self, attributes: dict[str, Any], topic: str) -> list[Id]:
        self._events += 1
        candidates: set[int] = set()
        for key in self._reached({**attributes, TOPIC: topic} if topic else attributes):
            self._probed += 1
            candidates.update(self._clusters.get(key, ()))
        self._candidates += len(candidates)
        found = []
        for number in sorted(candidates):
            id, filter, _ = self._records[number]
            if filter.matches(attributes, topic):
                found.append(id)
        return found

    def _reached(self, attributes: dict[str, Any]) -> Iterator[Key]:
        yield ALWAYS
        for name, value in attributes.items():
            yield ("presence", name)
            if isinstance(value, str):
                text = utf8(value)
                yield ("string", name, text)
                for length in self._prefix_lengths.get(name, ()):
                    if length <= len(text):
                        yield ("prefix", name, text[:length])
            elif not isinstance(value, bool):
                yield ("number", name, value)

    def filter(self, id: Id, /) -> Filter:
        number = self._numbers.get(id)
        if number is None:
            raise UnknownId(f"the index holds no filter under the id {id!r}", id)
        return self._records[number][1]

    def items(self) -> list[tuple[Id, Filter]]:
        return [(id, filter) for id, filter, _ in self._records.values()]

    def counters(self) -> dict[str, int]:
        return {
            "events": self._events,
            "clusters_scanned": self._probed,
            "rows_scanned": self._candidates,
            "programs_run": 0,
            "filters_asked": self._candidates,
            "rows": sum(map(len, self._clusters.values())),
            "clusters": len(self._clusters),
        }

    def __len__(self) -> int:
        return len(self._numbers)


def _access(conjunction: Conjunction) -> list[Key]:
    """The keys under which a conjunction is stored: an event that it matches reaches at least one."""
    if conjunction.sets:
        name, kind, values, _ = min(conjunction.sets, key=lambda finite_set: len(finite_set[2]))
        return [("string" if kind == STRING else "number", name, value) for value in values]
    if conjunction.prefixes:
        name, prefix = max(conjunction.prefixes, key=lambda named: len(named[1]))
        return [("prefix", name, prefix)]
    for name, kind, low, _ in conjunction.boxes:
        if kind != PRESENCE or low == 1.0:
            return [("presence", name)]
    return [ALWAYS]


def _events_of(batch: Any, names: frozenset[str]) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows of an Arrow record batch as events, nulls left out."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError("without the compiled kernel, match_columns needs pyarrow: install holdfast[arrow]") from None
    columns = pyarrow.record_batch(batch)
    read = [name for name in columns.schema.names if name in names]
    if len(set(read)) < len(read):
        raise ValueError("two columns have the same name")
    types = pyarrow.types
    for name in read:
        own = columns.schema.field(name).type
        kind = own.value_type if types.is_dictionary(own) else own
        is_text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        is_number = types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind)
        if not is_text and (name == TOPIC or kind is not own or not (is_number or types.is_boolean(kind))):
            wanted = "filters read integers, floats, strings and booleans"
            if kind is not own:
                wanted = "of dictionaries, those of strings are read"
            elif name == TOPIC:
                wanted = "a topic is a string"
            raise TypeError(f"column {name!r} has the Arrow type {kind}; {wanted}")
    for event in columns.select(read).to_pylist():
        attributes = {name: value for name, value in event.items() if value is not None}
        yield attributes, attributes.pop(TOPIC, "")
