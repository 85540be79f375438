"""Site files of one broker, and of networks, to start from: for `holdfast init`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from holdfast.broker.registry import SCHEMES
from holdfast.broker.scheme import InitOption, InitWish, Template
from holdfast.broker.settings_table import default_lines
from holdfast.broker.site_text import DEFAULT_ADDRESS
from holdfast.errors import SiteError
from holdfast.protocols.routing.settings import Reliability
from holdfast.schemes.tree.settings import DEFAULTS, NOT_LEVELS, NOT_ROUTING, NOT_STAND_INS
from holdfast.topology.generators import DEGREE, Kind

BROKERS = 4
STAND_IN = "standin"
STAND_IN_BROKERS, STAND_IN_SPARES = 7, 2
BROKERS_LISTED_MAX = 100  # then addresses would run into peer addresses; and nobody reads on
_ADDRESS, _PEER_ADDRESS = 7411, 7511

_ABOUT_LEVELS = {
    Reliability.NONE: "what a broker knows and holds is lost with it",
    Reliability.PERIODIC: "subscriptions are told again, now and then and after a restart",
    Reliability.BUFFERED: "events are kept until the next broker has stored them",
    Reliability.BYPASS: "events go around brokers and links that failed, where links allow it",
    Reliability.BYPASS_BUFFERED: "both of these",
}


OPTIONS: Final[Mapping[str, InitOption]] = {
    "reliability": InitOption(
        tuple(each.value for each in Reliability),
        "of a network; what it does about failing brokers and links (default buffered; where links form cycles,"
        " bypass+buffered)",
    ),
    "topology": InitOption(
        tuple(each.value for each in Kind), "of a network: its links are made, by a seed (default: they are listed)"
    ),
}

TEMPLATES: Final[Mapping[str, Template]] = {
    STAND_IN: Template(
        "such a network, with spares that take the place of brokers that fail, by themselves", "examples.standing_in"
    )
}


def site_text(wish: InitWish) -> str:
    """One broker, if no network is asked for. An application is hosted by one broker."""
    if wish.template:
        return _with_spares(wish)
    alone = wish.brokers is None and not wish.options and (not wish.named or wish.hosts)
    count = wish.brokers if wish.brokers is not None else 1 if alone else BROKERS
    if count == 1 and not wish.options:
        return _one_broker_text()
    topology = Kind(wish.options["topology"]) if "topology" in wish.options else None
    if topology is None and count > BROKERS_LISTED_MAX:
        problem = f"--brokers is {count}; more than {BROKERS_LISTED_MAX} are not listed: say --topology too"
        raise SiteError(problem, wish.where)
    usual = Reliability.BYPASS_BUFFERED if topology is Kind.RANDOM_GRAPH else Reliability.BUFFERED
    return network_text(count, Reliability(wish.options.get("reliability", usual.value)), topology)


def _with_spares(wish: InitWish) -> str:
    if "topology" in wish.options:
        raise SiteError("--topology lists no brokers, and so no spares: leave it out", wish.where)
    count = STAND_IN_BROKERS if wish.brokers is None else wish.brokers
    if count > BROKERS_LISTED_MAX - STAND_IN_SPARES:
        problem = f"--brokers is {count}, and {STAND_IN_SPARES} spares; more than {BROKERS_LISTED_MAX} are not listed"
        raise SiteError(problem, wish.where)
    level = Reliability(wish.options.get("reliability", Reliability.BUFFERED.value))
    return network_text(count, level, None, STAND_IN_SPARES)


def _one_broker_text() -> str:
    return f"""\
# A site: a broker network, described once. `holdfast up FILE` runs it here, `holdfast sim FILE` breaks it.
name = "my-site"

[scheme]
kind = "tree"                       # the schemes that there are: {", ".join(SCHEMES.kinds)}

[[broker]]
id = "b1"
address = "{DEFAULT_ADDRESS}"          # where clients connect
# peer_address = "127.0.0.1:7511"   # where other brokers connect
data = "var/b1"                     # keeps its state and its events there; leave it out to keep nothing

