"""YAML configuration files: bounded size, and one-line messages for every error."""

from __future__ import annotations

import reprlib
from pathlib import Path

import yaml
from pydantic import ValidationError

from knotless.base.errors import KnotlessError
from knotless.base.files import read_text

MAX_BYTES = 1 << 18
"""Nobody writes more by hand."""


def read(path: Path, error: type[KnotlessError]) -> object:
    """Return what the YAML file at ``path`` holds; raises ``error`` with the file and line."""
    text = read_text(path, error, MAX_BYTES)
    try:
        return parse(text, error)
    except KnotlessError as problem:
        raise problem.within(str(path)) from problem


def parse(text: str, error: type[KnotlessError]) -> object:
    """Return the content of the YAML ``text``; raises ``error`` with the line."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        # YAML's own messages span several lines and quote the text.
        mark = getattr(problem, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        what = getattr(problem, "problem", None) or "it cannot be parsed"
        raise error(f"{where}not YAML: {what}") from problem


def complaint(error: ValidationError) -> str:
    """Return the first of pydantic's errors as one line."""
    problem = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"{key}: it is missing"
    text = problem["msg"].removeprefix("Value error, ")
    message = text[:1].lower() + text[1:]
    where = f"{key}: " if key else ""
    return f"{where}{message}, not {brief(problem['input'])}"


def brief(value: object) -> str:
    """Return a value shortened for a message.

    ``repr`` would be unsafe: YAML aliases let a few lines expand to more values than fit in memory.
    """
    return reprlib.repr(value)
