"""What lies in the package belongs to the repository: a rule of .gitignore that hides a module breaks every copy."""

import subprocess

import pytest

from tests.repository import PACKAGE, ROOT, python_modules, repository_files


def test_no_module_is_hidden_from_commits() -> None:
    assert [path.relative_to(PACKAGE).as_posix() for path in set(python_modules()) - set(repository_files())] == []


@pytest.mark.parametrize("name", ["src/holdfast/protocols/sessions/core.py", "docs/core.md"])
def test_a_file_that_is_called_core_is_not_taken_for_a_dump(name: str) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a clone")
    assert subprocess.run(["git", "check-ignore", "--quiet", name], cwd=ROOT, check=False).returncode == 1
