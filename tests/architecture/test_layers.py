"""Imports point one way: a layer imports layers below it, never one above or beside it."""

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.repository import PACKAGE, python_modules

# From the bottom to the top. The layers of one row stand beside each other and do not import each other.
ROWS = [
    {"errors"},
    {"kernel"},
    {"codec"},
    {"model"},
    {"matching", "topology"},
    {"protocols"},
    {"broker", "wire", "trace"},
    {"storage"},
    {"sim", "runtime", "testing"},
    {"schemes", "client", "qos"},
    {"spark"},
    {"apps"},
    {"standby"},
    {"cli"},
]
RANK = {layer: rank for rank, row in enumerate(ROWS) for layer in row}

# The package's own __init__ is the public interface: it may import every layer; only the top row uses it.
PUBLIC = "__init__"
MAY_IMPORT_PUBLIC = {"apps", "cli"}


def layer_of(path: PurePosixPath) -> str:
    """The layer of a module, given its path below src/holdfast: its folder, or itself at the top level."""
    return path.parts[0] if len(path.parts) > 1 else path.stem


def unknown_layers(paths: list[PurePosixPath]) -> list[str]:
    """A message for every top-level folder or module that has no place in ROWS."""
    found = {layer_of(path): path for path in reversed(paths)}
    return [
        f"{path}: '{layer}' is not a layer; give it a row in ROWS and a line in ARCHITECTURE.md"
        for layer, path in sorted(found.items())
        if layer not in RANK and layer != PUBLIC
    ]


def layer_violations(source: str, path: PurePosixPath) -> list[str]:
    """A message for every import in source that points the wrong way, wherever in the module it stands."""
    importer = layer_of(path)
    return [
        f"{path}:{line}: {importer} must not import {_name(imported)}"
        for line, imported in imported_layers(source, path)
        if not _is_allowed(importer, imported)
    ]


def imported_layers(source: str, path: PurePosixPath) -> Iterator[tuple[int, str]]:
    """(line, layer) for every import of ours in source; the layer is PUBLIC for the package itself."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _layers_of_module(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, path)
            if module == "holdfast":
                for alias in node.names:
                    yield node.lineno, alias.name if alias.name in RANK else PUBLIC
            else:
                yield from _layers_of_module(module, node.lineno)
        elif isinstance(node, ast.Call) and _called_name(node) in {"import_module", "__import__"}:
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield from _layers_of_module(argument.value, node.lineno)


def _layers_of_module(module: str, line: int) -> Iterator[tuple[int, str]]:
    parts = module.split(".")
    if parts[0] == "holdfast":
        yield line, parts[1] if len(parts) > 1 else PUBLIC


def _absolute(node: ast.ImportFrom, path: PurePosixPath) -> str:
    if node.level == 0:
        return node.module or ""
    package = ["holdfast", *path.parts[:-1]]
    kept = package[: len(package) - (node.level - 1)]
    return ".".join([*kept, *([node.module] if node.module else [])])


def _called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _is_allowed(importer: str, imported: str) -> bool:
    if importer in {imported, PUBLIC}:
        return True
    if imported == PUBLIC:
        return importer in MAY_IMPORT_PUBLIC
    return imported in RANK and importer in RANK and RANK[imported] < RANK[importer]


def _name(layer: str) -> str:
    return "the public interface; import what defines the name" if layer == PUBLIC else layer


def test_every_folder_and_top_level_module_has_a_layer() -> None:
    paths = [PurePosixPath(path.relative_to(PACKAGE)) for path in python_modules()]
    assert "\n".join(unknown_layers(paths)) == ""


def test_imports_point_one_way() -> None:
    messages = [
        message
        for path in python_modules()
        for message in layer_violations(path.read_text(), PurePosixPath(path.relative_to(PACKAGE)))
    ]
    assert "\n".join(messages) == ""


def test_an_unknown_folder_is_reported_by_name() -> None:
    paths = [PurePosixPath(name) for name in ["__init__.py", "errors.py", "misc/a.py", "model/a.py"]]
    assert unknown_layers(paths) == [
        "misc/a.py: 'misc' is not a layer; give it a row in ROWS and a line in ARCHITECTURE.md"
    ]


@pytest.mark.parametrize(
    "source",
    [
        "import holdfast.matching",
        "import holdfast.matching.index as index",
        "from holdfast.matching import FilterIndex",
        "from holdfast.matching.index import FilterIndex",
        "from holdfast import matching",
        "from holdfast import Filter",
        "from holdfast import *",
        "import holdfast",
        "from .. import matching",
        "from ..matching import FilterIndex",
        "from ..matching.index import FilterIndex",
        "def late():\n    from holdfast.matching import FilterIndex",
        "class Late:\n    import holdfast.matching",
        "if TYPE_CHECKING:\n    from holdfast.matching import FilterIndex",
        "try:\n    pass\nexcept ValueError:\n    import holdfast.matching",
        "importlib.import_module('holdfast.matching')",
        "__import__('holdfast.matching.index')",
        "import holdfast.nowhere",
    ],
)
def test_an_import_that_points_upwards_is_caught(source: str) -> None:
    assert len(layer_violations(source, PurePosixPath("model/filter.py"))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("sim/driver.py", "import holdfast.runtime"),
        ("runtime/driver.py", "import holdfast.sim"),
        ("matching/index.py", "from holdfast.topology import Tree"),
        ("kernel/node.py", "from holdfast.codec import registry"),
        ("errors.py", "from holdfast.model import Filter"),
        ("qos/planner.py", "from holdfast.spark import sweep"),
        ("protocols/desks/session_desk.py", "from ...broker import site"),
        ("broker/site.py", "from holdfast.schemes.tree.scheme import SCHEME"),
        ("runtime/serving.py", "from holdfast.schemes.paxos.scheme import SCHEME"),
        ("sim/run.py", "from holdfast.schemes import tree"),
        ("client/bus.py", "from holdfast.schemes.tree import client"),
        ("apps/viewer.py", "from holdfast.cli.main import main"),
    ],
)
def test_an_import_sideways_or_from_the_bottom_is_caught(path: str, source: str) -> None:
    assert len(layer_violations(source, PurePosixPath(path))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("__init__.py", "from holdfast.cli import main\nfrom holdfast.model import Filter"),
        ("kernel/node.py", "from holdfast.errors import HoldfastError\nfrom holdfast import errors"),
        ("matching/index.py", "from holdfast.matching._kernel import Index\nimport holdfast.model"),
        ("matching/index.py", "from . import oracle\nfrom .oracle import Oracle\nfrom ..model import Filter"),
        ("matching/__init__.py", "from . import index\nfrom ..model.filter import Filter"),
        ("protocols/desks/session_desk.py", "from ..sessions import messages\nfrom ...kernel import node"),
        ("schemes/paxos/replica.py", "from ...kernel import node\nfrom ...protocols.core import core"),
        ("apps/viewer.py", "import holdfast\nfrom holdfast import Filter\nfrom holdfast.spark import source"),
        ("cli/zap.py", "from holdfast.apps.zapviewers.generator import generate"),
        ("model/filter.py", "import holdfastening\nfrom math import inf\nimport_module(name)"),
    ],
)
def test_an_import_that_points_downwards_is_allowed(path: str, source: str) -> None:
    assert layer_violations(source, PurePosixPath(path)) == []
