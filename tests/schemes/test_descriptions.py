"""What a scheme says of itself: complete, free of contradictions, and what people read is the same."""

from __future__ import annotations

import re
from random import Random

import pytest

from holdfast.broker.catalogue import catalogue_of
from holdfast.broker.measures import NODE_MEASURES
from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import InitWish, Making, Scheme
from holdfast.broker.scheme_client import SchemeClient, client_catalogue_of
from holdfast.broker.site import site_from_toml
from holdfast.errors import SiteError
from holdfast.kernel.inputs import Started
from holdfast.kernel.outbox import RecordingOutbox
from holdfast.kernel.parts import Assembly
from holdfast.kernel.settings import choices, chosen, written
from holdfast.protocols.client_catalogue import CLIENT_MESSAGES
from holdfast.protocols.desks.home import Home
from holdfast.protocols.desks.overlay import Overlay
from holdfast.protocols.sessions.messages import Ping
from holdfast.schemes.catalogue import everything
from holdfast.sim.swarm import Swarm, swarm_of
from holdfast.trace.checkers.registry import make_checker
from tests.repository import ROOT
from tests.schemes.flood.messages import Stored
from tests.schemes.sites import KINDS, initial_site, initial_text

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_the_scheme_is_called_what_it_is_registered_as(kind: str) -> None:
    scheme = SCHEMES[kind]
    assert scheme.kind == scheme.catalogue.scheme == kind
    assert SCHEMES.client(kind).catalogue.scheme == kind
    assert scheme.about
    assert (ROOT / "docs" / scheme.page).is_file()


@every_kind
def test_what_init_writes_is_a_site_of_the_scheme(kind: str) -> None:
    site = initial_site(kind)
    assert site.scheme is SCHEMES[kind]
    assert len(site.brokers) > 1
    assert type(site.settings) is type(SCHEMES[kind].settings)


@every_kind
def test_a_setting_that_there_is_not_is_refused_with_its_line(kind: str) -> None:
    text = initial_text(kind)
    line = text[: text.index("[scheme]")].count("\n") + 2
    wrong = text.replace("[scheme]\n", "[scheme]\nwith_nonsense = 1\n", 1)
    with pytest.raises(SiteError, match="with_nonsense") as caught:
        site_from_toml(wrong, "site.toml", Random)
    assert caught.value.line == line


@every_kind
def test_every_setting_has_a_meaning_and_is_written_as_it_is_read(kind: str) -> None:
    for settings in (SCHEMES[kind].settings, swarm_of(kind).settings):
        said = written(settings)
        assert said
        assert chosen(settings, said) == settings
        for key, choice in choices(type(settings)).items():
            assert choice.setting.about, key
            assert choice.setting.unit == 1 or key.endswith(("_ms", "_ms_min", "_ms_max")), key


@every_kind
def test_its_page_has_every_setting(kind: str) -> None:
    scheme = SCHEMES[kind]
    page = (ROOT / "docs" / scheme.page).read_text()
    assert [key for key in choices(type(scheme.settings)) if f"`{key}`" not in page] == []
    assert all(scheme.measures.values())


@every_kind
def test_its_messages_are_those_of_all_clients_and_its_own_each_with_one_number(kind: str) -> None:
    catalogue, client = SCHEMES[kind].catalogue, SCHEMES.client(kind).catalogue
    assert {number: catalogue.messages.types[number] for number in CLIENT_MESSAGES} == CLIENT_MESSAGES
    for number, message in client.messages.types.items():
        assert catalogue.messages.types[number] is message
    assert catalogue.messages.types.items() <= everything().messages.types.items()
    assert catalogue.records.types.items() <= everything().records.types.items()


def node_of(kind: str) -> Assembly:
    site = initial_site(kind)
    node = site.scheme.make_node(Making(site.told(site.brokers[0]), Random(1), {}))
    assert isinstance(node, Assembly)
    return node


