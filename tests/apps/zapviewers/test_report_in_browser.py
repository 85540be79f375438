"""The report in a real browser: it loads without a network, fits a phone, and draws what it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from holdfast.apps.zapviewers.pipeline.report import write_report
from tests.apps.zapviewers.chromium import Tab, find_chromium, open_tab
from tests.apps.zapviewers.report_tables import EVENING, some_tables, two_minutes, write_tables

pytestmark = pytest.mark.browser

NAMES = [
    *("Velkin", "قناة الأخبار", "📺 Nyheter", "<script>alert(1)</script>", "\u202egnp.exe", "x" * 59, "W" * 40),
    *(f"Kanal {place}" for place in range(20)),
]
# Of every drawing that is to be seen: its width and height.
SIZES = """[...document.querySelectorAll('svg:not(.store)')]
    .map(s => s.getBoundingClientRect()).map(r => [r.width, r.height])"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# The text that sticks out of the page to the right, other than where it can be scrolled, or is cut with an ellipsis.
BEYOND = """[...document.querySelectorAll('span, h1, h2, h3, h4, p, td, th, dd, bdi')]
    .filter(e => !e.closest('.scroll, .heat span > *') && e.getBoundingClientRect().right > innerWidth + 0.5)
    .map(e => e.textContent)"""


# The labels of axes that take more than a line, and pairs that cover each other or another picture.
LABELS = """[...document.querySelectorAll('.plot')].flatMap(plot => {
    const seen = e => getComputedStyle(e).display !== 'none';
    const boxes = [...plot.querySelectorAll('.y span, .x span')].filter(seen)
        .map(e => ({text: e.textContent, box: e.getBoundingClientRect(), line: parseFloat(
            getComputedStyle(e).fontSize)}));
    const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
    const own = plot.closest('figure').getBoundingClientRect();
    const field = plot.querySelector('svg').getBoundingClientRect();
    return [
        ...boxes.filter(l => l.box.height > 1.5 * l.line).map(l => l.text + ' is wrapped'),
        ...boxes.filter(l => l.box.left < own.left - 8 || l.box.right > own.right + 8).map(l => l.text + ' sticks out'),
        ...boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => !apart(a.box, b.box))
            .map(b => a.text + ' on ' + b.text)),
        ...boxes.filter(l => l.box.right > field.left + 1 && l.box.bottom < field.bottom - 8)
            .map(l => l.text + ' on the curve'),
    ];
})"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("there is no Chromium: on Debian and Ubuntu, apt-get install chromium")
    with open_tab(chromium, tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    output = folder / "report.html"
    write_report(some_tables(folder / "tables", NAMES), output)
    return output


def millions(folder: Path) -> Path:
    """Viewers whose numbers are long, over two days."""
    rows = [(EVENING + timedelta(minutes=minute), "Velkin", 2_000_000 + minute) for minute in range(0, 2_000, 7)]
    return write_tables(folder, {"viewers_by_minute": rows})


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (768, True), (400, False), (320, True)])
def test_page_loads_offline_and_fits(tab: Tab, report: Path, width: int, dark: bool) -> None:
    tab.complaints.clear()
    tab.requests.clear()
    tab.open(report, width, dark=dark)
    picture = tab.screenshot(report.with_name(f"report-{width}{'-dark' if dark else ''}.png"))
    assert tab.complaints == []
    assert tab.requests == [report.resolve().as_uri()]
    assert tab.ask("document.title") == "Who watched what – Holdfast"
    assert tab.ask("document.compatMode") == "CSS1Compat"
    assert tab.ask("document.querySelectorAll('script, img, parsererror').length") == 0
    sizes = tab.ask(SIZES)
    assert len(sizes) > 40
    assert all(across > 5 and down > 5 for across, down in sizes)
    assert tab.ask(OVERFLOW) == 0
    assert tab.ask(BEYOND) == []
    background = tab.ask("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(18, 22, 27)" if dark else "rgb(255, 255, 255)")
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 50_000


@pytest.mark.parametrize("width", [1200, 768, 400, 320])
@pytest.mark.parametrize("make", [some_tables, two_minutes, millions], ids=["evening", "two minutes", "millions"])
def test_labels_of_axes_can_be_read(tab: Tab, make: Callable[[Path], Path], width: int, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    write_report(make(tmp_path / "tables"), page)
    tab.open(page, width)
    tab.screenshot(tmp_path / f"axes-{width}.png")
    assert tab.ask(LABELS) == []


def test_curves_are_lines_of_the_same_width_in_all_sizes(tab: Tab, report: Path) -> None:
    tab.open(report, 400)
    effects = "[...document.querySelectorAll('path:not(.area)')].map(p => getComputedStyle(p).vectorEffect)"
    assert set(tab.ask(effects)) == {"non-scaling-stroke"}


def test_browser_hears_of_what_is_not_allowed(tab: Tab, report: Path, tmp_path: Path) -> None:
    """The checks above can fail: a page with a script and a picture from elsewhere is complained about."""
    bad = tmp_path / "bad.html"
    text = report.read_text(encoding="utf-8")
    bad.write_text(text.replace("<h1>", '<script>alert(1)</script><img src="http://127.0.0.1:9/x"/><h1>', 1), "utf-8")
    tab.complaints.clear()
    tab.requests.clear()
    tab.open(bad, 400)
    assert len(tab.complaints) >= 2
    assert "Content Security Policy" in tab.complaints[0]
