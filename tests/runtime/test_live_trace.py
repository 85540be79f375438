"""What brokers trace while they serve: bounded, sampled alike everywhere, and readable by `holdfast trace`."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from experiments.broker_network import BrokerNetwork
from holdfast.cli.main import main
from holdfast.cli.trace_file import open_trace
from holdfast.kernel.outbox import Note
from holdfast.protocols.sessions.messages import Publish
from holdfast.runtime.live_trace import TRACE_BYTES_MIN, LiveTrace, TraceSettings, is_traced
from holdfast.trace import schema
from holdfast.trace.checkers import Watch, make_checker
from holdfast.trace.errors import SampledTrace, TraceError
from tests.runtime.broker_process import free_port
from tests.sessions.bench import batch

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """`holdfast …`: its exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def opened(path: Path, share: float = 1.0, bytes_max: int = 2**20, broker: str = "b1") -> LiveTrace:
    return LiveTrace(TraceSettings(str(path), share=share, bytes_max=bytes_max), broker, "site", "tree")


def rows_of(path: Path) -> list[schema.Row]:
    with open_trace(str(path)) as (_, rows):
        return list(rows)


def publish(*numbers: int, **fields: Any) -> Publish:
    return Publish(numbers[0], batch(*numbers, **fields), 0)


# ------------------------------------------------------------------------------------------------------------- rows
def test_what_a_client_published_and_what_went_on_links_is_told(tmp_path: Path) -> None:
    trace = opened(tmp_path / "t")
    trace.fault("b1", "up")
    trace.received("client:p", [publish(1, 2, topic="t"), publish(2, 3, topic="t")])
    trace.received("b2", [publish(7)])  # its own trace tells of that
    trace.sent("b2", publish(1), 40)
    trace.note(Note("accepted", {"node": "b1", "events": ["p/1/1"]}))
    trace.note(Note("control", {"what": "leader", "detail": {"replica": "b1"}}))
    trace.link("b2", is_up=False)
    trace.link("client:p", is_up=False)
    trace.close()
    rows = rows_of(tmp_path / "t")
    assert [row.kind for row in rows] == [
        "fault", "published", "published", "hop", "published", "hop", "hop", "accepted", "control", "fault",
    ]  # fmt: skip
    assert [row.event for row in rows if isinstance(row, schema.Published)] == ["p/1/1", "p/1/2", "p/1/3"], "once each"
    hops = [(row.source, row.target, row.events) for row in rows if isinstance(row, schema.Hop)]
    assert hops == [("p", "b1", ["p/1/1", "p/1/2"]), ("p", "b1", ["p/1/2", "p/1/3"]), ("b1", "b2", ["p/1/1"])]
    assert [(row.component, row.state) for row in rows if isinstance(row, schema.Fault)] == [
        ("b1", "up"),
        ("b1>b2", "cut"),
    ]
    assert [row.node for row in rows if isinstance(row, schema.Control)] == ["b1"]


@pytest.mark.parametrize(
    "message",
    [
        Publish(1, msgspec.Raw(b"\xc1"), 0),
        Publish(1, msgspec.Raw(b"\x91\x01"), 0),
        publish(1, x=float("nan")),
        publish(1, publisher="someone else"),
    ],
    ids=["no msgpack", "no events", "no number", "another's name"],
)
def test_what_a_client_may_not_publish_is_not_told_as_published(tmp_path: Path, message: Publish) -> None:
    trace = opened(tmp_path / "t")
    trace.received("client:p", [message])
    trace.close()
    assert not [row for row in rows_of(tmp_path / "t") if isinstance(row, schema.Published)]


def test_a_sample_has_the_same_events_at_all_brokers_and_all_control_rows(tmp_path: Path) -> None:
    for broker in ("b1", "b2"):
        trace = opened(tmp_path / broker, share=0.2, broker=broker)
        for number in range(1, 201):
            trace.received("client:p", [publish(number)])
            trace.note(Note("control", {"what": "x", "detail": {}}))
            trace.note(Note("queue_length", {"node": broker, "queue": "q", "length": 1, "limit": 2, "bytes": 3}))
            trace.note(
                Note("expired", {"event": f"p/1/{number}", "subscription": "s", "subscriber": "s", "node": "b1"})
            )
        trace.close()
    found = []
    for broker in ("b1", "b2"):
        rows = rows_of(tmp_path / broker)
        assert sum(isinstance(row, schema.Control) for row in rows) == 200
        assert not any(isinstance(row, schema.QueueLength) for row in rows)
        told = [row.event for row in rows if isinstance(row, schema.Published)]
        assert told == [row.event for row in rows if isinstance(row, schema.Expired)]
        assert told == [event for row in rows if isinstance(row, schema.Hop) for event in row.events]
        found.append(told)
    assert found[0] == found[1] == [f"p/1/{n}" for n in range(1, 201) if is_traced(f"p/1/{n}", 0.2)]
    assert 20 <= len(found[0]) <= 60


