"""Docstrings and names say what a thing is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support import REPOSITORY

QUESTION_WORDS = {"Who", "Whom", "Whose", "What", "Which", "Where", "When", "Why", "How"}
FUNCTION_WORDS = {"of", "at", "known", "made", "said", "found"}
"""They name nothing."""
SKIPPED = ("knotless/cli", "knotless/controller")
"""Packages that do not keep this rule yet."""


def offences(source: str) -> Iterator[str]:
    """Yield docstrings that begin with a question word, and names that are function words."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first, *_ = (ast.get_docstring(node) or "").splitlines() or [""]
            if first.split(" ")[0] in QUESTION_WORDS:
                yield first
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
            ) if name.strip("_") in FUNCTION_WORDS:
                yield f"line {node.lineno}: {name}"


def modules() -> Iterator[Path]:
    for package in ("knotless", "experiments/knotless_experiments"):
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            if not str(path.relative_to(REPOSITORY)).startswith(SKIPPED):
                yield path


def test_docstrings_and_names_say_what_a_thing_is() -> None:
    offending = {str(path): [*offences(path.read_text())] for path in modules()}
    assert len(offending) > 500
    assert {path: texts for path, texts in offending.items() if texts} == {}


def test_an_offence_is_found() -> None:
    source = 'class A:\n    """What it is."""\n\ndef f(at):\n    """Return it."""\n    made = at\n'
    assert [*offences(source)] == ["What it is.", "line 4: at", "line 6: made"]
