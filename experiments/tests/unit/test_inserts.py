"""Figures between comments of pages are those of the stored runs."""

from __future__ import annotations

import re

import pytest

from bench import pages
from knotless.results import page_parts, stored
from knotless.results.page_parts import PartError
from knotless_experiments.reproduction import inserts
from tests.support import REPOSITORY
from tests.support.every import holds_for_every

DOCS = REPOSITORY / "docs"


def figures_are_those_of_the_stored_runs(name: str) -> None:
    text = (REPOSITORY / "docs" / name).read_text()
    assert inserts.written(text, stored.read()) == text
    assert len(page_parts.names(text)) == len(re.findall("^<!-- figures:", text, re.MULTILINE)) > 0


def test_figures_between_comments_are_those_of_the_stored_runs() -> None:
    holds_for_every(figures_are_those_of_the_stored_runs, inserts.PAGES)


def test_figures_that_there_are_not_are_refused() -> None:
    asked = "<!-- figures: nothing -->\n<!-- end of figures -->"
    with pytest.raises(PartError, match="figures 'nothing': there are"):
        inserts.written(asked, stored.read())


def test_every_part_of_a_page_is_written_by_a_command() -> None:
    declared = {DOCS / name for name in (*pages.PAGES, *inserts.PAGES)}
    written = {path for path in DOCS.rglob("*.md") if page_parts.names(path.read_text())}
    assert written == declared
