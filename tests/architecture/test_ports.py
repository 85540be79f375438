"""Parts get their collaborators by their constructors, and tell the rest by notices: nothing is wired afterwards."""

from __future__ import annotations

import ast
from pathlib import PurePosixPath

import pytest

from tests.repository import PACKAGE, python_modules

# From the bottom to the top; those of one row do not import each other. Sessions and cursors are what clients say and
# do, the core is what a broker makes of it, and desks stand between that and the links.
PROTOCOLS = [
    {"links"},
    {"failure", "operating"},
    {"sessions"},
    {"cursors"},
    {"client_catalogue"},
    {"core"},
    {"desks"},
    {"routing"},
]
RANK = {name: rank for rank, row in enumerate(PROTOCOLS) for name in row}

PROTOCOLS_AND_SCHEMES = ("holdfast.protocols.", "holdfast.schemes.")

# Of the simulator, what runs any node; what speaks of scenarios names the schemes that they are of.
SIMULATOR = {"digest", "disk", "latency", "machine", "network", "simulation"}


def rebindable(source: str) -> list[str]:
    """Public attributes that hold a callable, for others to replace."""
    return [
        f"{node.lineno}: {node.target.attr}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Attribute)
        and not node.target.attr.startswith("_")
        and "Callable" in ast.unparse(node.annotation)
    ]


def assigned_from_outside(source: str) -> list[str]:
    """Attributes of another object that are assigned."""
    found = []
    for node in ast.walk(ast.parse(source)):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        flat = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
        for target in flat:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) != "self":
                found.append(f"{target.lineno}: {ast.unparse(target)}")
    return found


def wrong_imports(source: str, own: str) -> list[str]:
    """Imports of protocols above, or beside."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        names = [f"{module}{alias.name}" for alias in node.names]
        imported = {parts[2] for name in names if (parts := name.split("."))[:2] == ["holdfast", "protocols"]}
        for other in sorted(imported - {own}):
            if RANK[other] >= RANK[own]:
                found.append(f"{node.lineno}: {own} must not import {other}")
    return found


def imported_protocols(source: str) -> list[str]:
    """Imports of anything that is a protocol."""
    modules = [
        f"{node.lineno}: {name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    ]
    return [found for found in modules if f"{found}.".partition(" ")[2].startswith(PROTOCOLS_AND_SCHEMES)]


def modules(layer: str) -> list[tuple[PurePosixPath, str]]:
    paths = [(PurePosixPath(path.relative_to(PACKAGE)), path) for path in python_modules()]
    return [(name, path.read_text()) for name, path in paths if name.parts[0] == layer]


def test_no_part_has_a_callable_that_others_replace() -> None:
    protocols = [*modules("protocols"), *modules("schemes")]
    assert {str(path): found for path, source in protocols if (found := rebindable(source))} == {}


@pytest.mark.parametrize("layer", ["protocols", "schemes", "broker", "runtime", "sim"])
def test_no_attribute_of_another_object_is_assigned(layer: str) -> None:
    assert {str(path): found for path, source in modules(layer) if (found := assigned_from_outside(source))} == {}


def test_drivers_know_no_protocol() -> None:
    drivers = [*modules("runtime"), *modules("wire"), *(each for each in modules("sim") if each[0].stem in SIMULATOR)]
    assert {path.stem for path, _ in drivers} >= {"runner", "framing", *SIMULATOR}
    assert {str(path): found for path, source in drivers if (found := imported_protocols(source))} == {}


def test_imports_between_protocols_point_one_way() -> None:
    found = {
        str(path): wrong
        for path, source in modules("protocols")
        if (wrong := wrong_imports(source, path.parts[1].removesuffix(".py"))) and path.name != "__init__.py"
    }
    assert found == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("class A:\n    def __init__(self):\n        self.told: Callable[[int], None] = print", ["3: told"]),
        ("class A:\n    def __init__(self, ask):\n        self._ask: Callable[[int], None] = ask", []),
    ],
)
def test_a_callable_to_be_replaced_is_found(source: str, expected: list[str]) -> None:
    assert rebindable(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("host.told = log.on_told", ["1: host.told"]),
        ("self.host.told, x = log.on_told, 1", ["1: self.host.told"]),
        ("self.told = told", []),
    ],
)
def test_wiring_from_outside_is_found(source: str, expected: list[str]) -> None:
    assert assigned_from_outside(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from holdfast.schemes.catalogue import CATALOGUE", ["1: holdfast.schemes.catalogue"]),
        ("def f():\n    import holdfast.protocols.sessions", ["2: holdfast.protocols.sessions"]),
        ("from holdfast.broker.site import Site\nimport holdfast.wire.framing", []),
    ],
)
def test_an_import_of_a_protocol_is_found(source: str, expected: list[str]) -> None:
    assert imported_protocols(source) == expected


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("from holdfast.protocols.routing.router import Router", 1),
        ("from holdfast.protocols.routing import router", 1),
        ("from holdfast.protocols import routing", 1),
        ("import holdfast.protocols.routing.router", 1),
        ("if TYPE_CHECKING:\n    from holdfast.protocols.routing.router import Router", 2),
        ("def later():\n    import holdfast.protocols.routing as routing", 2),
    ],
)
def test_an_import_upwards_is_found(source: str, line: int) -> None:
    assert wrong_imports(source, "sessions") == [f"{line}: sessions must not import routing"]
    assert wrong_imports(source, "routing") == []


def test_an_import_from_beside_is_found() -> None:
    source = "from holdfast.protocols.operating.desk import OperatorDesk"
    assert wrong_imports(source, "failure") == ["1: failure must not import operating"]
