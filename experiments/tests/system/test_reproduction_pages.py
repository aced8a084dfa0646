"""The pages of the reproduction are those that the stored runs give."""

from __future__ import annotations

from knotless.results import stored
from knotless.results.stored import FOLDER
from knotless_experiments.commands.reproduction import DEFAULT_PAGE
from knotless_experiments.reproduction import page

KNOWN = stored.read(FOLDER)


def test_the_pages_in_the_repository_are_those_of_its_runs() -> None:
    written = page.pages(KNOWN)
    for name, text in written.items():
        assert (DEFAULT_PAGE.parent / name).read_text(encoding="utf-8") == text, name
    there = {path for path in (DEFAULT_PAGE.parent / page.FOLDER).rglob("*") if path.is_file()}
    assert there == {DEFAULT_PAGE.parent / name for name in written if name != page.OVERVIEW}
