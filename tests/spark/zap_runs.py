"""What tests of runs share: a broker that counts viewers itself, its log, and what is to come of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast import blocking
from holdfast.apps.zapviewers.audience import Audience
from holdfast.apps.zapviewers.pipeline.facts import Facts, read_facts
from holdfast.apps.zapviewers.pipeline.report.figures import viewers_now
from tests.runtime.broker_process import BrokerProcess
from tests.spark.zap_samples import mixed_payloads

APPLICATION = '[application]\nfactory = "holdfast.apps.zapviewers.viewership:Viewership"\n'


def counting_broker(folder: Path) -> BrokerProcess:
    """A broker that counts viewers itself, and keeps a log."""
    return BrokerProcess(folder, entry=f'data = "{folder / "data"}"\n', rest=APPLICATION)


def publish(url: str, payloads: Sequence[bytes]) -> int:
    """Publishes lines, and something that is none of the pipeline's business; gives where the log ends."""
    with blocking.connect(url) as bus:
        for payload in payloads:
            bus.post({}, topic="zap", payload=payload)
        bus.flush()
        bus.publish({"symbol": "IBM"}, topic="stock", payload=b"no line")
        return bus.head().number


def logged(url: str) -> list[tuple[int, bytes]]:
    """The positions and payloads of all lines that a log holds."""
    with blocking.connect(url) as bus:
        return [(event.position.number, event.payload) for event in bus.read("topic = 'zap'") if event.position]


def counted(payloads: Sequence[bytes]) -> Audience:
    audience = Audience()
    for payload in payloads:
        audience.take(payload)
    return audience


def assert_counts(folder: Path, facts: Facts, audience: Audience) -> None:
    expected = (audience.lines, audience.malformed, audience.boxes, audience.watching)
    assert (facts.lines, facts.malformed, facts.boxes, facts.watching) == expected
    viewers = dict(zip(audience.names, audience.counts(), strict=True))
    assert {name: count for name, count in viewers_now(folder).items() if count} == {
        name: count for name, count in viewers.items() if count
    }
    assert read_facts(folder) == facts


def halves() -> tuple[list[bytes], list[bytes]]:
    payloads = [payload for _, payload in mixed_payloads()]
    return payloads[: len(payloads) // 2], payloads[len(payloads) // 2 :]


def known(folder: Path) -> Facts:
    facts = read_facts(folder)
    assert facts is not None
    return facts
