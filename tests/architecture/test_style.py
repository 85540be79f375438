"""Every module says what it does."""

import ast

import pytest

from tests.repository import PACKAGE, python_modules


def has_docstring(source: str) -> bool:
    """Whether a module begins with a docstring that says something."""
    return bool((ast.get_docstring(ast.parse(source)) or "").strip())


def test_every_module_has_a_docstring() -> None:
    missing = [path for path in python_modules() if not has_docstring(path.read_text())]
    assert [path.relative_to(PACKAGE).as_posix() for path in missing] == []


@pytest.mark.parametrize("source", ["", "x = 1\n", '"""  """\n', "# A comment says too little.\nimport math\n"])
def test_a_module_without_a_docstring_is_caught(source: str) -> None:
    assert not has_docstring(source)


def test_a_docstring_is_recognised() -> None:
    assert has_docstring('"""Filters."""\nimport math\n')


LINES_MAX = 500  # a longer file is usually two ideas


def test_no_file_of_the_package_is_long() -> None:
    lines = {path.relative_to(PACKAGE).as_posix(): path.read_text().count("\n") for path in python_modules()}
    assert {name: count for name, count in lines.items() if count > LINES_MAX} == {}
