"""Cables as Batfish has them: ``layer1_topology.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind, json_mark

NamedEnd = tuple[str, str]
"""The names of a switch and of its port."""


@dataclass(frozen=True)
class NamedCables:
    """Cables by names; each may be listed from both ends."""

    cables: tuple[tuple[NamedEnd, NamedEnd], ...]


def _fits(content: Content) -> bool:
    return isinstance(content.json, dict) and isinstance(content.json.get("edges"), list)


def _read(content: Content) -> NamedCables:
    cables = [(_end(edge, "node1"), _end(edge, "node2")) for edge in content.json["edges"]]
    return NamedCables(tuple(cables))


def _end(edge: Any, key: str) -> NamedEnd:
    try:
        return str(edge[key]["hostname"]), str(edge[key]["interfaceName"])
    except (KeyError, TypeError):
        raise RuleError(f"edges: {str(edge)[:60]} has no {key} with its names") from None


KIND = FileKind("layer 1 topology", "cables", json_mark("{", "node1"), _read, _fits)
