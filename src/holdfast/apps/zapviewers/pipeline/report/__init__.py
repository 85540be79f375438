"""The tables of a pipeline as one page of HTML, which needs nothing but itself: no network, no script, no font.

`figures` reads the tables, `page` puts the sections together from `plots`, `heat_map` and `listing`, and `markup` is
the only way in which text gets into the page, so that no name of a channel becomes anything but text in it.
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.apps.zapviewers.pipeline.report.figures import read_figures
from holdfast.apps.zapviewers.pipeline.report.page import page


def write_report(tables: Path, output: Path) -> None:
    """Writes the page about the tables below a folder. PipelineError if there are none."""
    text = page(read_figures(tables))
    # Under another name first: a browser that reloads sees the old page or the new one.
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, output)
