"""YAML configuration files: bounded size, and one-line messages for every error."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from knotless.base.complaints import brief
from knotless.base.errors import KnotlessError
from knotless.base.files import read_text

MAX_BYTES = 1 << 18
"""Nobody writes more by hand."""


_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with two rules of YAML 1.2: keys are unique, and ``1e-3`` is a number.

    PyYAML keeps the last of several equal keys, and takes a number without a point for text
    (YAML 1.2.2, 3.2.1.3 and 10.3.2).
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping of a node; raises ConstructorError for a repeated key."""
        keys = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:  # own keys replace those of merged mappings
                continue
            key = self.construct_object(key_node, deep=True)  # type: ignore[no-untyped-call]
            if not isinstance(key, Hashable):
                continue  # PyYAML refuses it below
            if key in keys:
                problem = f"key {brief(key)} occurs twice in one mapping"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            keys.add(key)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, which quotes text that :class:`_Loader` would take for a number."""


_FLOAT = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$")
for _resolving in (_Loader, _Dumper):
    _resolving.add_implicit_resolver(  # type: ignore[no-untyped-call]
        "tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789")
    )


def read(path: Path, error: type[KnotlessError], max_bytes: int = MAX_BYTES) -> object:
    """Return what the YAML file at ``path`` holds; raises ``error`` with the file and line."""
    text = read_text(path, error, max_bytes)
    try:
        return parse(text, error)
    except KnotlessError as problem:
        raise problem.within(str(path)) from problem


def parse(text: str, error: type[KnotlessError]) -> object:
    """Return the content of the YAML ``text``; raises ``error`` with the line."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        # YAML's own messages span several lines and quote the text.
        mark = getattr(problem, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        what = getattr(problem, "problem", None) or "it cannot be parsed"
        raise error(f"{where}not YAML: {what}") from problem


def text_of(content: object) -> str:
    """Return plain values as YAML that :func:`parse` reads as the same."""
    text: str = yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, default_flow_style=None, width=100
    )
    return text
