"""The pages on the controller say what is true of the code."""

from __future__ import annotations

import re

from docs.generator.configuration import table
from knotless.base.http_rules import Limits
from knotless.controller.config import Config
from knotless.controller.rest.events import MAX_CLIENTS, MAX_WAITING
from tests.support import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = [*sorted(DOCS.glob("controller*.md")), DOCS / "reference" / "rest.md"]
MANUAL = "\n".join(page.read_text() for page in PAGES)


def test_every_key_is_in_the_reference() -> None:
    assert table() in MANUAL, "write it again: python -m docs.generator.configuration"


def test_every_key_has_a_meaning() -> None:
    rows = [row.split(" | ") for row in table().splitlines()[2:]]
    assert {row[0].strip("| `").partition(".")[0] for row in rows} == set(Config.model_fields)
    for row in rows:
        assert len(row) == 4
        assert re.search(r"\w{3}", row[3]), row


def test_every_path_of_the_http_interface_is_listed() -> None:
    files = (REPOSITORY / "knotless" / "controller").rglob("*.py")
    paths = {
        url_path
        for file in files
        for url_path in re.findall(r"^ +\"(/[a-z]+)\": ", file.read_text(), re.MULTILINE)
    }
    assert {"/status", "/events", "/reload", "/undrain"} <= paths
    for path in paths:
        assert f"`GET {path}`" in MANUAL or f"`POST {path}`" in MANUAL, path


def test_the_limits_are_those_of_the_code() -> None:
    limits = Limits()
    for value in (
        f"| {limits.connections} |",
        f"| {limits.head_bytes >> 10} KiB |",
        f"| {limits.body_bytes >> 10} KiB |",
        f"| {limits.request_s:g} s |",
        f"| {limits.response_s:g} s |",
        f"At most {MAX_CLIENTS} clients",
        f"more than {MAX_WAITING:,} events",
    ):
        assert value in MANUAL.replace("`", ""), value


def rows_with_tests() -> list[str]:
    """Return the last cells of all rows of tables whose last column is ``test``."""
    cells, inside = [], False
    for line in MANUAL.splitlines():
        if not line.startswith("|"):
            inside = False
        elif line.endswith("| test |"):
            inside = True
        elif inside and not line.startswith("|--"):
            cells.append(line.split("|")[-2].strip())
    return cells


def test_every_row_of_the_failure_tables_names_a_test() -> None:
    cells = rows_with_tests()
    assert len(cells) > 20
    for cell in cells:
        name, _, function = cell.strip("`").partition("::")
        files = (REPOSITORY / "tests").glob(f"*/**/{name}")
        assert any(f"\ndef {function}(" in file.read_text() for file in files), cell
