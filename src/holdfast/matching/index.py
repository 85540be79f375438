"""`FilterIndex`: which of many filters match an event, without looking at them all."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, Literal, NoReturn

from holdfast.matching.engine import Engine, Event, Id, plain_batch, plain_event
from holdfast.matching.explanation import Explanation, explain
from holdfast.matching.plan import plan
from holdfast.matching.portable import PortableEngine
from holdfast.matching.relations import Relations
from holdfast.matching.witness import witness
from holdfast.model.batch import EventBatch
from holdfast.model.canonical import NEVER
from holdfast.model.filter import Filter, check_filter

EngineName = Literal["compiled", "portable"]
ENGINES: Final[dict[str, Callable[[], Engine[Any]]]] = {"portable": PortableEngine}
ENGINE: EngineName

try:
    from holdfast.matching._kernel import Kernel
except ImportError:
    ENGINE = "portable"
    warnings.warn(
        "Holdfast's compiled kernel is missing, so filters are matched by the portable engine, which is far slower. "
        "Installing from source with a C compiler at hand builds the kernel.",
        RuntimeWarning,
        stacklevel=2,
    )
else:
    ENGINE = "compiled"
    ENGINES["compiled"] = lambda: Kernel(plain_event, plain_batch)


class FilterIndex(Generic[Id]):
    """A set of filters under ids, and the question which of them match an event.

    >>> index = FilterIndex()
    >>> index.add("cheap", Filter("price < 10"))
    >>> index.add("ibm", Filter("symbol = 'IBM'"))
    >>> index.match({"symbol": "IBM", "price": 9.5})
    ['cheap', 'ibm']

    Ids are any hashable values; results name each id once, in the order of addition. Filters may be added and
    removed at any time between two matches. For a type checker, say what ids are: `FilterIndex[str]()`.

    `engine` is "compiled", the default where the kernel was built, or "portable", in plain Python and far slower.
    How filters stand to each other is looked up in tables of its own, `Relations`, which are made when that is asked
    for the first time, and then kept; from then on, the index is for one thread at a time.
    """

    __slots__ = ("_engine", "_relations")

    def __init__(self, *, engine: EngineName | None = None) -> None:
        name = ENGINE if engine is None else engine
        if name not in ENGINES:
            raise ValueError(f"no engine {name!r} here; there is: {', '.join(sorted(ENGINES))}")
        self._engine: Engine[Id] = ENGINES[name]()
        self._relations: Relations[Id] | None = None

    def add(self, id: Id, filter: Filter) -> None:
        """Adds a filter. An id that is present already raises DuplicateId; nothing changes then."""
        check_filter(filter)
        self._engine.add(id, filter, plan(filter))
        if self._relations is not None:
            self._relations.add(id, filter)

    def remove(self, id: Id) -> None:
        """Removes the filter under this id, or raises UnknownId."""
        self._engine.remove(id)
        if self._relations is not None:
            self._relations.remove(id)

    def match(self, attributes: Mapping[str, Any], topic: str = "") -> list[Id]:
        """The ids of all filters that match an event. Refuses attributes that no event can carry (EventError)."""
        return self._engine.match(attributes, topic)

    def match_batch(self, events: Iterable[Event]) -> list[list[Id]]:
        """`match` for many events: dicts of attributes, or pairs (attributes, topic)."""
        return self._engine.match_batch(events)

    def match_encoded(self, batch: EventBatch) -> dict[Id, Sequence[int]]:
        """Which events of a batch match, by id: the rows of each filter that matches some, rising; all of them as a
        `range`. Ids come in the order in which their filters first match, and, of one event, in that of addition.

        Read from the bytes, without making objects of events, unless a filter must be asked (`filters_asked` of
        `counters` says how often). EventError, with its row, for the first event that holds what no event can.
        """
        if batch.doubtful:
            _refuse_unmatchable(batch)
        return self._engine.match_encoded(batch)

    def rows_matching(self, batch: EventBatch) -> Sequence[int]:
        """The rows of the events of a batch that match at least one filter, rising; all of them as a `range`.

        No more filters are looked at than that takes. EventError as for `match_encoded`.
        """
        if batch.doubtful:
            _refuse_unmatchable(batch)
        return self._engine.rows_matching(batch)

    def match_columns(self, batch: Any) -> tuple[array[int], list[Id]]:
        """`match` for every row of an Arrow record batch: two columns of equal length, event rows and ids.

        Takes anything with `__arrow_c_array__` that is a struct or a record batch, of pyarrow or of another library;
        a table or a data frame is passed batch by batch. A column is an attribute, a null is a missing one, the
        column `topic` is the topic; columns that no filter reads are ignored.
        """
        if not hasattr(batch, "__arrow_c_array__"):
            hint = "; pass its batches one by one" if hasattr(batch, "__arrow_c_stream__") else ""
            raise TypeError(f"match_columns takes an Arrow record batch, not {type(batch).__name__}{hint}")
        return self._engine.match_columns(batch)

    def explain(self, attributes: Mapping[str, Any], id: Id, topic: str = "") -> Explanation:
        """Why the filter under `id` matches this event, or the first predicate that failed, with the value seen."""
        return explain(self._engine.filter(id), attributes, topic)

    def filter(self, id: Id) -> Filter:
        """The filter under this id."""
        return self._engine.filter(id)

    def items(self) -> list[tuple[Id, Filter]]:
        """All ids and filters, in the order of addition."""
        return self._engine.items()

    def covering(self, filter: Filter) -> list[Id]:
        """The ids of the filters that cover `filter`: whatever matches it matches them."""
        return list(self._covering(filter))

    def first_covering(self, filter: Filter) -> Id | None:
        """The first of `covering`, or None. Looks no further."""
        return next(self._covering(filter), None)

    def _covering(self, filter: Filter) -> Iterator[Id]:
        check_filter(filter)
        if filter.canonical_form == NEVER:
            return (id for id, _ in self.items())
        event = witness(filter)
        if event is None:
            return iter(self._related().covering(filter))
        return (id for id in self.match(*event) if self.filter(id).covers(filter))

    def covered_by(self, filter: Filter) -> list[Id]:
        """The ids of the filters that `filter` covers."""
        check_filter(filter)
        return self._related().covered_by(filter)

    def intersecting(self, filter: Filter) -> list[Id]:
        """The ids of the filters that some event may match together with `filter`."""
        check_filter(filter)
        return self._related().intersecting(filter)

    def _related(self) -> Relations[Id]:
        if self._relations is None:
            relations: Relations[Id] = Relations()
            for id, filter in self.items():
                relations.add(id, filter)
            self._relations = relations
        return self._relations

    def counters(self) -> dict[str, int]:
        """What the index holds and how much work it did: rows, clusters, rows scanned, filters asked; and of questions
        how filters stand to each other, groups searched and filters compared.

        For measuring and testing; the names depend on the engine.
        """
        related = {} if self._relations is None else self._relations.counters()
        return self._engine.counters() | {
            name: related.get(name, 0) for name in ("groups_searched", "filters_compared")
        }

    def __reduce__(self) -> NoReturn:  # without this, a copy would share the engine, and its filters
        raise TypeError("a FilterIndex can't be copied or pickled; make another one from its items()")

    def __repr__(self) -> str:
        return f"<FilterIndex of {len(self)} filters>"

    def __len__(self) -> int:
        return len(self._engine)

    def __contains__(self, id: object) -> bool:
        try:
            self._engine.filter(id)  # type: ignore[arg-type]
        except KeyError:
            return False
        return True


def _refuse_unmatchable(batch: EventBatch) -> None:
    """Of events that break a rule, some only pass a limit, and can be matched still."""
    for row in batch.doubtful:
        event = batch.event(row)
        plain_event(event.attributes, event.topic, row)
