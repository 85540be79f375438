"""Below the drivers, code is a function of its inputs: no clock, socket, file, thread or global randomness.

Refused too is what makes two runs differ (`hash`, `id`), and what runs text or data as code.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from tests.repository import PACKAGE, python_modules

BELOW_THE_DRIVERS = {
    "__init__", "errors", "kernel", "codec", "model", "matching", "topology", "protocols",
    "broker", "wire", "trace",
}  # fmt: skip

# (path below src/holdfast, name) → why it is harmless there. A test finds entries that nothing needs.
ALLOWED: Mapping[tuple[str, str], str] = {
    ("model/covering.py", "id"): "keys of a memo that lives for one question; their order is never seen",
}

MODULES = {
    # clocks
    "time", "datetime", "sched", "zoneinfo",
    # sockets and event loops
    "asyncio", "select", "selectors", "socket", "socketserver", "ssl",
    # threads and processes
    "concurrent", "multiprocessing", "queue", "signal", "subprocess", "threading", "_thread",
    # files and the operating system
    "builtins", "fileinput", "glob", "io", "mmap", "os", "pathlib", "platform", "shutil", "tempfile",
    # randomness that is not handed in
    "random", "secrets", "uuid",
    # formats that run code
    "marshal", "pickle", "shelve",
}  # fmt: skip

# Refused wherever they are named, since a name that is passed on is as good as a call.
NAMES = {"__import__", "breakpoint", "compile", "eval", "exec", "hash", "input", "open"}
# Refused when called; `id` is also an honest name for a parameter.
CALLS = {"id", "print"}

C_HEADERS = {
    "fcntl.h", "poll.h", "pthread.h", "signal.h", "sys/random.h", "sys/socket.h", "sys/stat.h", "sys/time.h",
    "threads.h", "time.h", "unistd.h",
}  # fmt: skip
C_CALLS = {
    "clock", "clock_gettime", "drand48", "fopen", "fork", "getenv", "getrandom", "gettimeofday", "open",
    "rand", "random", "socket", "srand", "system", "time",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One use of something refused."""

    path: str
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.name} has no place below the drivers"


def determinism_findings(source: str, path: str, allowed: Mapping[tuple[str, str], str] = ALLOWED) -> list[Finding]:
    """What a Python module below the drivers must not use, in order of lines."""
    visitor = _Visitor()
    visitor.visit(ast.parse(source))
    findings = [Finding(path, line, name) for line, name in sorted(visitor.found)]
    return [finding for finding in findings if (path, finding.name) not in allowed]


def c_findings(source: str, path: str, allowed: Mapping[tuple[str, str], str] = ALLOWED) -> list[Finding]:
    """What a C source of the kernel must not use, in order of lines."""
    findings = []
    for line, text in enumerate(_without_comments(source).splitlines(), start=1):
        include = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', text)
        if include and include[1] in C_HEADERS:
            findings.append(Finding(path, line, include[1]))
        calls = re.findall(r"(?<![\w.>])([a-z_0-9]+)\s*\(", text)
        findings += [Finding(path, line, name) for name in calls if name in C_CALLS]
    return [finding for finding in findings if (path, finding.name) not in allowed]


def _without_comments(source: str) -> str:
    """The C source with comments and literals blanked, line numbers kept; the names in #include stay."""
    pattern = r'/\*.*?\*/|//[^\n]*|^[ \t]*#[ \t]*include[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''

    def blank(match: re.Match[str]) -> str:
        text = match[0]
        return text if "include" in text and text.lstrip().startswith("#") else re.sub(r"[^\n]", " ", text)

    return re.sub(pattern, blank, source, flags=re.DOTALL | re.MULTILINE)


class _Visitor(ast.NodeVisitor):
    """Collects (line, name) of everything refused."""

    def __init__(self) -> None:
        self.found: set[tuple[int, str]] = set()
        self._in_hash_method = False
        self._for_types_only = False

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._see_module(alias.name, node.lineno, names=set())

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and node.module:
            self._see_module(node.module, node.lineno, names={alias.name for alias in node.names})

    def visit_If(self, node: ast.If) -> None:
        if not _is_type_checking(node.test):
            self.generic_visit(node)
            return
        outside, self._for_types_only = self._for_types_only, True
        for statement in node.body:
            self.visit(statement)
        self._for_types_only = outside
        for statement in node.orelse:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outside, self._in_hash_method = self._in_hash_method, node.name == "__hash__"
        self.generic_visit(node)
        self._in_hash_method = outside

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load) or node.id not in NAMES:
            return
        if node.id != "hash" or not self._in_hash_method:
            self.found.add((node.lineno, node.id))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in CALLS:
            self.found.add((node.lineno, node.func.id))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "import_module":
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    self._see_module(argument.value, node.lineno, names=set())
        self.generic_visit(node)

    def _see_module(self, module: str, line: int, names: set[str]) -> None:
        top = module.partition(".")[0]
        # A generator that is handed in needs its type's name, and only that.
        if top == "random" and self._for_types_only and names <= {"Random"}:
            return
        if top in MODULES:
            self.found.add((line, top))


