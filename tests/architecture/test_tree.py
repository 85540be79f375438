"""The tree in ARCHITECTURE.md: where a folder's modules are listed, all of them are, with all of its
folders, and none that there is not."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from tests.repository import PACKAGE, ROOT, python_modules

LINE = re.compile(r"( +)([a-z0-9_]+/|[a-z0-9_]+(?:(?:, | → )[a-z0-9_]+)*)(?: {2,}| (?=[a-z])|$)(.*)")
INDENT_MAX = 10  # more: a description that goes on
UNLISTED = ("__init__", "__main__")
ONE_IDEA_A_FILE = ("trace/checkers/",)  # called after it


def listed(page: str) -> dict[str, tuple[set[str], set[str]]]:
    """Folder → its modules that the tree lists, and all words about it, which may name more; one that is only described
    lists none."""
    tree = page.split("```text\n", 1)[1].split("```", 1)[0]
    found: dict[str, tuple[set[str], set[str]]] = {"": (set(), set())}
    opened: list[tuple[int, str]] = [(0, "")]  # folders, with their indents
    for line in tree.splitlines()[1:]:
        match = LINE.match(line)
        folder = opened[-1][1]
        if match is not None and len(match[1]) <= INDENT_MAX:
            indent, names = len(match[1]), match[2]
            while opened[-1][0] >= indent:
                opened.pop()
            folder = opened[-1][1]
            if names.endswith("/"):
                folder += names
                opened.append((indent, folder))
                found[folder] = set(), set()
            else:
                found[folder][0].update(re.split(", | → ", names))
        found[folder][1].update(re.findall(r"[a-z0-9_]+", line))
    return found


def modules() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in python_modules():
        name = PurePosixPath(path.relative_to(PACKAGE))
        folder = "" if len(name.parts) == 1 else f"{name.parent}/"
        if name.stem not in UNLISTED:
            found.setdefault(folder, set()).add(name.stem)
    return found


def differences(page: str, there: Mapping[str, set[str]]) -> list[str]:
    found, tree = [], listed(page)
    for folder, (names, words) in tree.items():
        real = there.get(folder, set())
        if names and folder not in ONE_IDEA_A_FILE:
            found += [f"{folder}{name} is not there" for name in sorted(names - real)]
            found += [f"{folder}{name} is not in the tree" for name in sorted(real - names - words)]
    opened = {folder for folder, (names, _) in tree.items() if names}
    found += [
        f"{folder} is not in the tree" for folder in sorted(there.keys() - tree.keys()) if parent(folder) in opened
    ]
    return found


def parent(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[0] + "/" if folder.count("/") > 1 else ""


def test_the_tree_has_all_modules_of_the_folders_that_it_opens() -> None:
    assert differences((ROOT / "ARCHITECTURE.md").read_text(), modules()) == []


def test_what_is_missing_and_what_is_gone_is_found() -> None:
    page = "```text\nsrc/\n  a/         things\n    one, two    these\n    b/          more: x\n  errors\n```"
    assert differences(page, {"a/": {"one", "two"}, "a/b/": {"x", "y"}, "": {"errors"}}) == []
    assert differences(page, {"a/": {"one", "three"}, "": {"errors"}}) == [
        "a/two is not there",
        "a/three is not in the tree",
    ]
    assert differences(page, {"a/": {"one", "two"}, "a/c/": {"z"}, "a/b/d/": {"w"}, "": {"errors"}}) == [
        "a/c/ is not in the tree"
    ]
