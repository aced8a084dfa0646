"""Docstrings and names say what a thing is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.support import REPOSITORY

QUESTION_WORDS = {"Who", "Whom", "Whose", "What", "Which", "Where", "When", "Why", "How"}
FUNCTION_WORDS = {"of", "at", "known", "made", "said", "found"}
"""They name nothing."""
COUNTING = (
    *("knotless/cli", "knotless/lab_checks"),
    *(f"experiments/knotless_experiments/{name}" for name in ("commands", "framework")),
)
"""Packages whose texts count what there may be one of."""


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


def uncounted(source: str) -> Iterator[str]:
    """Yield texts with a length or a long number before a plural, of which there may be one."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for number, text in pairwise(node.values):
            if not (isinstance(number, ast.FormattedValue) and isinstance(text, ast.Constant)):
                continue
            spec = ast.unparse(number.format_spec) if number.format_spec else ""
            is_count = ast.unparse(number.value).startswith("len(") or "," in spec
            if is_count and re.match(r" [A-Za-z]*[a-z]{2}s\b", text.value):
                yield f"line {node.lineno}:{text.value[:40]}"


def modules() -> Iterator[Path]:
    for package in ("knotless", "experiments/knotless_experiments"):
        yield from sorted((REPOSITORY / package).rglob("*.py"))


def test_docstrings_and_names_say_what_a_thing_is() -> None:
    offending = {str(path): [*offences(path.read_text())] for path in modules()}
    assert len(offending) > 500
    assert {path: texts for path, texts in offending.items() if texts} == {}


def test_commands_count_in_the_singular_and_the_plural() -> None:
    """They write numbers by :func:`knotless.base.counting.counted`."""
    texts = {
        str(path): [*uncounted(path.read_text())]
        for package in COUNTING
        for path in sorted((REPOSITORY / package).rglob("*.py"))
    }
    assert {path: lines for path, lines in texts.items() if lines} == {}
    assert [*uncounted('f"{len(runs)} runs froze"')] == ["line 1: runs froze"]
    assert not [*uncounted('f"{len(runs)} of 3, {time:g} runs, {len(runs)} us"')]


def test_an_offence_is_found() -> None:
    source = 'class A:\n    """What it is."""\n\ndef f(at):\n    """Return it."""\n    made = at\n'
    assert [*offences(source)] == ["What it is.", "line 4: at", "line 6: made"]
