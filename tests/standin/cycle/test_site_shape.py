"""What `holdfast sim` draws for a site that sees to its stand-ins."""

from __future__ import annotations

from pathlib import Path

from holdfast.cli.sim import shape_of
from holdfast.runtime.site_file import read_site
from holdfast.schemes.tree.draw_network import NetworkShape
from holdfast.schemes.tree.draw_on_demand import OnDemandShape
from holdfast.sim.run import run_scenario
from tests.cli.test_main import run


def test_a_site_with_service_levels_and_spares_is_broken_as_one(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    assert run("init", "--scheme", "standin", "--brokers", "4", "--reliability", "periodic", str(file)) == 0
    site = read_site(str(file))
    shape = shape_of(site)
    assert isinstance(shape, OnDemandShape)
    drawn = shape.draw(3)
    assert [broker.id for broker in drawn.brokers] == ["b1", "b2", "b3", "b4", "b5", "b6"]
    assert [broker.id for broker in drawn.brokers if broker.spare] == ["b5", "b6"]
    assert (drawn.settings["reliability"], drawn.settings["sla"]) == ("periodic", True)
    assert drawn.links == list(site.links)
    assert run_scenario(drawn).violations == []
    file.write_text(file.read_text().replace("[standin.sla]", "# [standin.sla]"))
    assert isinstance(shape_of(read_site(str(file))), NetworkShape)
