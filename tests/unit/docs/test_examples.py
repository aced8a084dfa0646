"""Examples in the docstrings of modules that need neither Mininet nor Ryu give what they say."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.support import REPOSITORY

PACKAGES = (
    *("__init__.py", "notebook.py", "topologies", "routing", "forwarding", "verification"),
    *("traffic", "simulation", "importers", "controller/config.py"),
)
PROMPT = ">>> "


def modules() -> Iterator[str]:
    """Yield the names of the modules that have examples."""
    for name in PACKAGES:
        path = REPOSITORY / "knotless" / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if PROMPT in file.read_text():
                parts = file.relative_to(REPOSITORY).with_suffix("").parts
                yield ".".join(parts).removesuffix(".__init__")


MODULES = list(modules())


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name: str) -> None:
    done = doctest.testmod(import_module(name))
    assert done.attempted > 0, name
    assert done.failed == 0, name


def test_the_functions_for_notebooks_have_examples() -> None:
    finder = doctest.DocTestFinder()
    shown = {test.name for test in finder.find(import_module("knotless.notebook")) if test.examples}
    names = ("plan", "compile", "check", "analyse", "simulate", "advise", "draw")
    assert {f"knotless.notebook.{name}" for name in names} <= shown
