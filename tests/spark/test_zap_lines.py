"""Bronze and silver: Spark cuts and judges lines as the brokers do, byte for byte (D4-H1)."""

from __future__ import annotations

from pyspark.sql import SparkSession

from holdfast.apps.zapviewers.lines import Malformed, Report, Zap, parse
from holdfast.apps.zapviewers.pipeline.bronze import once, raw_lines
from holdfast.apps.zapviewers.pipeline.silver import parsed, quarantine, zap_events
from tests.spark.zap_reference import lines_of, moment
from tests.spark.zap_samples import PUBLISHED, events, hard_payloads

PARSED = (
    "struct<position:bigint,line:int,at:timestamp_ntz,box:string,kind:string,to_channel:string,from_channel:string,"
    "status:string,published_at:timestamp,text:binary,reason:string>"
)


def expected(position: int, line: int, text: bytes) -> tuple[object, ...]:
    said = parse(text)
    typed: list[object]
    match said:
        case Malformed(reason):
            return (position, line, *[None] * 6, PUBLISHED.replace(tzinfo=None), text, reason)
        case Zap(to=to, came_from=came_from):
            typed = ["zap", to.decode(), came_from.decode(), None]
        case Report(status=status):
            name = status.decode()
            typed = [name if name.startswith("power") else "sound", None, None, name]
    return (position, line, moment(said), said.box.decode(), *typed, PUBLISHED.replace(tzinfo=None), text, None)


def test_every_line_is_cut_typed_or_refused_as_the_brokers_do(spark: SparkSession) -> None:
    payloads = hard_payloads()
    lines = lines_of(payloads)
    found = parsed(raw_lines(events(spark, payloads)))
    assert found.schema.simpleString() == PARSED
    rows = sorted(found.collect())
    assert [tuple(row) for row in rows] == [expected(*line) for line in lines]
    # The sample has all that it is meant to have.
    reasons = {row.reason for row in rows}
    assert reasons == {
        None, "empty", "too long", "not 4 or 5 fields", "no date", "no time", "no address", "no status", "no channel",
    }  # fmt: skip
    assert {row.kind for row in rows} == {None, "zap", "sound", "power on", "power off"}


def test_events_and_quarantine_are_all_lines_each_once(spark: SparkSession) -> None:
    payloads = hard_payloads(seed=2)
    lines = raw_lines(events(spark, payloads))
    good, bad = zap_events(lines), quarantine(lines)
    assert good.schema.simpleString() == (
        "struct<position:bigint,line:int,at:timestamp_ntz,box:string,kind:string,to_channel:string,from_channel:string,"
        "status:string,published_at:timestamp>"
    )
    assert bad.schema.simpleString() == (
        "struct<position:bigint,line:int,text:binary,reason:string,published_at:timestamp>"
    )
    keys = good.select("position", "line").unionAll(bad.select("position", "line"))
    assert sorted(map(tuple, keys.collect())) == [line[:2] for line in lines_of(payloads)]


def test_an_event_that_comes_again_is_taken_once(spark: SparkSession) -> None:
    payloads = hard_payloads()[:20]
    found = raw_lines(once(events(spark, payloads + payloads[5:15])))
    assert sorted((row.position, row.line, bytes(row.text)) for row in found.collect()) == lines_of(payloads)
