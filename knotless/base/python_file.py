"""Python files of users: run like a module, with one-line messages for their errors."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.base.files import read_text

MAX_BYTES = 1 << 20
"""Nobody writes more by hand."""


def run(path: Path, error: type[KnotlessError]) -> dict[str, Any]:
    """Run the Python file at ``path`` and return its names with their values.

    Only for files that the user of this process names: their code has this user's rights.

    Raises
    ------
    KnotlessError
        Of the kind ``error``: the file cannot be read or raises an exception.

    """
    text = read_text(path, error, MAX_BYTES)
    # Not imported: that would write byte code beside it, perhaps as root.
    module = ModuleType(f"user_file_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look there
    try:
        exec(compile(text, str(path), "exec"), vars(module))  # noqa: S102 - see above
    except Exception as problem:
        raise error(complaint(path, problem)) from problem
    except SystemExit as problem:
        raise error(f"{path}: it ends Python by itself") from problem
    return vars(module)


_RENAMED = {
    **{"common": "knotless.base", "runs": "knotless.results"},
    **{"experiments": "knotless_experiments", "sweeps": "knotless_experiments.sweeps"},
}
_MOVED = {
    *("topologies", "routing", "forwarding", "verification", "traffic", "simulation", "emulation"),
    *("controller", "web", *_RENAMED),
}
"""Modules that were imported without ``knotless.`` in front of them before version 0.2."""


def _new_name(module: str) -> str | None:
    """Return where a module of before version 0.2 is; None if there was none of this name."""
    top, dot, rest = module.partition(".")
    new = _RENAMED.get(top, f"knotless.{top}")
    return f"{new}{dot}{rest}" if top in _MOVED else None


def complaint(path: Path, problem: Exception) -> str:
    """Return an exception of a user's file as one line, with the last line of that file in it."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(problem.__traceback__)
        if frame.filename == str(path)
    ]
    if isinstance(problem, SyntaxError):
        lines, reason = [problem.lineno], problem.msg
    elif isinstance(problem, ModuleNotFoundError) and (new := _new_name(problem.name or "")):
        reason = f"there is no module {problem.name}: import {new}"
    elif isinstance(problem, KeyError):
        reason = f"there is no key {problem}"
    elif isinstance(problem, MemoryError):
        reason = "it needs more memory than it may have: does it go in a circle?"
    else:
        reason = f"{type(problem).__name__}: {problem}".removesuffix(": ")
    where = f", line {lines[-1]}" if lines else ""
    return f"{path}{where}: {reason}"
