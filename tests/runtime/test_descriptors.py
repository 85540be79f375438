"""A broker does not run out of file descriptors, and one that did goes on when it has some again."""

from __future__ import annotations

import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from holdfast.protocols.sessions.messages import SessionOpened
from holdfast.runtime.descriptors import RESERVE, fitted
from holdfast.wire.handshake import HelloRefused, Reason
from holdfast.wire.limits import WireLimits
from tests.runtime.broker_process import BrokerProcess
from tests.runtime.hostile import Bystanders, RawPeer, Watch, opened
from tests.tiers import one_always

DESCRIPTORS = 160


def test_limits_are_cut_down_to_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    for soft, hard, expected in (
        (20_000, 20_000, (10_000, 1_000)),
        (256, 20_000, (10_000, 1_000)),
        (256, resource.RLIM_INFINITY, (10_000, 1_000)),
        (256, 1_064, (750, 250)),
        (64, 64, (1, 1)),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, (10_000, 1_000)),
    ):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limits=(soft, hard): limits)
        limits = fitted(WireLimits())
        assert (limits.connections, limits.handshakes) == expected
    wanted = 10_000 + 1_000 + RESERVE
    assert raised == [(wanted, 20_000), (wanted, resource.RLIM_INFINITY), (1_064, 1_064)]


def test_nobody_is_warned_of_a_limit_that_leaves_room_for_many(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Four brokers in one process would like 44,064 descriptors, and do well with 20,000."""
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: None)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 20_000))
    caplog.set_level("INFO", logger="holdfast")
    assert fitted(WireLimits(), 4).connections == 3_984
    assert caplog.records == []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 1_024))
    assert fitted(WireLimits(), 4).connections == 180
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            "a broker takes 180 connections at most, since this process may open no more than 1024 files: start it with"
            " a higher limit, 44064 for 10000 connections (ulimit -n 44064; LimitNOFILE=44064 in a systemd unit)",
        )
    ]


def test_connections_do_not_use_up_the_descriptors(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, descriptors=DESCRIPTORS) as broker:
        bystanders = Bystanders(broker.url)
        room = DESCRIPTORS - RESERVE
        with Watch(broker, bystanders):
            allowed = room - room // 4 - 2  # the bystanders are two
            peers = [RawPeer(broker.port, opened(f"peer-{n}")) for n in range(allowed)]
            for peer in peers:
                peer.until(SessionOpened)
            silent = [RawPeer(broker.port) for _ in range(2 * DESCRIPTORS)]
            with RawPeer(broker.port, opened("late")) as late:
                refused = late.until_closed()
            assert isinstance(refused, HelloRefused)
            assert refused.reason is Reason.LIMIT
            assert refused.problem.endswith(f"connections, {allowed + 2}")
            peers[0].close()
            bystanders.go_on()
            with RawPeer(broker.port, opened("later")) as later:
                later.until(SessionOpened)
            for peer in (*peers, *silent):
                peer.close()
        bystanders.stop()
        assert broker.stop() == 0


SERVES_WITHOUT_ROOM = """
    import asyncio, resource, sys
    from holdfast.broker.broker_settings import BrokerSettings
    from holdfast.kernel.links import Role
    from holdfast.runtime import loop
    from holdfast.runtime.runner import NodeRunner
    from holdfast.broker.registry import SCHEMES
    from holdfast.schemes.tree.parts import make_broker

    async def serve():
        settings, spoken = BrokerSettings("b1"), SCHEMES["tree"].catalogue
        runner = NodeRunner("b1", Role.BROKER, lambda rng, streams: make_broker(settings, rng, streams), spoken)
        runner.start()
        print(await runner.listen((Role.CLIENT,), "127.0.0.1", 0), flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        used = resource.getrusage(resource.RUSAGE_SELF)
        await runner.stop()
        print(used.ru_utime + used.ru_stime, bool(runner.failure), flush=True)

    resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
    (loop.run if sys.argv[1] == "uvloop" else asyncio.run)(serve())
"""


@pytest.mark.parametrize("loop", one_always(["uvloop", "asyncio"]))
def test_a_broker_without_descriptors_neither_spins_nor_falls_and_goes_on_later(loop: str) -> None:
    command = [sys.executable, "-c", textwrap.dedent(SERVES_WITHOUT_ROOM), loop]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        first = RawPeer(port, opened("first"))
        first.until(SessionOpened)
        crowd = [RawPeer(port) for _ in range(150)]
        # Those that got in are closed for saying nothing, and there is room again; whoever was there notices nothing.
        crowd[0].until_closed()
        for peer in crowd:
            peer.close()
        for n in range(20):
            with RawPeer(port, opened(f"late-{n}")) as late:
                if late.receive() is not None:
                    late.until(SessionOpened)
                    break
        else:
            raise AssertionError("nobody gets in any more")
        process.stdin.close()
        seconds, failed = process.stdout.readline().split()
        assert failed == "False"
        # Five seconds of a full table: a loop that tried again all the time would have used as many.
        assert float(seconds) < 3.0
        first.close()
