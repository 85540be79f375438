"""What docstrings show is what happens, and what is made from the code is up to date. tests/pages runs the pages."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.schemes.tree.measures import MEASURES as NETWORK_MEASURES
from tests.repository import ROOT


@pytest.mark.parametrize("module", ["holdfast.model.filter", "holdfast.matching.index"])
def test_docstrings_show_what_happens(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(module), extraglobs={"Filter": holdfast.Filter})
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_the_states_of_the_machines_are_drawn_from_their_tables() -> None:
    command = [sys.executable, "scripts/state_diagrams.py", "--check"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == 0, "run python scripts/state_diagrams.py"


def test_the_page_on_the_public_interface_says_what_the_docstrings_say() -> None:
    command = [sys.executable, "scripts/api_docs.py", "--check"]
    result = subprocess.run(command, cwd=ROOT, check=False)
    assert result.returncode == 0, "run python scripts/api_docs.py"


def test_every_measure_of_a_network_is_on_the_page_for_operators() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    assert [name for name in NETWORK_MEASURES if f"`{name}`" not in page] == []


def users_pages() -> list[str]:
    """README, and the pages that it lists for users."""
    readme = (ROOT / "README.md").read_text()
    listed = readme.partition("### For users")[2].partition("\n### ")[0]
    return ["README.md", *re.findall(r"\]\((docs/[\w-]+\.md)\)", listed)]


def test_every_page_is_listed_for_users_or_for_developers() -> None:
    readme = (ROOT / "README.md").read_text()
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert pages - set(re.findall(r"\]\((docs/[\w-]+\.md)\)", readme.partition("### For users")[2])) == set()
    assert len(users_pages()) > 20


def test_pages_for_users_cite_no_items_of_the_papers() -> None:
    """Codes are for who works on the code: a user would have to look each of them up."""
    cited = {page: re.findall(r"\b(?:D[0-4]|X-[A-Z]\d+)\b", (ROOT / page).read_text()) for page in users_pages()}
    assert {page: codes for page, codes in cited.items() if codes} == {}


def test_links_between_pages_lead_somewhere() -> None:
    dead = []
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target, anchor in re.findall(r"\]\(((?!https?:)[^)#\s]*)(#[^)\s]+)?\)", path.read_text()):
            page = (path.parent / target).resolve() if target else path
            if not page.exists() or (anchor and page.suffix == ".md" and anchor[1:] not in anchors(page)):
                dead.append(f"{path.relative_to(ROOT)}: {target}{anchor}")
    assert dead == []


def anchors(page: Path) -> set[str]:
    """Where links into a page may lead: headings, as GitHub names them, and marks."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    named = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return named | set(re.findall(r'<a id="([^"]+)">', text))


def test_the_glossary_is_in_order() -> None:
    words = re.findall(r"^\| ([^|]+?) \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)[1:]
    assert len(words) > 40
    assert words == sorted(words)
