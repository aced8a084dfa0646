"""Neighbours by LLDP: output of ``lldpctl -f json`` and ``lldpctl -f json0``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from knotless.base.errors import RuleError
from knotless.importers.file_kinds import Content, FileKind, json_mark


@dataclass(frozen=True)
class Neighbour:
    """A neighbour that a port hears: the name of a system, its port by id and by description.

    ``forwards`` is whether the system says that it is a bridge or a router; None: it does not say
    what it is.
    """

    interface: str
    system: str
    port_id: str
    port_description: str = ""
    forwards: bool | None = None


@dataclass
class Neighbours:
    """The neighbours of one switch."""

    heard: list[Neighbour] = field(default_factory=list)


def _fits(content: Content) -> bool:
    return isinstance(content.json, dict) and "lldp" in content.json


def _read(content: Content) -> Neighbours:
    neighbours = Neighbours()
    for top in _listed(content.json["lldp"]):
        for item in _listed(top.get("interface", [])):
            # One key a port in json; the port's name as a field in json0.
            named = isinstance(item.get("name"), str)
            for name, port in [(item["name"], item)] if named else item.items():
                if not isinstance(port, dict):
                    raise RuleError(f"lldp: interface {name[:40]!r} must be an object")
                neighbours.heard.append(_neighbour(name, port))
    return neighbours


def _listed(value: Any) -> list[dict[str, Any]]:
    """Return a list of objects; a single object stands for a list of one."""
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, dict) for item in items):
        raise RuleError("lldp: not what lldpctl writes")
    return items


def _neighbour(interface: str, port: dict[str, Any]) -> Neighbour:
    system, chassis = "", dict[str, Any]()
    for entry in _listed(port.get("chassis", {})):
        chassis = entry
        if isinstance(entry.get("name"), list):
            system = _first(entry["name"])
        elif entry and "id" not in entry:
            system, chassis = next(iter(entry.items()))
    peer_port = next(iter(_listed(port.get("port", {}))), {})
    enabled = {
        str(kind.get("type")) for kind in _capabilities(chassis) if kind.get("enabled") is True
    }
    return Neighbour(
        interface,
        system,
        _first(peer_port.get("id", "")),
        _first(peer_port.get("descr", "")),
        bool(enabled & {"Bridge", "Router"}) if enabled else None,
    )


def _capabilities(chassis: Any) -> Iterator[dict[str, Any]]:
    if isinstance(chassis, dict):
        yield from _listed(chassis.get("capability", []))


def _first(value: Any) -> str:
    """Return a value that is text, an object with a ``value``, or a list of one such object."""
    if isinstance(value, list):
        value = value[0] if value else ""
    if isinstance(value, dict):
        value = value.get("value", "")
    return str(value)


KIND = FileKind("LLDP neighbours", "cables", json_mark("{", "lldp"), _read, _fits)
