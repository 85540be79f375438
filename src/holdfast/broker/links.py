"""Who is joined with whom: what a site file says of the links of a scheme that has some.

    [[link]]                          # brokers that are joined; or
    between = ["b1", "b2"]
    [topology]                        # a graph that is made: holdfast.topology.generators
    kind = "random-tree"              # star, chain, random-tree, random-graph, transit-stub
    seed = 1                          # the same seed gives the same links
    degree = 3.0                      # of random-graph and transit-stub: links of a broker, on average
    brokers = 30                      # makes the brokers too, b1 to b30, in place of [[broker]]
    address = "127.0.0.1:7411"        # of b1; the others' count up
    peer_address = "127.0.0.1:7511"   # likewise; absent: they follow the addresses
    advertise, peer_advertise         # what others are told, likewise, if it is something else
    data = "var"                      # var/b1 …; absent: they keep nothing over a restart

Which graphs will do is the scheme's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.broker.quality import OF_PARTS
from holdfast.broker.site_text import DEFAULT_ADDRESS, PORT_MAX, SiteText
from holdfast.errors import TopologyError
from holdfast.topology.generators import BROKERS_MAX, Kind, links_of
from holdfast.topology.graph import BrokerGraph

if TYPE_CHECKING:
    from random import Random

# Makes the random numbers of a seed: no module here makes its own.
Seeded = Callable[[int], "Random"]
Links = tuple[tuple[str, str], ...]

TABLES: Mapping[str, type] = {"link": list, "topology": dict}
_TOPOLOGY = {
    "kind": str, "seed": int, "degree": float, "brokers": int, "address": str, "advertise": str, "peer_address": str,
    "peer_advertise": str, "data": str,
}  # fmt: skip
_OF_BROKERS = ("address", "advertise", "peer_address", "peer_advertise", "data")


def broker_tables(text: SiteText, topology: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The brokers that `[topology]` makes, written as `[[broker]]` would be; none if it makes no brokers."""
    text.allow(topology, "topology", _TOPOLOGY)
    if "brokers" not in topology:
        for key in _OF_BROKERS:
            if key in topology:
                problem = f"{key!r} in [topology] is of brokers that are made there: say brokers = 4, or write it"
                text.refuse(f"{problem} into each [[broker]]", key, "topology")
        return []
    count = topology["brokers"]
    if not 1 <= count <= BROKERS_MAX:
        text.refuse(f"'brokers' is {count}, and has to be 1 to {BROKERS_MAX}", "brokers", "topology")
    listening = _both(text, {"address": DEFAULT_ADDRESS, **topology}, "address", "peer_address", count)
    told = _both(text, topology, "advertise", "peer_advertise", count)
    tables = []
    for place in range(count):
        table = {key: listed[place] for key, listed in {**listening, **told}.items()}
        table["id"] = f"b{place + 1}"
        if topology.get("data"):
            table["data"] = f"{topology['data']}/{table['id']}"
        tables.append(table)
    return tables


def _both(text: SiteText, topology: Mapping[str, Any], key: str, peer_key: str, count: int) -> dict[str, list[str]]:
    """Addresses for clients and for brokers, of all brokers. Those for brokers follow the others if they are not said:
    behind them there is room for any number."""
    found: dict[str, list[str]] = {}
    if key in topology:
        found[key] = _counted(text, key, topology[key], count)
    if peer_key in topology:
        found[peer_key] = _counted(text, peer_key, topology[peer_key], count)
    elif key in topology and count > 1 and "peer_address" not in topology:
        found[peer_key] = _counted(text, key, topology[key], 2 * count)[count:]
    return found


def _counted(text: SiteText, key: str, first: str, count: int) -> list[str]:
    text.check_address(key, first, "topology")
    host, _, port = first.rpartition(":")
    if int(port) + count - 1 > PORT_MAX:
        text.refuse(f"{count} addresses from {first} on would go beyond the last port, {PORT_MAX}", key, "topology")
    return [f"{host}:{int(port) + place}" for place in range(count)]


