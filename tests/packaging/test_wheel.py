"""The wheel installs and runs outside the repository, with the compiled kernel and without it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.tags import Tag, sys_tags
from packaging.utils import parse_wheel_filename

from tests.repository import ROOT, repository_files

MEGABYTE = 1_000_000
NO_COMPILER = "/nonexistent/cc"
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

# Prints where Holdfast came from, which engine serves, what it answered, and all warnings of the program.
PROGRAM = """
import json, warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import holdfast
    import holdfast.matching
    from holdfast.model.batch import EventBatch
    from holdfast.model.event import encode_fields

    def event(name, value):
        return encode_fields("p", 1, 1, "", {name: value}, b"", 0, 0)

    answers = []
    for _ in range(2):
        f = holdfast.Filter("price > 100")
        index = holdfast.FilterIndex()
        index.add(1, f)
        events = [event("price", price) for price in (99, 101.5)]
        rows = index.match_encoded(EventBatch.of(events))
        answers.append([index.match({"price": 101.5}), index.match({"price": 99}), rows])

print(json.dumps({
    "file": holdfast.__file__,
    "engine": holdfast.matching.ENGINE,
    "answers": answers,
    "warnings": [[issubclass(w.category, RuntimeWarning), str(w.message)] for w in caught],
}))
"""

VERSION = "import sys; from holdfast.cli.main import main; sys.exit(main(['version']))"
# What is compiled, if it can be: its sources, and where it lies in a wheel.
MODULES = {"matching/_kernel": "kernel.h", "model/_events": "events.h"}


@dataclass(frozen=True)
class Installed:
    """A wheel that was built and installed, and the folder of its dependencies."""

    wheel: Path
    target: Path
    dependencies: Path

    def run(self, program: str, folder: Path) -> str:
        """The output of a program that sees the standard library, the wheel and its dependencies alone."""
        path = os.pathsep.join([str(self.target), str(self.dependencies)])
        environment = {**_clean_environment(), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        # -S leaves out the site packages, and with them the editable installation of this repository.
        return _run([sys.executable, "-S", "-c", program], folder, environment)


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{shlex.join(command)}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PYTHON"))}


def _build(repository: Path, wheels: Path, **environment: str) -> Path:
    """The wheel that pip makes of a folder with the repository's files."""
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(wheels)]
    _run([*PIP, "wheel", ".", *options], repository, {**_clean_environment(), **environment})
    [wheel] = wheels.iterdir()
    return wheel


def _copy(folder: Path) -> Path:
    """The repository's files, in a folder of their own."""
    copy = folder / "repository"
    for path in repository_files():
        destination = copy / path.relative_to(ROOT)
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, destination)
    return copy


def _build_and_install(folder: Path, **environment: str) -> Installed:
    return _install(folder, _build(_copy(folder), folder / "wheels", **environment))


def _install(folder: Path, wheel: Path) -> Installed:
    target = folder / "target"
    install = ["install", "--no-deps", "--no-index", "--no-compile", "--target", str(target), str(wheel)]
    _run([*PIP, *install], folder, _clean_environment())
    [metadata] = target.glob("holdfast-*.dist-info")
    dependencies = folder / "dependencies"
    dependencies.mkdir()
    _copy_dependencies(Distribution.at(metadata), dependencies)
    return Installed(wheel, target, dependencies)


def _copy_dependencies(of: Distribution, folder: Path) -> None:
    """Copy what a distribution needs, and what that needs in turn, from this environment; no extras."""
    for text in of.requires or []:
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        needed = distribution(requirement.name)
        assert needed.version in requirement.specifier
        for file in needed.files or []:
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            destination = folder / file
            if destination.exists():
                continue
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(str(file.locate()), destination)
        _copy_dependencies(needed, folder)


def _tags(wheel: Path) -> frozenset[Tag]:
    return parse_wheel_filename(wheel.name)[3]


def _compiled(wheel: Path) -> set[str]:
    """Which modules a wheel holds compiled."""
    with zipfile.ZipFile(wheel) as archive:
        names = [re.fullmatch(r"holdfast/(\w+/_\w+)\..*(?:so|pyd)", name) for name in archive.namelist()]
    return {found[1] for found in names if found}


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _has_compiler() -> bool:
    command = os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")
    return shutil.which(shlex.split(command)[0]) is not None


needs_compiler = pytest.mark.skipif(not _has_compiler(), reason="needs a C compiler")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return _build_and_install(tmp_path_factory.mktemp("compiled"))


