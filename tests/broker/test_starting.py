"""A broker that starts: what its journal makes it do, and what it says of data that are not its own."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.broker.broker_settings import BrokerSettings
from holdfast.broker.site import site_from_toml
from holdfast.broker.site_node import site_node
from holdfast.errors import ApplicationChanged
from holdfast.kernel.inputs import Started
from holdfast.kernel.outbox import RecordingOutbox, Snapshot
from holdfast.protocols.core.commands import Applied, OpenSession
from holdfast.schemes.tree.parts import make_broker

SITE = '[[broker]]\nid = "b1"\ndata = "var/b1"\n'


def journal(commands: int, application: str = "") -> list[Applied]:
    opened = [OpenSession(f"client:c{number}", 1, 0, 1) for number in range(commands)]
    return [Applied(number, 10**18, [one], application=application) for number, one in enumerate(opened, 1)]


@pytest.mark.parametrize(("commands", "snapshots"), [(5, 1), (4, 0)])
def test_a_large_journal_is_replaced_when_the_broker_starts(commands: int, snapshots: int) -> None:
    """Else one that is idle would read all of it at every start."""
    node = make_broker(BrokerSettings("b1", True, snapshot_every=5), Random(1), {"state": journal(commands)})
    out = RecordingOutbox()
    node.handle([Started(1, "log")], out)
    assert len([effect for effect in out.effects if isinstance(effect, Snapshot)]) == snapshots


def test_what_is_wrong_with_the_data_of_a_broker_keeps_its_type_and_says_where() -> None:
    site = site_from_toml(SITE, "site.toml")
    made = site_node(site, site.brokers[0], None)
    with pytest.raises(ApplicationChanged) as refused:
        made.make(Random(1), {"state": journal(1, application="package.module:name")})
    assert refused.value.was == "package.module:name"
    assert str(refused.value).startswith("var/b1: the data were written with the application")
