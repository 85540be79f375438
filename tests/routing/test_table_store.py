"""What neighbours told, on the disk: how much of it there is."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.kernel.outbox import Append, RecordingOutbox, Snapshot
from holdfast.kernel.storage import StoredStreams
from holdfast.model import Filter
from holdfast.protocols.routing import table_store
from holdfast.protocols.routing.messages import Routes
from holdfast.protocols.routing.router import Router
from holdfast.protocols.routing.table_store import STREAM, TableStore, apply_routes, recovered_tables
from holdfast.protocols.routing.tellings import Telling


def test_records_between_snapshots_do_not_grow_while_the_tables_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """D1-B4.1: a neighbour that comes and goes for years tells the same again and again."""
    monkeypatch.setattr(table_store, "SNAPSHOT_BYTES", 2_000)
    router = Router(["left"])
    store, out = TableStore(router), RecordingOutbox()
    subscriptions = {f"left.1.{n}": Filter(f"price > {n}") for n in range(5)}
    routes = Routes([], [(entry, str(filter)) for entry, filter in subscriptions.items()], full=True)
    kinds = []
    for _ in range(400):
        apply_routes(router, "left", routes, Telling({}, subscriptions))
        store.told("left", routes, Telling({}, subscriptions), out)
        kinds += [type(effect) for effect in out.take_effects()]
    places = [place for place, kind in enumerate(kinds) if kind is Snapshot]
    gaps = {after - before for before, after in pairwise(places)}
    assert len(places) > 10
    assert len(gaps) == 1, "as many records before the last snapshot as before the first"


def test_tables_are_those_of_the_snapshot_and_what_was_told_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_store, "SNAPSHOT_BYTES", 300)
    router = Router(["left", "right"])
    store, out = TableStore(router), RecordingOutbox()
    kept: StoredStreams = {STREAM: []}
    for n in range(12):
        subscriptions = {f"left.1.{n}": Filter(f"price > {n}")}
        routes = Routes([], [], unsubscribed=[f"left.1.{n - 3}"], full=n == 0)
        apply_routes(router, "left", routes, Telling({}, subscriptions))
        store.told("left", routes, Telling({}, subscriptions), out)
        for effect in out.take_effects():
            if isinstance(effect, Snapshot):
                kept = {STREAM: [effect.record]}
            elif isinstance(effect, Append):
                kept = {STREAM: [*kept[STREAM], effect.record]}
    again = Router(["left", "right"])
    recovered = TableStore(again, recovered_tables(kept))
    assert again.subscriptions.by_source == router.subscriptions.by_source
    assert len(again.subscriptions) == 3
    assert list(recovered.complete) == ["left"]


def test_a_snapshot_holds_everything_that_was_written_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """D1-B4.1: tables, whose word is complete, which topics are advertised for whom, and what was answered. One that
    forgot the topics would make neighbours forget who wants them."""
    monkeypatch.setattr(table_store, "SNAPSHOT_BYTES", 200)
    router = Router(["left"])
    store, out = TableStore(router), RecordingOutbox()
    store.advertised("b1.1.1", "client:p", "stock", out)
    snapshots = []
    for n in range(40):
        subscriptions = {f"left.1.{n}": Filter(f"price > {n}")}
        routes = Routes([], [], full=n == 0)
        apply_routes(router, "left", routes, Telling({}, subscriptions))
        store.told("left", routes, Telling({}, subscriptions), out)
        snapshots += [effect.record for effect in out.take_effects() if isinstance(effect, Snapshot)]
    assert snapshots
    recovered = TableStore(Router(["left"]), recovered_tables({STREAM: [snapshots[-1]]}))
    assert list(recovered.topics) == list(store.topics) == ["b1.1.1"]
    assert recovered.topics == store.topics
    assert recovered.complete == store.complete
    assert recovered.answered == store.answered
