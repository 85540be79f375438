"""`only-matching`: a subscription gets nothing but published events that its filter matches, while it is in place.

Delivered before the publication, to a subscription that nobody asked for or that has ended, or to somebody else than
its owner: all of these are caught. What a named subscription gets was accepted under the filter that the name had then:
any filter that the name has had will do.

Attributes are matched by `holdfast.model.Filter`, never by the index that routed the event.
"""

from __future__ import annotations

from holdfast.model import Filter
from holdfast.trace.checkers.checker import Checker, Handlers
from holdfast.trace.filters import FilterCache
from holdfast.trace.schema import Delivered, Published, Subscribed, Unsubscribed


class OnlyMatching(Checker):
    """Looks at each delivery by itself."""

    def __init__(self, name: str = "only-matching") -> None:
        handlers: Handlers = {
            Delivered: self._on_delivered,
            Published: self._on_published,
            Subscribed: self._on_subscribed,
            Unsubscribed: self._on_unsubscribed,
        }
        super().__init__(name, handlers)
        self._filters = FilterCache()
        self._published: dict[str, Published] = {}
        self._in_place: dict[str, tuple[str, list[Filter]]] = {}
        self._of_names: dict[str, list[Filter]] = {}
        self._ended: dict[str, int] = {}

    def _on_published(self, row: Published) -> None:
        self._published[row.event] = row

    def _on_subscribed(self, row: Subscribed) -> None:
        filters = self._of_names.setdefault(row.name, []) if row.name else []
        filters.append(self._filters[row.filter])
        self._in_place[row.subscription] = (row.subscriber, filters)

    def _on_unsubscribed(self, row: Unsubscribed) -> None:
        if self._in_place.pop(row.subscription, None) is not None:
            self._ended[row.subscription] = row.t

    def _on_delivered(self, row: Delivered) -> None:
        event = self._published.get(row.event)
        found = self._in_place.get(row.subscription)
        if event is None:
            self._object(row, "which nobody had published by then")
        elif found is None:
            ended = self._ended.get(row.subscription)
            if ended is None:
                self._object(row, "which nobody had asked for")
            else:
                self._object(row, f"which had ended at {ended / 1e6:.3f} ms")
        elif found[0] != row.subscriber:
            self._object(row, f"which belongs to {found[0]}")
        elif not any(filter.matches(event.attributes, event.topic) for filter in found[1]):
            self._object(row, f"whose filter does not match it: {found[1][-1]}")

    def _object(self, row: Delivered, problem: str) -> None:
        about_event = problem.startswith("which nobody had published")
        event = f"{row.event}, {problem}," if about_event else row.event
        subscription = row.subscription if about_event else f"{row.subscription}, {problem}"
        message = f"{row.subscriber} got {event} through {subscription}"
        self.violate(row.t, message, (row.event,), (row.subscription,))
