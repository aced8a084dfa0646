"""Every figure on a page is written by a command from a stored run, or is known to be typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from common.errors import PlanError
from experiments.reproduction import inserts, page
from experiments.reproduction.inserts import InsertError
from knotless.commands.reproduction import AGREEMENT
from routing.plan import make_plan
from runs import stored
from tests.typed_figures import typed
from topologies import load

ROOT = Path(__file__).resolve().parents[2]
LIST = yaml.safe_load((ROOT / "tests" / "data" / "typed_figures.yaml").read_text())
WRITTEN = {page.OVERVIEW.name, AGREEMENT}
PAGES = [
    ROOT / "README.md",
    *(path for path in sorted((ROOT / "docs").glob("*.md")) if path.name not in WRITTEN),
]
"""The pages that people write. Decision records say what was known at their time."""
KINDS = {"definition", "standard", "paper", "waiting"}


def allowed(known: Mapping[str, Any]) -> set[str]:
    return {figure for kind, figures in known.items() if kind != "tables" for figure in figures}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_typed_figures_are_listed_with_the_reason(path: Path) -> None:
    known = LIST.get(path.name, {})
    found = typed(path)
    assert found.figures == allowed(known), "a command must write a figure, or the list name it"
    assert found.tables == allowed(known.get("tables", {}))


def test_reasons_are_known_and_named_tests_exist() -> None:
    assert set(LIST) <= {path.name for path in PAGES}
    for known in LIST.values():
        for kind in [*known, *known.get("tables", {})]:
            if kind.startswith("tested by "):
                assert (ROOT / kind.removeprefix("tested by ")).is_file(), kind
            else:
                assert kind in {*KINDS, "tables"}, kind


def test_a_figure_that_somebody_types_is_found(tmp_path: Path) -> None:
    text = "It took 3.2 s, 14 MB and `5 ms`.\n\n    sleep 9 s\n\n| a | b | c |\n|---|---|---|\n"
    text += "| x | 1.5 | 2,000 |\n| y | 3 | 4 |\n\n<!-- figures: n -->\n17 %\n"
    text += "<!-- end of figures -->\n[8 ms](a-9s.md) 1.02 times\n"
    (tmp_path / "p.md").write_text(text)
    found = typed(tmp_path / "p.md")
    assert found.figures == {"3.2 s", "14 MB", "8 ms", "1.02 times"}
    assert found.tables == {"| a | b | c |"}


@pytest.mark.parametrize("name", inserts.PAGES)
def test_figures_between_comments_are_those_of_the_stored_runs(name: str) -> None:
    text = (ROOT / "docs" / name).read_text()
    assert inserts.written(text, stored.read()) == text
    assert len(inserts.PART.findall(text)) == len(re.findall("<!-- figures:", text)) > 0


def test_figures_that_there_are_not_are_refused() -> None:
    asked = "<!-- figures: nothing -->\n<!-- end of figures -->"
    with pytest.raises(InsertError, match="figures 'nothing': there are"):
        inserts.written(asked, stored.read())


def table_of_vlans() -> list[list[str]]:
    lines = (ROOT / "docs" / "vlans.md").read_text().splitlines()
    begin = lines.index("| fabric, engine | default | tree | tree, tagging by hosts |") + 2
    end = lines.index("", begin)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[begin:end]]


@pytest.mark.parametrize("row", table_of_vlans(), ids=lambda row: row[0])
def test_numbers_of_vlans_are_those_of_the_plans(row: list[str]) -> None:
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
