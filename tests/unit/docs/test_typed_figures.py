"""Figures on pages are written by commands; what is not measured stands in backticks.

A setting, a limit of the code, a figure of a standard or a paper, a parameter of an example, and
the bound of a test are in backticks: `10 s`. What was measured is in a part of the page that a
command writes. Decision records are exempt: they say what was known when they were taken.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from knotless.base.errors import PlanError
from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.support import REPOSITORY
from tests.support.constants_of_code import constant, figure
from tests.support.every import holds_for_every
from tests.support.typed_figures import typed

LIST = yaml.safe_load((REPOSITORY / "tests" / "data" / "figures_on_pages.yaml").read_text())
DOCS = REPOSITORY / "docs"
WRITTEN = {DOCS / "agreement.md", DOCS / "reproduction.md", *DOCS.glob("reproduction/*.md")}
DECISIONS = DOCS / "decisions"
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((REPOSITORY / "labs").rglob("*.md")),
    *(p for p in sorted(DOCS.rglob("*.md")) if p not in WRITTEN and DECISIONS not in p.parents),
]
"""The pages that people write."""
REASONS = {"exit statuses", "defaults", "limits"}


def name_of(path: Path) -> str:
    """Return the name of a page in the list: its path in docs, or in the repository."""
    return str(path.relative_to(DOCS if path.is_relative_to(DOCS) else REPOSITORY))


CONSTANTS = [
    (name, written, *where.split())
    for name, listed in LIST["constants"].items()
    for written, where in listed.items()
]


def constant_is_as_the_page_says(case: tuple[str, str, str, str]) -> None:
    page, written, path, name = case
    assert f"`{written}`" in (DOCS / page).read_text(), "not on the page"
    assert constant(path, name) == pytest.approx(figure(written), rel=1e-9)


def test_constants_of_the_code_are_as_pages_say() -> None:
    holds_for_every(constant_is_as_the_page_says, CONSTANTS)


def nothing_measured_is_typed(path: Path) -> None:
    figures = typed(path)
    assert not figures.figures, (
        "a command must write what was measured; a setting stands in backticks"
    )
    defaults = {
        each for each in figures.tables if each.startswith("| parameter | meaning | default")
    }
    assert figures.tables - defaults == {*LIST["tables"].get(name_of(path), {})}, (
        "a command must write tables of numbers, or tests/data/figures_on_pages.yaml says why not;"
        " a table that begins with `| parameter | meaning | default` is one of settings"
    )


def test_nothing_measured_is_typed() -> None:
    holds_for_every(nothing_measured_is_typed, PAGES, name_of)


def test_a_constant_that_differs_is_found(tmp_path: Path) -> None:
    code = "struct A { most_us: f64 }\nA { most_us: 2_500.0 }\nconst B: Time = 20 * MILLISECOND;\n"
    (tmp_path / "a.rs").write_text(f"{code}C_BYTES: Final = 16 << 10  # bytes\n")
    path = str(tmp_path / "a.rs")
    assert constant(path, "most_us") == pytest.approx(figure("2.5 ms"))
    assert constant(path, "B") == pytest.approx(figure("20 ms")) != figure("21 ms")
    assert constant(path, "C_BYTES") == figure("16 KiB")
    with pytest.raises(AssertionError, match="defines no D"):
        constant(path, "D")


def test_reasons_are_known_and_named_tests_exist() -> None:
    assert {*LIST["tables"]} <= {name_of(path) for path in PAGES}
    for tables in LIST["tables"].values():
        for reason in tables.values():
            if reason.startswith("tested by "):
                assert (REPOSITORY / reason.removeprefix("tested by ")).is_file(), reason
            else:
                assert reason in REASONS


def test_a_figure_that_somebody_types_is_found(tmp_path: Path) -> None:
    text = "It took 3.2 s, 14 MB and `5 ms`.\n\n    sleep 9 s\n\n| a | b | c |\n|---|---|---|\n"
    text += "| x | 1.5 | 2,000 |\n| y | 3 | 4 |\n\n<!-- figures: n -->\n17 %\n"
    text += (
        "<!-- end of figures -->\n[8 ms](a-9s.md) 1.02 times, a quarter of an hour, ten seconds\n"
    )
    text += "half a page, a second virtual channel, packets a second\n"
    (tmp_path / "p.md").write_text(text)
    figures = typed(tmp_path / "p.md")
    words = {"a quarter of an hour", "ten seconds"}
    assert figures.figures == {"3.2 s", "14 MB", "8 ms", "1.02 times"} | words
    assert figures.tables == {"| a | b | c |"}


def table_of_vlans() -> list[list[str]]:
    lines = (REPOSITORY / "docs" / "vlans.md").read_text().splitlines()
    begin = lines.index("| fabric, engine | default | tree | tree, tagging by hosts |") + 2
    end = lines.index("", begin)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[begin:end]]


def numbers_of_vlans_are_those_of_the_plans(row: list[str]) -> None:
    words = re.fullmatch(r"(\S+), (\w+)(?:, (\d) VC)?(, low port)?(?: \(.*\))?", row[0])
    assert words is not None
    spec, engine, vcs, low = words.groups()
    if spec == "lsft,17":
        return  # half a minute; the other rows follow the same rule
    options: dict[str, Any] = {"select": "low-port"} if low else {}
    options |= {"vcs": int(vcs)} if vcs else {}
    cases = (
        {"vlans": "default"},
        {"vlans": "tree"},
        {"vlans": "tree", "tagging": "host"},
    )
    for cell, case in zip(row[1:], cases, strict=True):
        if cell == "refused":
            with pytest.raises(PlanError):
                _ = make_plan(load(spec), engine, **options, **case).vlan_count
        else:
            assert make_plan(load(spec), engine, **options, **case).vlan_count == int(cell)


def test_numbers_of_vlans_are_those_of_the_plans() -> None:
    holds_for_every(numbers_of_vlans_are_those_of_the_plans, table_of_vlans())