"""


def network_text(brokers: int, level: Reliability, topology: Kind | None, spares: int = 0) -> str:
    """All tables that are of a network. With spares, one of them may stand in for a broker."""
    lines = [
        "# A site: a broker network, described once. `holdfast up FILE` runs all of it here; `holdfast broker FILE"
        " --id b1` one",
        "# broker of it, as you would on its own machine. Clients connect to any: `holdfast subscribe --site FILE"
        " --broker b1`.",
        'name = "my-site"',
        "",
        "[scheme]",
        _line('kind = "tree"', "brokers that are joined by links, and route events along a tree of them"),
        _line(f'reliability = "{level.value}"', "what is done about failing brokers and links:"),
        *(_line("", f'"{each.value}": {about}') for each, about in _ABOUT_LEVELS.items()),
        "",
        *(_listed(brokers, level, spares) if topology is None else _made(brokers, level, topology)),
        "",
        *_routing(),
        *(_stand_ins() if spares else ()),
    ]
    return "\n".join(lines) + "\n\n"


def links_listed(brokers: int, level: Reliability) -> list[tuple[int, int]]:
    """A tree that branches at b2; where detours are made, a ring: around any broker there is another way."""
    if level.detours and brokers > 2:
        return [(number, number + 1) for number in range(1, brokers)] + [(brokers, 1)]
    return [((number + 1) // 2, number) for number in range(2, brokers + 1)]


def _listed(brokers: int, level: Reliability, spares: int) -> Iterator[str]:
    for place in range(brokers + spares):
        first = place == 0
        yield "[[broker]]"
        yield f'id = "b{place + 1}"'
        yield _line(f'address = "127.0.0.1:{_ADDRESS + place}"', "where clients connect" if first else "")
        if first:
            told = f'# advertise = "b1.example.org:{_ADDRESS}"'
            yield _line(told, "… and are told this instead; needed if it listens on 0.0.0.0")
        said = "where other brokers connect" if first else ""
        yield _line(f'peer_address = "127.0.0.1:{_PEER_ADDRESS + place}"', said)
        if first:
            yield _line(f'# peer_advertise = "b1.example.org:{_PEER_ADDRESS}"', "likewise")
        said = "keeps its state and its events there" if first else ""
        yield _line(f'data = "var/b{place + 1}"', said)
        if place >= brokers:
            yield _line("spare = true", "takes the place of another that fails, as [standin.sla] says")
        yield ""
    for one, other in links_listed(brokers, level):
        yield "[[link]]"
        yield f'between = ["b{one}", "b{other}"]'


def _made(brokers: int, level: Reliability, topology: Kind) -> Iterator[str]:
    yield "[topology]"
    yield _line(f'kind = "{topology.value}"', ", ".join(kind.value for kind in Kind))
    yield _line("seed = 1", "the same seed gives the same links")
    if topology.takes_degree:
        said = f"degree = {min(DEGREE, brokers - 1):.1f}"
        yield _line(said if level.detours else f"# {said}", "links of a broker, on average")
    yield _line(f"brokers = {brokers}", f"b1 to b{brokers}; or write [[broker]] tables, as without a topology")
    yield _line(f'address = "127.0.0.1:{_ADDRESS}"', "where clients of b1 connect; the others' count up")
    if brokers <= BROKERS_LISTED_MAX:
        yield _line(f'peer_address = "127.0.0.1:{_PEER_ADDRESS}"', "where other brokers connect, likewise")
    yield _line('data = "var"', "with a folder for each: they keep their state and their events there")


def _routing() -> Iterator[str]:
    yield _line("# [routing]", "these are the defaults")
    for said, about in default_lines(DEFAULTS, NOT_ROUTING):
        yield _line(f"# {said}", about)


def _stand_ins() -> Iterator[str]:
    yield ""
    yield _line("[standin]", "with this table, spares may stand in for brokers that fail; these are the defaults")
    for said, about in default_lines(DEFAULTS, NOT_STAND_INS):
        yield _line(f"# {said}", about)
    yield ""
    yield _line("[standin.sla]", "with this one, they come and go by themselves: brokers watch their neighbours")
    for said, about in default_lines(DEFAULTS, NOT_LEVELS):
        yield _line(f"# {said}", about)


def _line(setting: str, about: str) -> str:
    return f"{setting:<35} # {about}" if about else setting
