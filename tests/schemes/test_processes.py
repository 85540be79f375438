"""Every scheme in real processes: the site that `init` writes, used and abused as people and peers do."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator

import pytest

import holdfast
from experiments.processes import LOOK_EVERY_S
from holdfast.broker.registry import SCHEMES
from holdfast.kernel.links import Role
from holdfast.model.received import ReceivedEvent
from holdfast.wire.framing import encode_frames
from holdfast.wire.handshake import HANDSHAKE, MAGIC, Dialling, Hello, HelloAccepted
from tests.runtime.hostile import LIMITS, RawPeer, frame
from tests.schemes.sites import KINDS, InitialProcesses, command

COUNT = 20
ARRIVES_WITHIN_S = 30


@pytest.fixture(scope="module", params=KINDS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InitialProcesses]:
    with InitialProcesses(tmp_path_factory.mktemp(request.param), request.param) as processes:
        processes.start()
        yield processes


async def arrive(events: holdfast.Subscription | holdfast.NamedSubscription, count: int) -> list[ReceivedEvent]:
    got = []
    async with asyncio.timeout(ARRIVES_WITHIN_S):
        async for event in events:
            got.append(event)
            if len(got) == count:
                break
    return got


async def until_known(publisher: holdfast.Bus, events: holdfast.Subscription, topic: str) -> None:
    """Publishes until a subscription elsewhere gets it: how soon it is known there, not every scheme says."""

    async def probe() -> None:
        while True:
            await publisher.publish({"probe": True}, topic=topic)
            await asyncio.sleep(LOOK_EVERY_S)

    probing = asyncio.ensure_future(probe())
    try:
        await arrive(events, 1)
    finally:
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)


def test_a_bus_finds_its_scheme_and_what_is_published_at_one_broker_comes_at_another(site: InitialProcesses) -> None:
    here, there = site.names[0], site.names[-1]

    async def exchange() -> list[object]:
        async with (
            site.connect(here, "exchange-p") as publisher,
            site.connect(there, "exchange-s") as subscriber,
            subscriber.subscribe("topic = 'exchange'") as events,
        ):
            await until_known(publisher, events, "exchange")
            for n in range(COUNT):
                await publisher.publish({"n": n}, topic="exchange")
            got: list[object] = []
            while len(got) < COUNT:
                got += [event.attributes["n"] for event in await arrive(events, 1) if "n" in event.attributes]
            return got

    assert asyncio.run(exchange()) == list(range(COUNT))


def test_an_event_whose_time_is_over_is_not_handed_over(site: InitialProcesses) -> None:
    home = site.names[0]

    async def meet() -> list[object]:
        async with site.connect(home, "mortal-p") as publisher, site.connect(home, "mortal-s") as subscriber:
            async with subscriber.subscribe("topic = 'mortal'", name="mortal"):
                pass  # from here on it is kept, and nobody reads it
            await publisher.publish({"n": 1}, topic="mortal", lifetime=0.001)
            await publisher.publish({"n": 2}, topic="mortal", lifetime=600.0)
            await publisher.publish({"n": 3}, topic="mortal")
            async with subscriber.subscribe("topic = 'mortal'", name="mortal") as events:
                return [event.attributes["n"] for event in await arrive(events, 2)]

    assert asyncio.run(meet()) == [2, 3]


def test_a_name_and_the_log_are_kept_over_a_crash_of_every_broker(site: InitialProcesses) -> None:
    home = site.names[0]

    async def publish_some() -> list[int]:
        async with site.connect(home, "kept-p") as bus, bus.subscribe("topic = 'kept'", name="kept") as events:
            for n in range(COUNT):
                await bus.publish({"n": n}, topic="kept")
            got = await arrive(events, COUNT // 2)
            for event in got:
                await events.ack(event)
            return [event.position.number for event in got if event.position is not None]

    async def read_again() -> tuple[list[object], list[tuple[int, object]]]:
        async with site.connect(home, "kept-p") as bus:
            async with bus.subscribe("topic = 'kept'", name="kept") as events:
                rest: list[object] = [event.attributes["n"] for event in await arrive(events, COUNT - COUNT // 2)]
            log = [event async for event in bus.read("topic = 'kept'")]
            return rest, [(event.position.number, event.attributes["n"]) for event in log if event.position is not None]

    positions = asyncio.run(publish_some())
    for name in site.names:
        site.stop(name)
    site.start()
    rest, log = asyncio.run(read_again())
    assert rest == list(range(COUNT // 2, COUNT))
    assert [n for _, n in log] == list(range(COUNT))
    assert [number for number, _ in log][: COUNT // 2] == positions
    assert [number for number, _ in log] == sorted({number for number, _ in log})


def test_status_shows_all_brokers_and_says_so_when_one_is_down(site: InitialProcesses) -> None:
    shown = command("status", str(site.site))
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert all(name in shown.stdout for name in site.names)
    row = json.loads(command("status", str(site.site), "--json").stdout)["brokers"][0]
    assert row["scheme"] == site.scheme.kind
    site.stop(site.names[-1])
    lacking = command("status", str(site.site))
    site.start()
    assert lacking.returncode == 1
    assert site.names[-1] in lacking.stdout


def test_what_a_scheme_measures_is_in_metrics_with_its_kind_and_meaning(site: InitialProcesses) -> None:
    rows = json.loads(command("status", str(site.site), "--json").stdout)["brokers"]
    for row in rows:
        measured = set(row["measures"]) & set(site.scheme.measures)
        assert measured
        with urllib.request.urlopen(f"http://127.0.0.1:{site.metrics[row['broker']]}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        for name in measured:
            assert any(line.startswith(f'holdfast_{name}{{broker="{row["broker"]}"}} ') for line in lines), name
            assert f"# HELP holdfast_{name} {site.scheme.measures[name]}" in lines
            assert f"# TYPE holdfast_{name} {'counter' if name.endswith('_total') else 'gauge'}" in lines


def test_people_publish_and_read_from_a_shell(site: InitialProcesses) -> None:
    at = ["--site", str(site.site), "--broker", site.names[0]]
    line = '{"topic": "shell", "attributes": {"n": 1}}\n{"topic": "shell", "attributes": {"n": 2}}\n'
    published = command("publish", *at, standard_input=line)
    assert published.returncode == 0, published.stderr
    read = command("read", *at, "topic = 'shell'")
    assert [json.loads(line)["attributes"] for line in read.stdout.splitlines()] == [{"n": 1}, {"n": 2}]
    assert command("names", "list", str(site.site), "--broker", site.names[0]).returncode == 0


def test_the_speed_of_a_site_is_measured(site: InitialProcesses) -> None:
    """By processes of their own, which have to know its scheme, too."""
    at = ["--site", str(site.site), "--broker", site.names[0]]
    done = command("bench", *at, "--events", "200", "--rate", "100", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["events"] == 200


def test_commands_for_other_schemes_say_that_this_is_none_of_theirs(site: InitialProcesses) -> None:
    """Whatever the site file says: by their addresses, too."""
    for verb in (["network", "show"], ["group", "members"]):
        for where in (str(site.site), site.url(site.names[0])):
            done = command(*verb, where, "--wait", "0")
            assert done.returncode in (0, 1, 2), done.stderr
            assert done.stdout if done.returncode == 0 else done.stderr
            assert "Traceback" not in done.stderr


# ------------------------------------------------------------------------------------------------------- hostile peers
def serves(site: InitialProcesses) -> bool:
    """Whether all brokers live and take publications."""

    async def publish() -> None:
        for home in site.names:
            async with site.connect(home, f"looks-{home}") as bus:
                async with asyncio.timeout(ARRIVES_WITHIN_S):
                    await bus.publish({}, topic="looks")

    asyncio.run(publish())
    return all(process.poll() is None for process in site.processes.values())


def greeting(site: InitialProcesses, role: Role, name: str) -> bytes:
    return Dialling(role, name, 1, LIMITS, site.scheme.catalogue.versions).opening


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_bytes_that_are_no_handshake_harm_nobody(site: InitialProcesses) -> None:
    for address in (site.addresses[site.names[0]], site.peers[site.names[0]]):
        for data in (
            b"",
            b"\x00" * 64,
            b"GET / HTTP/1.1\r\n\r\n",
            b"\xff" * 4096,
            MAGIC[Role.CLIENT] + b"\xff\xff\xff\xff",
        ):
            with RawPeer(port_of(address), data):
                pass
    assert serves(site)


@pytest.mark.parametrize("role", [Role.CLIENT, Role.BROKER, Role.OPERATOR])
def test_every_message_of_the_scheme_is_refused_from_a_stranger_or_understood_and_harms_nobody(
    site: InitialProcesses, role: Role
) -> None:
    name = site.names[0]
    address = (site.peers if role is Role.BROKER else site.addresses)[name]
    for kind in site.scheme.catalogue.messages.types:
        for body in (b"\x90", b"\xc1", b"\x9f" + b"\x01" * 15, b"\x93\x01\xa0\xc0"):
            with RawPeer(port_of(address), greeting(site, role, f"stranger-{kind}") + frame(kind, body)):
                pass
    assert serves(site)


def test_the_handshake_says_which_scheme_this_is(site: InitialProcesses) -> None:
    hello = Hello(site.scheme.catalogue.versions, "asks", 1)
    with RawPeer(port_of(site.addresses[site.names[0]])) as peer:
        peer.send(MAGIC[Role.CLIENT] + encode_frames([HANDSHAKE.encode(hello)]))
        answer = peer.receive()
    assert isinstance(answer, HelloAccepted)
    assert answer.scheme == site.scheme.kind


def test_a_broker_that_takes_this_one_for_one_of_another_scheme_is_refused_and_people_are_told(
    site: InitialProcesses,
) -> None:
    name = site.names[0]
    log = site.folder / f"{name}.log"

    async def told(line: str) -> None:
        async with asyncio.timeout(ARRIVES_WITHIN_S):
            while line not in log.read_text():
                await asyncio.sleep(LOOK_EVERY_S)

    for kind in (kind for kind in SCHEMES.kinds if kind != site.scheme.kind):
        folder = site.folder / f"beside-{kind}"
        folder.mkdir()
        with InitialProcesses(folder, kind) as others:
            first, second = others.names[:2]
            others.write_view(first, {}, {second: site.peers[name]})
            others.start(first)
            asyncio.run(told(f"scheme: {first} is of the scheme {kind!r}, and {name} of {site.scheme.kind!r}"))
    assert serves(site)


def test_the_folder_of_another_scheme_is_refused_by_what_it_holds(site: InitialProcesses) -> None:
    others = [kind for kind in SCHEMES.kinds if kind != site.scheme.kind]
    name = site.names[0]
    site.stop(name)
    for kind in others:
        folder = site.folder / f"as-{kind}"
        folder.mkdir()
        other = InitialProcesses(folder, kind)
        text = other.site.read_text().replace(f'"{folder}/{other.names[0]}"', f'"{site.folder}/{name}"')
        other.site.write_text(text)
        with other, pytest.raises(RuntimeError, match="exit code 4"):
            other.start(other.names[0])
    site.start(name)
    assert serves(site)


def test_the_simulator_breaks_the_very_site(site: InitialProcesses) -> None:
    broken = command("sim", str(site.site), "--seeds", "1..5")
    assert broken.returncode == 0, broken.stdout + broken.stderr
