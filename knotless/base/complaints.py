"""One line for what pydantic refuses, without the YAML reader that few commands need."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


def complaint(error: ValidationError) -> str:
    """Return the first of pydantic's errors as one line."""
    problem = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"{key}: it is missing"
    if problem["type"] == "extra_forbidden":
        return f"unknown key {key!r}"
    words = _WORDS.get(problem["type"])
    text = problem["msg"].removeprefix("Value error, ")
    if words is not None:
        limits = {name: _limit(limit) for name, limit in problem.get("ctx", {}).items()}
        text = words.format(**limits)
    return one_line(key, problem["input"], text)


def one_line(key: str, value: object, text: str) -> str:
    """Return what is wrong with the value of a key as a line, as options say it.

    ``text`` is a predicate of the value (``is not at most 8``), or what it should be.
    """
    where = f"{key}: " if key else ""
    if text.startswith("is "):  # see knotless.cli.numbers
        return f"{where}{brief(value)} {text}"
    return f"{where}{text[:1].lower()}{text[1:]}, not {brief(value)}"


_WORDS = {
    "greater_than_equal": "is not at least {ge}",
    "greater_than": "is not above {gt}",
    "less_than_equal": "is not at most {le}",
    "less_than": "is not below {lt}",
    "literal_error": "is not one of {expected}",
    "int_type": "is no whole number",
    "int_parsing": "is no whole number",
    "int_from_float": "is no whole number",
    "float_type": "is no number",
    "float_parsing": "is no number",
    "bool_type": "is neither true nor false",
}
"""What is said of a value by the type of pydantic's error, the same as of an option."""


def _limit(limit: object) -> str:
    if isinstance(limit, int | float):
        return f"{limit:,.12g}"
    return str(limit).replace(" or ", ", ")


def brief(value: object) -> str:
    """Return a value shortened for a message.

    ``repr`` would be unsafe: YAML aliases let a few lines expand to more values than fit in memory.
    """
    return reprlib.repr(value)
