"""What belongs to the repository: its root, its files, and its Python modules."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "holdfast"

_NOT_OURS = {".git", ".venv", "build", "dist", "__pycache__", "var"}
_CACHES = {".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
_BUILT = {".so", ".pyc", ".o", ".whl", ".log", ".lock"}


def repository_files(root: Path = ROOT) -> list[Path]:
    """The files that a commit of everything would hold, sorted: tracked ones, and new ones not ignored."""
    if (root / ".git").exists() and shutil.which("git"):
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, cwd=root, check=True, capture_output=True).stdout
        names = {os.fsdecode(name) for name in listing.split(b"\0") if name}
        return sorted(root / name for name in names if (root / name).is_file())
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file()
        and path.suffix not in _BUILT
        and not any(part in _NOT_OURS | _CACHES or part.endswith(".egg-info") for part in path.relative_to(root).parts)
    )


def python_modules(package: Path = PACKAGE) -> list[Path]:
    """Every module of the package, sorted."""
    return sorted(package.rglob("*.py"))