# ------------------------------------------------------------------------------------------------------------- file
def test_a_trace_takes_no_more_than_it_may_and_has_the_newest_rows(tmp_path: Path) -> None:
    path = tmp_path / "t"
    trace = opened(path, bytes_max=4_000)
    for number in range(1, 101):
        trace.received("client:p", [publish(number)])
        trace.flush()
        sizes = [file.stat().st_size for file in tmp_path.iterdir()]
        assert sum(sizes) <= 4_000
        assert len(sizes) <= 2
    trace.close()
    kept = [
        row.sequence for file in (tmp_path / "t.1", path) for row in rows_of(file) if isinstance(row, schema.Published)
    ]
    assert kept == list(range(kept[0], 101))
    assert 1 < kept[0] < 100
    with open_trace(str(path)) as (header, _):
        assert header.settings["continues"] is True


def test_a_restarted_broker_keeps_what_the_one_before_wrote(tmp_path: Path) -> None:
    for sequence in (1, 2, 3):
        trace = opened(tmp_path / "t")
        trace.received("client:p", [publish(sequence)])
        trace.close()
    told = {
        file.name: [r.sequence for r in rows_of(file) if isinstance(r, schema.Published)] for file in tmp_path.iterdir()
    }
    assert told == {"t": [3], "t.1": [2]}


def test_a_disk_that_fails_ends_the_trace_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trace = opened(tmp_path / "t", bytes_max=4_000)
    (tmp_path / "t.1").mkdir()
    (tmp_path / "t.1" / "in the way").touch()
    for number in range(1, 101):
        trace.received("client:p", [publish(number)])
        trace.flush()
    trace.close()
    assert len([record for record in caplog.records if "the trace" in record.message]) == 1


def test_a_file_that_can_not_be_made_is_said_before_anything_is_served(tmp_path: Path, call: Call) -> None:
    site = tmp_path / "site.toml"
    site.write_text(f'[[broker]]\nid = "b1"\naddress = "127.0.0.1:{free_port()}"\n')
    code, _, problem = call("broker", str(site), "--trace", str(tmp_path / "no" / "t"), "--log-level", "quiet")
    assert (code, "No such file or directory" in problem) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--trace-sample", "0.5"), "say --trace too"),
        (("--trace", "t", "--trace-sample", "0"), "has to be above 0 and at most 1"),
        (("--trace", "t", "--trace-sample", "nan"), "has to be above 0 and at most 1"),
        (("--trace", "t", "--trace-bytes", "1000"), f"has to be {TRACE_BYTES_MIN:,} or more"),
        (("--trace", "t"), "2 brokers are served: say --id"),
    ],
)
def test_wrong_usage_is_refused(tmp_path: Path, call: Call, arguments: Sequence[str], problem: str) -> None:
    site = tmp_path / "site.toml"
    entries = [f'[[broker]]\nid = "b{n}"\naddress = "127.0.0.1:{n}"\npeer_address = "127.0.0.1:1{n}"\n' for n in (1, 2)]
    site.write_text("".join(entries) + '[[link]]\nbetween = ["b1", "b2"]\n')
    code, _, told = call("broker", str(site), *arguments)
    assert (code, problem in told) == (2, True)


# --------------------------------------------------------------------------------------------------------- questions
def test_nothing_is_concluded_from_what_brokers_do_not_tell(tmp_path: Path, call: Call) -> None:
    """A checker that asks about clients would take all their events for lost."""
    for share in (1.0, 0.5):
        path = tmp_path / f"{share}"
        trace = opened(path, share=share)
        trace.received("client:p", [publish(*range(1, 50))])
        trace.note(Note("queue_length", {"node": "b1", "queue": "q", "length": 3, "limit": 2}))
        trace.close()
    code, told, _ = call("trace", "check", "--trace", str(tmp_path / "1.0"))
    why = "brokers' traces do not say what clients asked for and got"
    assert code == 1
    assert told.splitlines()[:3] == [
        f"not checked  only-matching: {why}",
        f"not checked  at-most-once: {why}",
        "FAILED  bounded-queues: 1 violation",
    ]
    code, told, _ = call("trace", "check", "--trace", str(tmp_path / "0.5"), "--checkers", "all")
    assert code == 2
    assert {line.split("  ")[0] for line in told.splitlines()} == {"not checked"}
    assert "not checked  bounded-queues: a sample leaves notes on queues out" in told
    assert call("trace", "reliability", "--trace", str(tmp_path / "1.0"))[0] == 2
    with (
        open_trace(str(tmp_path / "1.0")) as (header, _),
        pytest.raises(SampledTrace, match="no-loss can't be checked"),
    ):
        Watch(header, [make_checker("no-loss")])
    shown = call("trace", "summary", "--trace", str(tmp_path / "0.5"))[1]
    assert shown.startswith(
        "brokers site/b1, system tree, of clients, what they published and were sent; "
        "sampled: 50% of the events, and no queues\n"
    )


