"""Brokers that listen on all addresses of their machine tell others one that can be reached."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import holdfast
from experiments.replication.group import ReplicaGroup
from holdfast.runtime.site_file import read_site
from tests.runtime.test_group import cli, run

ACCEPTED = '[security]\nplaintext = "I accept"\n'


class GroupOnAllAddresses(ReplicaGroup):
    """Its replicas listen on 0.0.0.0, as those in containers do, and say where they are found."""

    def broker_text(self, name: str, addresses: Mapping[str, str], peers: Mapping[str, str]) -> str:
        ports = [text.rpartition(":")[2] for text in (addresses[name], peers[name])]
        return (
            f'[[broker]]\nid = "{name}"\ndata = "{self.folder}/{name}"\n'
            f'address = "0.0.0.0:{ports[0]}"\nadvertise = "{addresses[name]}"\n'
            f'peer_address = "0.0.0.0:{ports[1]}"\npeer_advertise = "{peers[name]}"\n'
        )


def test_a_group_on_all_addresses_sends_its_clients_and_members_to_those_that_it_advertises(tmp_path: Path) -> None:
    async def scene(group: ReplicaGroup) -> None:
        leader = await group.leader()
        follower = next(name for name in group.names if name != leader)
        told: list[str] = []
        url = f"holdfast://{group.addresses[follower]}"
        async with holdfast.connect(url, on_state=lambda state, detail: told.append(detail)) as bus:
            await bus.publish({"n": 1})
            await asyncio.sleep(0)
        assert told[-1] in (f"{leader} at {group.addresses[leader]}", "the bus was closed")
        assert f"{leader} at {group.addresses[leader]}" in told
        assert not [detail for detail in told if "0.0.0.0" in detail]

    with GroupOnAllAddresses(tmp_path, rest=ACCEPTED) as group:
        group.start()
        run(lambda: scene(group))
        shown = cli("status", str(group.site), "--json")
        rows = json.loads(shown.stdout)["brokers"]
        assert [(row["broker"], row["address"], row["state"]) for row in rows] == [
            (name, group.addresses[name], "up") for name in group.names
        ]
        assert "0.0.0.0" not in shown.stdout
        assert cli("group", "leader", str(group.site)).stdout.split()[2] in group.addresses.values()
        site = read_site(str(group.site))
        members = site.told(site.brokers[0]).places
        assert [(m.peer_address, m.client_address) for m in members] == [
            (group.peers[name], group.addresses[name]) for name in group.names
        ]
