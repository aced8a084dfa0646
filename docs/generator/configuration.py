"""The reference of the controller's configuration, from its model.

The meaning of a key is what the docstring of its model says. ``python -m
docs.generator.configuration`` prints the table that
docs/controller-configuration.md shows.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from knotless.controller.config import Config
from knotless.routing.request import PlanRequest

HEAD = """# Configuration

The controller reads one YAML file: the file named by `KNOTLESS_CONFIG`, else `knotless.yaml` in the
current directory, else the defaults below. An unknown or repeated key or a wrong value gives one
line and exit status 2. [The controller](../controller-configuration.md) has an example and says
what the keys do together.

The keys from `engine` on are the options of a plan, which have the same names and defaults in
[`knotless plan`](commands.md#knotless-plan) and in [Python](python.md).

This table is generated from the model.

"""
_ATTRIBUTE = re.compile(r"^(\w+) : (.*(?:\n    .*)*)", re.MULTILINE)
_CROSS_REFERENCE = re.compile(r"; see :.*?(?=\.$)", re.DOTALL)


def table() -> str:
    """Return the table in Markdown."""
    rows = ["| key | values | default | meaning |", "|---|---|---|---|"]
    schema = Config.model_json_schema()
    rows += [f"| {' | '.join(row)} |" for row in _rows(Config, schema)]
    return "\n".join(rows) + "\n"


def _rows(
    model: type[BaseModel], schema: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    meanings = _meanings(model) if prefix else {**_meanings(PlanRequest), **_meanings(model)}
    definitions = schema.get("$defs", {})
    keys = sorted(model.model_fields, key=lambda key: key not in Config.__annotations__)
    for key in keys:
        field = model.model_fields[key]
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            inner = definitions[field.annotation.__name__]
            yield from _rows(field.annotation, inner, f"{key}.")
        else:
            values = _values(schema["properties"][key])
            yield f"`{prefix}{key}`", values, _default(field.default), meanings[key]


def _meanings(model: type) -> dict[str, str]:
    """Return what the docstring says about each key."""
    found = {}
    # From Python 3.13 on, docstrings have no common indentation.
    for key, text in _ATTRIBUTE.findall(inspect.cleandoc(model.__doc__ or "")):
        words = " ".join(_CROSS_REFERENCE.sub("", text).split())
        found[key] = words.replace("``", "`").replace("None:", "default:")
    return found


def _values(schema: Mapping[str, Any]) -> str:
    for kind in schema.get("anyOf", ()):
        if kind.get("type") != "null":
            return _values(kind)
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum"))
        more = "more than " if "exclusiveMinimum" in schema else ""
        most = schema["maximum"]
        return f"{more}{least:g} to {most if schema['type'] == 'integer' else format(most, 'g')}"
    items = schema.get("items", {})
    if items.get("type") == "string" or "$ref" in items:
        return "list"
    return {"boolean": "`true`, `false`", "string": "text"}.get(schema["type"], "number: hosts")


def _default(value: object) -> str:
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def page() -> str:
    """Return the page."""
    return HEAD + table()


if __name__ == "__main__":
    print(table(), end="")  # noqa: T201 - this is what it is for