@pytest.fixture(scope="module")
def installed_without_compiler(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return _build_and_install(tmp_path_factory.mktemp("portable"), CC=NO_COMPILER)


@needs_compiler
@pytest.mark.full
def test_the_wheel_runs_outside_the_repository_on_the_compiled_kernel(installed: Installed, tmp_path: Path) -> None:
    seen = json.loads(installed.run(PROGRAM, tmp_path))
    assert Path(seen["file"]).is_relative_to(installed.target)
    assert seen["engine"] == "compiled"
    assert seen["answers"] == [[[1], [], {"1": [1]}]] * 2
    assert seen["warnings"] == []


def test_a_wheel_built_without_a_compiler_serves_and_warns_once(
    installed_without_compiler: Installed, tmp_path: Path
) -> None:
    seen = json.loads(installed_without_compiler.run(PROGRAM, tmp_path))
    assert Path(seen["file"]).is_relative_to(installed_without_compiler.target)
    assert seen["engine"] == "portable"
    assert seen["answers"] == [[[1], [], {"1": [1]}]] * 2
    [[is_runtime_warning, message]] = seen["warnings"]
    assert is_runtime_warning
    assert "compiled kernel" in message


def test_a_wheel_built_without_a_compiler_has_a_name_of_its_own_and_says_which_index_serves(
    installed_without_compiler: Installed, tmp_path: Path
) -> None:
    # The name of the compiled one would let an index or a cache hand out either of them for the other.
    assert _tags(installed_without_compiler.wheel) == {Tag("py3", "none", "any")}
    told = installed_without_compiler.run(VERSION, tmp_path)
    assert re.search(r"^index +portable$", told, re.MULTILINE)
    assert re.search(r"^events +portable$", told, re.MULTILINE)


@needs_compiler
def test_a_wheel_with_the_compiled_kernel_is_named_for_this_python_and_platform(installed: Installed) -> None:
    [tag] = _tags(installed.wheel)
    assert tag.platform != "any"
    assert tag in sys_tags()
    assert _compiled(installed.wheel) == set(MODULES)


@needs_compiler
@pytest.mark.full
@pytest.mark.parametrize("edited", [["matching/_kernel"], ["model/_events"], list(MODULES)], ids=" and ".join)
def test_what_is_of_older_sources_is_not_packed_when_the_newer_ones_cannot_be_compiled(
    tmp_path: Path, edited: list[str]
) -> None:
    repository = tmp_path / "repository"
    compiled = _build_and_install(tmp_path).wheel
    assert _compiled(compiled) == set(MODULES)
    for module in edited:
        os.utime(repository / "src" / "holdfast" / module / MODULES[module])  # as if it had been edited
    again = _build(repository, tmp_path / "again", CC=NO_COMPILER)
    assert _compiled(again) == set(MODULES) - set(edited)
    assert (_tags(again) == {Tag("py3", "none", "any")}) == (len(edited) == len(MODULES))


@needs_compiler
@pytest.mark.full
@pytest.mark.parametrize(
    ("broken", "lines"), [("matching/_kernel", ("portable", "compiled")), ("model/_events", ("compiled", "portable"))]
)
def test_one_is_compiled_and_serves_where_the_other_cannot_be(
    tmp_path: Path, broken: str, lines: tuple[str, str]
) -> None:
    repository = _copy(tmp_path)
    with (repository / "src" / "holdfast" / broken / MODULES[broken]).open("a") as header:
        header.write("#error no compiler takes this\n")
    half = _install(tmp_path, _build(repository, tmp_path / "wheels"))
    assert _compiled(half.wheel) == set(MODULES) - {broken}
    assert _tags(half.wheel) != {Tag("py3", "none", "any")}
    told = half.run(VERSION, tmp_path)
    assert re.findall(r"^(?:index|events) +(\w+)$", told, re.MULTILINE) == list(lines)
    assert json.loads(half.run(PROGRAM, tmp_path))["answers"] == [[[1], [], {"1": [1]}]] * 2


def test_the_wheel_holds_types_licence_and_command_but_no_c_source(installed: Installed) -> None:
    files = [path for path in installed.target.rglob("*") if path.is_file()]
    names = [path.relative_to(installed.target).as_posix() for path in files]
    assert "holdfast/py.typed" in names
    assert [name for name in names if name.endswith("/LICENSE")] != []
    assert [name for name in names if name.endswith((".c", ".h", ".o"))] == []
    ours = r"(holdfast(-[^/]+\.dist-info)?|pyspark_holdfast)/"
    assert [name for name in names if not re.match(ours, name)] == ["bin/holdfast"]


def test_holdfast_and_its_dependencies_install_in_under_150_megabytes(installed: Installed) -> None:
    assert _size(installed.target) + _size(installed.dependencies) < 150 * MEGABYTE


def test_importing_holdfast_leaves_the_heavy_libraries_alone(tmp_path: Path) -> None:
    # Run in the full environment: an import that is tried and fails would not show in a bare one.
    program = "import holdfast, json, sys; print(json.dumps(list(sys.modules)))"
    output = _run([sys.executable, "-W", "ignore", "-c", program], tmp_path, _clean_environment())
    assert {"pyarrow", "numpy", "pandas", "pyspark"} & set(json.loads(output)) == set()


def test_importing_holdfast_takes_under_half_a_second_of_the_processor(installed: Installed, tmp_path: Path) -> None:
    program = "import time; begin = time.process_time(); import holdfast; print(time.process_time() - begin)"
    assert min(float(installed.run(program, tmp_path)) for _ in range(3)) < 0.5


def test_the_build_names_every_c_file() -> None:
    extensions = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["ext-modules"]
    assert sorted(extension["name"].removeprefix("holdfast.").replace(".", "/") for extension in extensions) == sorted(
        MODULES
    )
    for extension in extensions:
        folder = ROOT / "src" / extension["name"].replace(".", "/")
        assert sorted(extension["sources"]) == sorted(path.relative_to(ROOT).as_posix() for path in folder.glob("*.c"))
        # An edited header that is not named would leave the old build in its place.
        assert sorted(extension["depends"]) == sorted(path.relative_to(ROOT).as_posix() for path in _included(folder))


def _included(folder: Path) -> set[Path]:
    """The headers of the package that the sources of a folder include, and those that these include."""
    found: set[Path] = set()
    waiting = [*folder.glob("*.[ch]")]
    while waiting:
        path = waiting.pop()
        headers = {
            (path.parent / name).resolve() for name in re.findall(r'^#include "(.+)"', path.read_text(), re.MULTILINE)
        }
        waiting += headers - found
        found |= headers
    return found


def test_every_pin_is_one_exact_version() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*", line)] == []


def test_this_environment_is_the_pinned_one() -> None:
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    assert {name: distribution(name).version for name in pins} == pins
