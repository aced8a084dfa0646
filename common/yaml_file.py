"""YAML files that people write: read with bounds, and every mistake told in one line."""

from __future__ import annotations

import reprlib
from pathlib import Path

import yaml
from pydantic import ValidationError

from common.errors import KnotlessError

MAX_BYTES = 1 << 20
"""Nobody writes more by hand."""


def read(path: Path, error: type[KnotlessError]) -> object:
    """Return what the YAML file at ``path`` holds; raises ``error`` with the file and line."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror}") from problem
    if len(data) > MAX_BYTES:
        raise error(f"{path}: larger than {MAX_BYTES} bytes, too large for settings")
    try:
        return parse(data.decode(), error)
    except UnicodeDecodeError as problem:
        raise error(f"{path}: not UTF-8 text") from problem
    except KnotlessError as problem:
        raise problem.within(str(path)) from problem


def parse(text: str, error: type[KnotlessError]) -> object:
    """Return what ``text`` holds; raises ``error`` with the line."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        # YAML's own errors span several lines, with the text quoted in them.
        mark = getattr(problem, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        what = getattr(problem, "problem", None) or "it cannot be parsed"
        raise error(f"{where}not YAML: {what}") from problem


def complaint(error: ValidationError) -> str:
    """Return the first of pydantic's complaints as one line."""
    problem = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"{key}: it is missing"
    said = problem["msg"].removeprefix("Value error, ")
    message = said[:1].lower() + said[1:]
    return f"{key}: {message}, not {brief(problem['input'])}"


def brief(value: object) -> str:
    """Return a value as a message may show it.

    Not ``repr``: a few lines of YAML may stand for more values than there is memory.
    """
    return reprlib.repr(value)
