"""The papers' interface: a handler that is replicated, asked, and outlives its leader; topics and queues."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.replicated_counter import Counter
from experiments.replication.group import ReplicaGroup
from holdfast.client import p2s
from holdfast.client.p2s import HandledRequests, Kind, Replica, Response, dial, new_replica, p_dial, s_dial, url_of
from holdfast.errors import ApplicationFailed, HoldfastError, NoApplication, SiteError, Superseded
from holdfast.runtime.site_file import read_site
from tests.repository import ROOT
from tests.runtime.broker_process import BrokerProcess

EXAMPLE = [sys.executable, "-m", "examples.replicated_counter"]
PATIENCE_S = 60


def start(group: ReplicaGroup, *names: str) -> None:
    """Runs replicas of the example, as a user would."""
    for name in names:
        number = group.names.index(name)
        with (group.folder / f"{name}.log").open("a") as log:
            group.processes[name] = subprocess.Popen(
                [*EXAMPLE, str(group.site), str(number)], stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT
            )


def test_the_count_stays_right_when_leaders_are_killed(tmp_path: Path) -> None:
    """D4-C4, D4-C6: every request is executed once, also those that are under way when a leader dies."""
    with ReplicaGroup(tmp_path) as group:
        start(group, *group.names)
        leader = asyncio.run(group.leader())
        with dial(str(group.site)) as conn:
            killed = []
            for expected in range(1, 61):
                if expected in (20, 40):
                    # Beside the next requests, so that some of them are under way.
                    killing = threading.Thread(target=group.stop, args=(leader,))
                    killing.start()
                    killed.append(leader)
                assert conn.send_request(b"1", PATIENCE_S) == str(expected).encode()
                if expected in (20, 40):
                    killing.join()
                    start(group, leader)
                    leader = asyncio.run(group.leader())
            assert len(killed) == 2
        shown = subprocess.run([*EXAMPLE, str(group.site), "add"], capture_output=True, text=True, cwd=ROOT, check=True)
        assert shown.stdout == "61\n"


@contextmanager
def replicas(group: ReplicaGroup) -> Iterator[list[Replica]]:
    """The same in threads of this process."""
    made = [new_replica(number, 1, str(group.site), Counter()) for number in range(len(group.names))]
    try:
        for replica in made:
            replica.start()
        yield made
    finally:
        for replica in made:
            replica.stop()


def test_replicas_in_threads_are_stopped_and_find_their_state_again(tmp_path: Path) -> None:
    group = ReplicaGroup(tmp_path)
    with replicas(group) as made, dial(str(group.site)) as conn:
        assert [replica.name for replica in made] == group.names
        assert [conn.send_request(b"2", PATIENCE_S) for _ in range(3)] == [b"2", b"4", b"6"]
        with pytest.raises(HoldfastError, match="started already"):
            made[0].start()
        with pytest.raises(ApplicationFailed, match=r"ValueError: invalid literal for int\(\)"):
            conn.send_request(b"no number", PATIENCE_S)
    with replicas(group), dial(group.url) as conn:
        assert conn.send_request(b"1", PATIENCE_S) == b"7"


def test_a_replica_that_can_not_start_says_why_where_it_is_started(tmp_path: Path) -> None:
    group = ReplicaGroup(tmp_path, replicas=1)
    one = new_replica(0, 1, str(group.site), Counter())
    one.start()
    two = new_replica(0, 1, str(group.site), Counter())
    with pytest.raises(HoldfastError, match="another process has the log open"):
        two.start()
    one.stop()
    one.stop()
    with pytest.raises(HoldfastError, match=r"application is examples\.replicated_counter:Counter of 1, here .* of 2"):
        new_replica(0, 2, str(group.site), Counter()).start()


@pytest.mark.parametrize(
    ("number", "change", "problem"),
    [
        (3, ("", ""), "there is no replica 3; the group's are 0 to 2"),
        (-1, ("", ""), "there is no replica -1"),
        (0, ("[scheme]", '[application]\nfactory = "a:b"\n[scheme]'), "leave \\[application\\] out"),
        (0, ('address = "127.0.0.1', 'address = "192.0.2.1'), "without TLS"),
    ],
)
def test_a_site_that_has_no_such_replica_is_refused(
    tmp_path: Path, number: int, change: tuple[str, str], problem: str
) -> None:
    site = ReplicaGroup(tmp_path).site
    site.write_text(site.read_text().replace(*change, 1))
    with pytest.raises(SiteError, match=problem):
        new_replica(number, 1, str(site), Counter())


def test_a_broker_on_its_own_is_no_replica(tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text('[[broker]]\nid = "b1"\n')
    with pytest.raises(SiteError, match="a replica is one of a group, and this is tree: say paxos"):
        new_replica(0, 1, str(site), Counter())


def test_a_state_has_its_slot_marker() -> None:
    """D4-B10."""
    one, other = HandledRequests(Counter()), HandledRequests(Counter())
    for request in (b"1", b"2"):
        one.execute(request)
    other.set_state(one.get_state())
    assert other.get_state() == one.get_state()
    assert other.execute(b"3") == b"6"
    assert other.observe(1, 2, "t", {}, b"") == []

    class Behind(Counter):
        def get_state(self, slot_marker: int) -> tuple[int, bytes]:
            return slot_marker - 1, b""

    with pytest.raises(ValueError, match="a state of slot -1, not of 0"):
        HandledRequests(Behind()).get_state()


def test_the_page_shows_the_example_as_it_is() -> None:
    example = (ROOT / "examples" / "replicated_counter.py").read_text()
    assert f"```python\n{example}```" in (ROOT / "docs" / "p2s.md").read_text()
    code = example.rpartition('"""\n')[2].strip()
    assert len([line for line in code.splitlines() if line]) <= 30


