"""docs/runbook.md explains every problem and every alert, and nothing that does not exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support import REPOSITORY

CONTROLLER = REPOSITORY / "knotless" / "controller"
FORWARDING_LOOPS = REPOSITORY / "knotless" / "base" / "forwarding_loops.py"
"""What the emulator sees, among the problems of its controller."""
PAGE = (REPOSITORY / "docs" / "runbook.md").read_text()
SOURCES = {
    "status.py": (
        *(f"_problems_of_{kind}" for kind in ("switches", "links", "dpids", "updates")),
        "missing_switch",
        "switch_problems",
        "separation",
        "unknown_dpid",
        "duplicate_dpid",
        "more_unknown_dpids",
        "more_duplicate_dpids",
    ),
    "probes/paths.py": ("lines",),
    "probes/cables.py": ("lines",),
    "observed.py": ("problems",),
    "updates/quiescence.py": ("_not_left",),
    "updates/caches.py": ("problem",),
    "updates/fabric_state.py": ("problems", "keeping"),
    "updates/scheduler.py": ("take_over",),
    "election/takeover.py": ("_last_known",),
    "overrides.py": ("see_damage", "_report_damage"),
}
"""The functions that write the lines of ``problems``, by file of ``controller/``."""
NOTING = ("composition", "service")
VARIABLE = r"[A-Z]{3,}"


def rows(heading: str) -> list[str]:
    """Return the first cells of the table below a heading, without their backticks."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    first_cells = re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)
    assert len(first_cells) > 5
    return first_cells


def pattern(row: str) -> str:
    """Return the expression of lines that a row means: capitals stand for any text."""
    return ".+".join(map(re.escape, re.split(VARIABLE, row)))


def texts(file: Path, functions: tuple[str, ...]) -> Iterator[str]:
    """Yield the texts of three words or more in functions, with X for what is filled in."""
    tree = ast.parse(file.read_text())
    defined = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for name in functions:
        body = defined[name].body
        for statement in body[1:] if ast.get_docstring(defined[name]) else body:
            yield from filter(is_sentence, strings(statement))


def notes() -> Iterator[str]:
    """Yield the texts that are noted in the status: at the start, and by the service."""
    modules = [ast.parse((CONTROLLER / f"{name}.py").read_text()) for name in NOTING]
    for node in (node for module in modules for node in ast.walk(module)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.status.note":
            yield from filter(is_sentence, strings(node.args[0]))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "note":
            yield from filter(is_sentence, strings(node.value))


def strings(node: ast.AST) -> Iterator[str]:
    """Yield all strings below a node."""
    if isinstance(node, ast.JoinedStr):
        parts = (getattr(part, "value", "") for part in node.values)
        yield "".join(part if isinstance(part, str) else "X" for part in parts)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from strings(child)


def is_sentence(text: str) -> bool:
    return len(re.findall(r"[a-z]+", text)) >= 3


LINES = {text for name, where in SOURCES.items() for text in texts(CONTROLLER / name, where)}
LINES.update(notes())


@pytest.mark.parametrize("line", sorted(LINES))
def test_every_problem_has_a_row(line: str) -> None:
    assert any(re.fullmatch(pattern(row), line) for row in rows("Problems")), line


@pytest.mark.parametrize("row", rows("Problems"))
def test_every_row_is_a_problem(row: str) -> None:
    files = [*CONTROLLER.rglob("*.py"), FORWARDING_LOOPS]
    code = "\n".join(file.read_text() for file in files)
    joined = re.sub(r'"\s*\n\s*f?"', "", code)
    for literal in re.split(VARIABLE, row):
        assert literal.strip() in joined, literal


def test_every_alert_has_a_row() -> None:
    alerts = yaml.safe_load((REPOSITORY / "controller" / "monitoring" / "alerts.yaml").read_text())
    names = [rule["alert"] for group in alerts["groups"] for rule in group["rules"]]
    assert rows("Alerts") == names
