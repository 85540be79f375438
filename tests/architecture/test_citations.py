"""Citations of the papers resolve in docs/papers.md, and no file names a place that only one machine has."""

import re
from collections.abc import Iterable

import pytest

from tests.repository import ROOT, repository_files

CITING_FOLDERS = {"src", "tests", "benchmarks", "examples", "experiments"}
CITING_SUFFIXES = {".py", ".pyi", ".c", ".h", ".md", ".sh", ".toml"}

ITEM = r"(?:D[0-9]|X)-[A-Z][0-9]+(?:\.[0-9]+)*"
CITATION = re.compile(rf"(?<![\w-]){ITEM}(?!\w)")
ENTRY = re.compile(rf"^\| *({ITEM}) *\| *(\S.*?) *\|$", re.MULTILINE)

# Put together from pieces, or this file would find itself.
MACHINE_PATH = re.compile(r"(?<![\w.<}/-])/(?:" + "|".join(["work", "root", "home"]) + r")(?![\w-])")
REGISTRY = re.compile(r"\b(?:" + "|".join(["pypi", "pythonhosted"]) + r")\.(?:org|io)\b")


def citations(text: str) -> set[str]:
    """The items of the papers that a text cites."""
    return set(CITATION.findall(text))


def entries(papers: str) -> dict[str, str]:
    """The items that docs/papers.md explains, each with its line."""
    return dict(ENTRY.findall(papers))


def unexplained(texts: Iterable[tuple[str, str]], papers: str) -> list[str]:
    """A message for every (name, text) and cited item that papers has no entry for."""
    known = entries(papers)
    return [
        f"{name}: {item} has no entry in docs/papers.md"
        for name, text in texts
        for item in sorted(citations(text))
        if item not in known
    ]


def foreign_addresses(text: str) -> list[str]:
    """Paths of one machine and addresses of package registries in a text."""
    return [match[0] for pattern in (MACHINE_PATH, REGISTRY) for match in pattern.finditer(text)]


def _texts() -> list[tuple[str, str]]:
    texts = []
    for path in repository_files():
        try:
            texts.append((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return texts


def _citing_texts() -> list[tuple[str, str]]:
    return [
        (name, text)
        for name, text in _texts()
        if name.partition("/")[0] in CITING_FOLDERS and "." + name.rpartition(".")[2] in CITING_SUFFIXES
    ]


def _papers() -> str:
    return (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")


def test_every_cited_item_has_an_entry() -> None:
    assert "\n".join(unexplained(_citing_texts(), _papers())) == ""


def test_every_entry_is_cited() -> None:
    cited = {item for _, text in _citing_texts() for item in citations(text)}
    assert [item for item in entries(_papers()) if item not in cited] == []


def test_no_file_names_a_machine_path_or_a_registry() -> None:
    found = [f"{name}: {address}" for name, text in _texts() for address in foreign_addresses(text)]
    assert "\n".join(found) == ""


def test_a_citation_without_an_entry_is_caught() -> None:
    known, lower, unknown = (f"{paper}-B{item}" for paper, item in [("D3", 11), ("D3", 11.2), ("D3", 111)])
    shared = "-".join(["X", "Q7"])
    papers = f"| item | in our words |\n|---|---|\n| {known} | Something. |\n| {shared} | |\n"
    text = f"# {known}, {lower}: see ({unknown}) and {shared}; AD{known}, {known}-x and {known}x are words."
    assert unexplained([("a.py", text)], papers) == [
        f"a.py: {lower} has no entry in docs/papers.md",
        f"a.py: {unknown} has no entry in docs/papers.md",
        f"a.py: {shared} has no entry in docs/papers.md",
    ]


@pytest.mark.parametrize("folder", ["work", "root", "home"])
def test_a_machine_path_is_caught(folder: str) -> None:
    assert foreign_addresses(f"cd /{folder}; open('/{folder}/data.txt')") == [f"/{folder}"] * 2
    harmless = f"see ../{folder}/a, $X/{folder}/a, ./{folder}/a, /{folder}er/a and </{folder}>"
    assert foreign_addresses(harmless) == []


def test_a_registry_address_is_caught() -> None:
    address = ".".join(["pypi", "org"])
    assert foreign_addresses(f"--index-url https://{address}/simple") == [address]
