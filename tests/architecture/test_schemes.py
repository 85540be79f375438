"""Outside its folder and the registry, no module names a scheme or imports one."""

import ast
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from holdfast.broker.registry import SCHEMES
from tests.repository import PACKAGE, python_modules

REGISTRY = PurePosixPath("broker/registry.py")
OF_TREES = ("model", "topology", "protocols")  # layers to which a tree is a kind of graph
BESIDE = ("standby",)  # the program that runs beside brokers of one scheme, which that scheme names
FOR_TOOLS = "holdfast.schemes.catalogue"  # every message and record: it asks the registry
KINDS = [kind for kind, package in SCHEMES.packages.items() if package.startswith("holdfast.")]


def docstrings(tree: ast.AST) -> set[int]:
    """The constants that document a module, a class or a function."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node.body[0] for node in ast.walk(tree) if isinstance(node, documented) and node.body]
    return {id(first.value) for first in found if isinstance(first, ast.Expr)}


def named(source: str) -> Iterator[str]:
    """Texts that are the kind of a scheme, quote one, or have commands with one; what people read in a docstring may
    tell of some."""
    tree, kinds = ast.parse(source), "|".join(KINDS)
    inside = rf"[\"'`](?:{kinds})[\"'`]|--(?:scheme|system)[ =](?:{kinds})\b"
    pattern = re.compile(rf"(?:{kinds})|[\s\S]*(?:{inside})[\s\S]*")
    documenting = docstrings(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text), lineno=line) if id(node) not in documenting and pattern.fullmatch(text):
                yield f"{line}: {text}"
            case _:
                pass


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                modules = [f"{module}.{each.name}" for each in names]
            case ast.Import(names=names):
                modules = [each.name for each in names]
            case _:
                continue
        for module in modules:
            if f"{module}.".startswith("holdfast.schemes.") and not f"{module}.".startswith(f"{FOR_TOOLS}."):
                yield f"{node.lineno}: {module}"


def others() -> dict[str, str]:
    paths = {PurePosixPath(path.relative_to(PACKAGE)): path for path in python_modules()}
    return {str(name): path.read_text() for name, path in paths.items() if name.parts[0] != "schemes"}


def test_no_module_outside_names_a_scheme() -> None:
    sources = {name: source for name, source in others().items() if name.partition("/")[0] not in OF_TREES}
    del sources[str(REGISTRY)]
    assert {name: found for name, source in sources.items() if (found := list(named(source)))} == {}


def test_no_module_outside_imports_a_scheme() -> None:
    sources = {name: source for name, source in others().items() if name.partition("/")[0] not in BESIDE}
    assert {name: found for name, source in sources.items() if (found := list(imported(source)))} == {}


def test_no_scheme_imports_another() -> None:
    for kind in KINDS:
        for path in (PACKAGE / "schemes" / kind).rglob("*.py"):
            found = [each for each in imported(path.read_text()) if f"holdfast.schemes.{kind}" not in each]
            assert found == [], path


@pytest.mark.parametrize(
    "source",
    [
        'x = "paxos"',
        "f('write kind = \"tree\"')",
        'def f() -> None:\n    x = "tree"\n',
        'x = """examples:\n  holdfast sim --system paxos --seeds 1..9\n"""',
    ],
)
def test_a_name_is_found(source: str) -> None:
    assert list(named(source))


@pytest.mark.parametrize("source", ['"""As "paxos" does."""', 'x = "the links of the tree"', "tree = 1"])
def test_what_names_none_is_passed_over(source: str) -> None:
    assert not list(named(source))


@pytest.mark.parametrize("source", ["import holdfast.schemes.tree", "from holdfast.schemes.paxos.ballots import EPOCH"])
def test_an_import_is_found(source: str) -> None:
    assert list(imported(source))
    assert not list(imported(f"from {FOR_TOOLS} import RECORDS"))