@every_kind
def test_a_broker_measures_what_is_known_by_name_and_nothing_else(kind: str) -> None:
    node, out = node_of(kind), RecordingOutbox(tracing=False)
    node.handle([Started(1, "disk")], out)
    node.check_invariants()
    known = {*NODE_MEASURES, *SCHEMES[kind].measures}
    assert [name for name in node.measure() if name not in known] == []
    assert set(node.measure()) & set(SCHEMES[kind].measures)


@every_kind
def test_what_a_broker_speaks_is_in_its_catalogue(kind: str) -> None:
    spoken = {message for part in node_of(kind).parts for message in part.messages}
    assert spoken <= set(SCHEMES[kind].catalogue.messages.kinds)


@every_kind
def test_what_is_promised_can_be_checked(kind: str) -> None:
    swarm = swarm_of(kind)
    assert swarm.shapes
    for shape in swarm.shapes.values():
        for seed in range(1, 20):
            scenario = shape.draw(seed)
            assert scenario.system == kind
            assert scenario.checkers
            for name in scenario.checkers:
                make_checker(name, swarm.checkers)
            assert set(swarm.promises(scenario)) == set(scenario.checkers)


@pytest.mark.parametrize("contract", [Scheme, Making, SchemeClient, Swarm, Overlay, Home])
def test_the_page_of_schemes_tells_of_the_whole_contract(contract: type) -> None:
    page = (ROOT / "docs" / "schemes.md").read_text()
    names = [name for name in {**contract.__dict__, **contract.__annotations__} if not name.startswith("_")]
    assert [name for name in names if not re.search(rf"`(\w+\.)?{name}\b", page)] == []


def test_a_number_that_another_scheme_has_is_refused() -> None:
    taken = next(number for number, message in CLIENT_MESSAGES.items() if message is Ping)
    with pytest.raises(ValueError, match=f"Stored has number {taken}, which is that of Ping"):
        catalogue_of("mine", {taken: Stored}, {}, ())


@pytest.mark.parametrize("number", [0, 240, 256])
def test_a_number_of_the_handshake_or_none_at_all_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"Stored has number {number}, which is not in 1 to 239"):
        catalogue_of("mine", {number: Stored}, {}, ())


@every_kind
def test_an_application_is_hosted_by_what_sees_all_events(kind: str) -> None:
    text = initial_text(kind) + '\n[application]\nfactory = "a:b"\n'
    if SCHEMES[kind].is_one_broker:
        assert site_from_toml(text, "site.toml", Random).application is not None
        return
    with pytest.raises(SiteError, match="none would see all events"):
        site_from_toml(text, "site.toml", Random)


def test_options_and_shapes_of_different_schemes_have_different_names() -> None:
    for names in ([*SCHEMES[kind].init_options] for kind in KINDS), ([*swarm_of(kind).shapes] for kind in KINDS):
        listed = [name for of_kind in names for name in of_kind]
        assert len(set(listed)) == len(listed)


def test_templates_have_names_that_no_scheme_and_no_other_template_has() -> None:
    names = [name for kind in KINDS for name in SCHEMES[kind].templates]
    assert len({*names, *KINDS}) == len(names) + len(KINDS)
    assert SCHEMES.templates == {name: kind for kind in KINDS for name in SCHEMES[kind].templates}


@pytest.mark.parametrize("name", SCHEMES.templates)
def test_what_init_writes_for_a_template_is_a_site_of_its_scheme(name: str) -> None:
    scheme = SCHEMES[SCHEMES.templates[name]]
    assert scheme.templates[name].about
    text = scheme.init_text(InitWish("site.toml", True, None, {}, False, name))
    assert site_from_toml(text, "site.toml", Random).scheme is scheme


def test_a_client_can_not_give_a_common_number_another_meaning() -> None:
    with pytest.raises(ValueError, match="Stored has number"):
        client_catalogue_of("mine", {next(iter(CLIENT_MESSAGES)): Stored})


def test_a_kind_is_registered_once() -> None:
    SCHEMES.add("flood", "tests.schemes.flood")
    with pytest.raises(ValueError, match=r"'flood' is the scheme of tests\.schemes\.flood"):
        SCHEMES.add("flood", "tests.another")
