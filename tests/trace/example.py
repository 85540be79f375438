"""The run that docs/trace.md shows: a broker crashes while an event is under way."""

from __future__ import annotations

from holdfast.trace.schema import Header
from tests.trace.runs import Run


def example_run() -> Run:
    run = Run(Header(run="stocks/17", system="tree", seed=17, promises=["only-matching", "exactly-once"]))
    run.subscribe("risk/1/1", filter="topic = 'stock' AND price > 100").subscribe("desk/1/1", filter="symbol = 'IBM'")
    run.subscribe("audit/1/1").subscribe("watch/1/1", filter="price > 50", confirm=False)
    run.subscribe("other/1/1", filter="price < 50")
    run.fault("b1>b3", "cut")
    run.publish("feed/1/1", acknowledge=False, topic="stock", symbol="IBM", price=101.5)
    run.hop("feed", "b1", "feed/1/1", what="Publish")
    run.hop("b1", "b2", "feed/1/1", what="Forward").hop("b1", "risk", "feed/1/1", what="Deliver")
    run.acknowledge("feed/1/1").deliver("risk/1/1", "feed/1/1", via="b1").fault("b2").fault("b9")
    run.fault("desk").miss("audit/1/1", reason="restarted empty").fault("b2", "up").confirm("audit/1/1")
    return run.confirm("watch/1/1").hop("b1", "b3", what="Hello").fault("b1>b3", "healed")