def read_links(text: SiteText, document: Mapping[str, Any], ids: Sequence[str], seeded: Seeded | None) -> Links:
    """Who is joined with whom, listed or made; refused if not every broker is joined with the others."""
    if "link" in document and "topology" in document:
        text.refuse("links are listed by [[link]], or made by [topology]; the site has both", "", "topology")
    if "topology" in document:
        links = _made(text, document["topology"], ids, seeded)
    else:
        links = _listed(text, document.get("link", []), ids)
        if not links and len(ids) > 1:
            problem = (
                f"the site has {len(ids)} brokers, and nothing says how they are joined: add [[link]] with"
                f' between = ["{ids[0]}", "{ids[1]}"], or [topology] with a kind'
            )
            text.refuse(problem, "", "broker", 1)
    try:
        BrokerGraph(ids, links).spanning_tree()
    except TopologyError as error:
        text.refuse(f"{error}: every broker has to be joined with the others", "", "link")
    return links


def _made(text: SiteText, topology: Mapping[str, Any], ids: Sequence[str], seeded: Seeded | None) -> Links:
    kinds = [kind.value for kind in Kind]
    if "kind" not in topology:
        text.refuse(f"a topology has a kind: one of {', '.join(kinds)}", "", "topology")
    if topology["kind"] not in kinds:
        problem = f"there is no topology {topology['kind']!r}; there is {', '.join(kinds)}"
        text.refuse(problem, "kind", "topology")
    seed = topology.get("seed", 1)
    if seed < 0:
        text.refuse(f"'seed' is {seed}, and has to be 0 or more", "seed", "topology")
    if seeded is None:
        text.refuse("this site is made with random numbers, and its reader was given none", "seed", "topology")
    try:
        return links_of(Kind(topology["kind"]), ids, seeded(seed), topology.get("degree"))
    except TopologyError as error:
        text.refuse(str(error), error.parameter, "topology")


def _listed(text: SiteText, tables: Sequence[Any], ids: Sequence[str]) -> Links:
    links: list[tuple[str, str]] = []
    for place, table in enumerate(tables):
        if not isinstance(table, dict):
            text.refuse("'link' is an array of tables: write [[link]]", "link")
        between = table.get("between", [])
        if isinstance(between, list):  # else the hint below says more
            text.allow(table, "link", {"between": list, **OF_PARTS}, place)
        if not isinstance(between, list) or len(between) != 2 or not all(type(end) is str for end in between):
            text.refuse('a link has two ends: write between = ["b1", "b2"]', "between", "link", place)
        links.append((between[0], between[1]))
    try:
        BrokerGraph(ids, links)
    except TopologyError as error:
        wrong = next(place for place in range(len(links)) if not _is_graph(ids, links[: place + 1]))
        known = "" if set(links[wrong]) <= set(ids) else f"; there is {', '.join(ids)}"
        text.refuse(f"{error}{known}", "between", "link", wrong)
    return tuple(links)


def _is_graph(ids: Sequence[str], links: Sequence[tuple[str, str]]) -> bool:
    try:
        BrokerGraph(ids, links)
    except TopologyError:
        return False
    return True


def refuse_cycle(text: SiteText, document: Mapping[str, Any], graph: BrokerGraph, why: str) -> None:
    """Refuses a graph that has one, for a scheme that has no use for it."""
    if not graph.has_cycle:
        return
    if "topology" in document:
        key = "degree" if "degree" in document["topology"] else "kind"
        text.refuse(f"the topology has a cycle, and {why}, or a kind without cycles", key, "topology")
    part_of = {broker: [broker] for broker in graph.brokers}
    for place, (one, other) in enumerate(graph.links):
        if part_of[one] is part_of[other]:
            text.refuse(f"this link closes a cycle, and {why}, or leave it out", "between", "link", place)
        part_of[one] += part_of[other]
        for broker in part_of[other]:
            part_of[broker] = part_of[one]