# ----------------------------------------------------------------------------------------------------------- topics
@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("site")) as process:
        yield process


def test_publications_of_a_topic_come_to_its_queue_until_it_is_unsubscribed(broker: BrokerProcess) -> None:
    with p_dial("feed", broker.url) as publications, s_dial("reader", broker.url) as subscriptions:
        top, quoted = subscriptions.subscribe("top-10"), subscriptions.subscribe("o'clock")
        for number in range(5):
            publications.publish("top-10", f"list {number}")
        assert publications.publish("o'clock", "nöon") == Response(Kind.PUBLISH, True, "o'clock", "nöon")
        got: list[str] = []
        while len(got) < 5:
            got += top.get(timeout=PATIENCE_S)
        assert got == [f"list {number}" for number in range(5)]
        assert quoted.get(timeout=PATIENCE_S) == ["nöon"]
        with pytest.raises(HoldfastError, match="subscribed to already"):
            subscriptions.subscribe("top-10")
        assert subscriptions.unsubscribe("top-10") == Response(Kind.UNSUBSCRIBE, True, "top-10")
        assert top.get(timeout=PATIENCE_S) == []
        assert not subscriptions.unsubscribe("top-10").acknowledged
        publications.publish("top-10", "nobody sees this")
        assert top.empty()
    assert quoted.get(timeout=PATIENCE_S) == []
    assert subscriptions.problems == {}


def test_a_subscriber_whose_name_is_taken_is_told_so(broker: BrokerProcess) -> None:
    subscriptions = s_dial("twice", broker.url)
    queue = subscriptions.subscribe("t")
    with s_dial("twice", broker.url):
        assert queue.get(timeout=PATIENCE_S) == []
        assert isinstance(subscriptions.problems["t"], Superseded)


def test_a_broker_that_runs_no_handler_says_so(broker: BrokerProcess) -> None:
    with dial(broker.url) as conn, pytest.raises(NoApplication):
        conn.send_request(b"1")


def test_a_configuration_is_a_site_file_a_url_or_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D4-A8."""
    monkeypatch.delenv(p2s.CONFIG_VARIABLE, raising=False)
    group = ReplicaGroup(tmp_path)
    assert url_of("") == p2s.DEFAULT_URL
    assert url_of("holdfast://h:1") == "holdfast://h:1"
    assert url_of(str(group.site)) == group.url
    monkeypatch.setenv(p2s.CONFIG_VARIABLE, str(group.site))
    assert url_of("") == group.url
    assert [entry.address for entry in read_site(str(group.site)).brokers] == list(group.addresses.values())