def test_half_a_line_is_said_and_left_out(tmp_path: Path, call: Call) -> None:
    trace = opened(tmp_path / "t")
    trace.received("client:p", [publish(1), publish(2)])
    trace.close()
    whole = (tmp_path / "t").read_bytes()
    (tmp_path / "t").write_bytes(whole[:-20])
    code, told, said = call("trace", "story", "p/1/1", "--trace", str(tmp_path / "t"))
    assert (code, said) == (0, f"{tmp_path}/t: line 5, its last, is cut off, and left out\n")
    assert "published  by p" in told


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path, call: Call) -> None:
    opened(tmp_path / "t").close()
    LiveTrace(TraceSettings(str(tmp_path / "u")), "b1", "elsewhere", "tree").close()
    header = schema.Header(run="r/1", system="tree")
    (tmp_path / "run").write_bytes(msgspec.json.encode(header) + b"\n")
    code, _, said = call("trace", "summary", "--trace", str(tmp_path / "t"), str(tmp_path / "u"))
    assert (code, said) == (2, "holdfast: these are traces of several sites: site, elsewhere\n")
    code, _, said = call("trace", "summary", "--trace", str(tmp_path / "t"), str(tmp_path / "run"))
    assert (code, "is the trace of a whole run, r/1: ask about it alone" in said) == (2, True)
    with pytest.raises(TraceError):
        raise SampledTrace("is one of them")


# ----------------------------------------------------------------------------------------------------- real brokers
class TracedNetwork(BrokerNetwork):
    def more_arguments(self, name: str) -> Sequence[str]:
        return ("--trace", str(self.folder / f"{name}.jsonl"))


@pytest.mark.full
def test_the_story_of_an_event_over_three_brokers(tmp_path: Path, call: Call) -> None:
    """b1 – b2 – b3: the publisher is at b1, the subscribers at b3; each broker wrote its part."""

    async def scene(network: TracedNetwork) -> str:
        await network.begin()
        async with (
            holdfast.connect(network.url("b3"), name="s") as subscriber,
            subscriber.subscribe("n > 0", name="kept") as kept,
            subscriber.subscribe("n > 0") as events,
            holdfast.connect(network.url("b1"), name="p") as publisher,
        ):
            await publisher.publish({"n": 1, "symbol": "IBM"}, topic="stock")
            event = await events.next()
            assert (await kept.next()).id == event.id
        return str(event.id)

    with TracedNetwork(tmp_path, (("b1", "b2"), ("b2", "b3")), "buffered") as network:
        event = asyncio.run(scene(network))
        network.stop("b2")  # by kill -9
    files = [str(tmp_path / f"{name}.jsonl") for name in ("b3", "b1", "b2")]
    code, told, said = call("trace", "story", event, "--trace", *files)
    assert (code, said) == (0, ""), said
    lines = told.splitlines()
    assert lines[0] == f"event {event} in run site/b3,b1,b2 (tree)"
    assert lines[2].startswith("published by p at 20")
    assert "  symbol  =  'IBM'" in lines
    steps = [line.split(" ms  ", 1)[1] for line in lines if " ms  " in line and "!" not in line]
    way = [step.split("  ")[0] for step in steps]
    assert way[:5] == ["published", "p -> b1", "b1 -> b2", "b2 -> b3", "b3 -> s"]
    assert set(way[5:]) == {"b3 -> s"}
    assert lines[-1] == "sent to s by b3; brokers' traces do not say who wanted it, and what clients handed on"
    code, told, _ = call("trace", "check", "--trace", *files)
    assert (code, told.splitlines()[-1]) == (0, "ok      bounded-queues")
    told = call("trace", "summary", "--trace", *files)[1]
    assert "1  published" in told
    assert "routed" in told


@pytest.mark.full
def test_up_traces_each_broker_into_a_folder_and_the_same_sample_of_events(tmp_path: Path, call: Call) -> None:
    network = BrokerNetwork(tmp_path, (("b1", "b2"),), "buffered")
    folder = tmp_path / "traces"
    command = [sys.executable, "-m", "holdfast.cli", "up", str(network.site), "--log-level", "quiet"]
    command += ["--trace", str(folder), "--trace-sample", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, ExitStack() as stack:
        stack.callback(process.kill)
        assert process.stdout is not None
        assert any(line.startswith("broker b2 serves") for line in process.stdout)
        with (
            holdfast.blocking.connect(network.url("b2"), name="s") as there,
            there.subscribe("n >= 0") as events,
            holdfast.blocking.connect(network.url("b1"), name="p") as bus,
        ):
            bus.publish_many({"n": n} for n in range(200))
            got = [events.next(timeout_s=20).id for _ in range(200)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    files = [folder / "b1.jsonl", folder / "b2.jsonl"]
    for file, source in zip(files, ("b1", "b2"), strict=True):
        rows = rows_of(file)
        sent = [event for row in rows if isinstance(row, schema.Hop) and row.source == source for event in row.events]
        assert list(dict.fromkeys(sent)) == [event for event in got if is_traced(event, 0.1)]
        assert isinstance(rows[-1], schema.Fault)
        assert (rows[-1].component, rows[-1].state) == (source, "stopped")
    told = call("trace", "story", next(e for e in got if is_traced(e, 0.1)), "--trace", *map(str, files))[1]
    assert "(tree, sampled: rows are left out)" in told
    assert "sent to s by b2;" in told
