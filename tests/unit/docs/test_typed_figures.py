"""Every figure on a page is written by a command from a stored run, or is known to be typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
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

LIST = yaml.safe_load((REPOSITORY / "tests" / "data" / "typed_figures.yaml").read_text())
DOCS = REPOSITORY / "docs"
WRITTEN = {DOCS / "agreement.md", DOCS / "reproduction.md", *DOCS.glob("reproduction/*.md")}
DECISIONS = DOCS / "decisions"
PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((REPOSITORY / "labs").rglob("*.md")),
    *(path for path in sorted(DOCS.rglob("*.md")) if path not in WRITTEN),
]
"""The pages that people write."""
KINDS = {"definition", "standard", "paper", "once"}


def name_of(path: Path) -> str:
    """Return the name of a page in the list: its path in docs, or in the repository."""
    return str(path.relative_to(DOCS if path.is_relative_to(DOCS) else REPOSITORY))


def allowed(listed: Mapping[str, Any]) -> set[str]:
    return {text for kind, figures in listed.items() if kind != "tables" for text in figures}


CONSTANTS = [
    (name, written, *where.split())
    for name, listed in LIST.items()
    for written, where in listed.get("constants", {}).items()
]


def constant_is_as_the_page_says(case: tuple[str, str, str, str]) -> None:
    _page, written, path, name = case
    assert constant(path, name) == pytest.approx(figure(written), rel=1e-9)


def test_constants_of_the_code_are_as_pages_say() -> None:
    holds_for_every(constant_is_as_the_page_says, CONSTANTS)


def typed_figures_are_listed(path: Path) -> None:
    listed = LIST.get(name_of(path), {})
    figures = typed(path)
    if DECISIONS not in path.parents:  # their prose says what was known when they were taken
        assert figures.figures == allowed(listed), (
            "a command must write a figure, or the list name it"
        )
    assert figures.tables == allowed(listed.get("tables", {}))


def test_typed_figures_are_listed_with_the_reason() -> None:
    holds_for_every(typed_figures_are_listed, PAGES, name_of)


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
    assert set(LIST) <= {name_of(path) for path in PAGES}
    for listed in LIST.values():
        for kind in [*listed, *listed.get("tables", {})]:
            if kind.startswith("tested by "):
                assert (REPOSITORY / kind.removeprefix("tested by ")).is_file(), kind
            else:
                assert kind in {*KINDS, "constants", "tables"}, kind


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