def _is_type_checking(test: ast.expr) -> bool:
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
    return False


def _findings_below_the_drivers(allowed: Mapping[tuple[str, str], str]) -> list[Finding]:
    findings = []
    for path in [*python_modules(), *sorted(PACKAGE.rglob("*.[ch]"))]:
        relative = PurePosixPath(path.relative_to(PACKAGE))
        layer = relative.parts[0] if len(relative.parts) > 1 else relative.stem
        if layer in BELOW_THE_DRIVERS:
            check = determinism_findings if path.suffix == ".py" else c_findings
            findings += check(path.read_text(), str(relative), allowed)
    return findings


def test_nothing_below_the_drivers_reaches_outside() -> None:
    assert "\n".join(map(str, _findings_below_the_drivers(ALLOWED))) == ""


def test_every_exception_has_a_reason_and_is_still_needed() -> None:
    found = {(finding.path, finding.name) for finding in _findings_below_the_drivers({})}
    assert [entry for entry, reason in ALLOWED.items() if entry not in found or len(reason.split()) < 3] == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import time", "time"),
        ("import os.path", "os"),
        ("import math, socket as s", "socket"),
        ("from datetime import datetime", "datetime"),
        ("from random import Random", "random"),
        ("from random import shuffle", "random"),
        ("def late():\n    import asyncio", "asyncio"),
        ("if TYPE_CHECKING:\n    from random import shuffle", "random"),
        ("if TYPE_CHECKING:\n    from pathlib import Path", "pathlib"),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from random import Random", "random"),
        ("import pickle", "pickle"),
        ("import importlib\nimportlib.import_module('time')", "time"),
        ("__import__('time')", "__import__"),
        ("text = open('a').read()", "open"),
        ("keys = {id(x): x for x in xs}", "id"),
        ("bucket = hash(name) % 8", "hash"),
        ("order = sorted(names, key=hash)", "hash"),
        ("def hash_of(self):\n    return hash(self.name)", "hash"),
        ("class A:\n    def __hash__(self):\n        def inner():\n            return hash(1)\n", "hash"),
        ("eval(text)", "eval"),
        ("exec(text)", "exec"),
        ("code = compile(text, 'filter', 'eval')", "compile"),
        ("print('here')", "print"),
    ],
)
def test_a_module_that_reaches_outside_is_caught(source: str, name: str) -> None:
    assert [finding.name for finding in determinism_findings(source, "model/mutant.py", {})] == [name]


@pytest.mark.parametrize(
    "source",
    [
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from random import Random",
        "import typing\nif typing.TYPE_CHECKING:\n    import random",
        "class A:\n    def __hash__(self):\n        return hash(self.name)",
        "def add(id, filter):\n    index[id] = filter",
        "stream.open()\nself.compile(text)\nrandom.shuffle(xs)",
        "import timeit_like, math\nfrom holdfast.kernel import time",
        "from .time import Nanoseconds",
    ],
)
def test_a_module_that_stays_inside_passes(source: str) -> None:
    assert determinism_findings(source, "model/honest.py", {}) == []


def test_an_exception_holds_for_one_name_in_one_file() -> None:
    source = "import os\nimport time"
    allowed = {("model/mutant.py", "os"): "reads nothing at run time"}
    assert determinism_findings(source, "model/mutant.py", allowed) == [Finding("model/mutant.py", 2, "time")]
    assert len(determinism_findings(source, "model/other.py", allowed)) == 2


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("#include <time.h>\n", "time.h"),
        ("# include <sys/socket.h>\n", "sys/socket.h"),
        ("int x = rand() % 7;\n", "rand"),
        ("/* a comment\n over lines */ FILE *f = fopen(name, mode);\n", "fopen"),
    ],
)
def test_a_c_source_that_reaches_outside_is_caught(source: str, name: str) -> None:
    assert [finding.name for finding in c_findings(source, "matching/_kernel/mutant.c", {})] == [name]


@pytest.mark.parametrize(
    "source",
    [
        "#include <string.h>\n#include <stdint.h>\n",
        "/* linear time (and no rand()) */ int x;\n",
        "// opens with open (see above)\nint x;\n",
        'static const char *text = "time(0) // rand()";\n',
        "table->open(1); self.time(2); wall_time(3);\n",
    ],
)
def test_a_c_source_that_stays_inside_passes(source: str) -> None:
    assert c_findings(source, "matching/_kernel/honest.c", {}) == []
