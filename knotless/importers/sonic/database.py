"""Databases of SONiC switches as JSON: CONFIG_DB (``config_db.json``), APPL_DB, STATE_DB.

Three forms are read: tables of keys (``{"PORT": {"Ethernet0": {..}}}``), flat keys
(``{"PORT|Ethernet0": {..}}``, in APPL_DB ``{"PORT_TABLE:Ethernet0": {..}}``), and flat keys with
the types of Redis (``{"PORT|Ethernet0": {"type": "hash", "value": {..}}}``). Of a device with
several ASICs, ``show runningconfiguration all`` writes the tables of each namespace:
``{"localhost": {"PORT": ..}, "asic0": {..}}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from knotless.importers.file_kinds import Content, FileKind, json_mark

_NAME = re.compile(r"[A-Z][A-Z0-9_]{1,63}")
_FLAT = re.compile(r"([A-Z][A-Z0-9_]{1,63})([|:])(.+)", re.DOTALL)
_REFERENCE = re.compile(r"\[[A-Z0-9_]+[|:](.*)\]")

_NAMESPACE = re.compile(r"localhost|asic\d{1,3}")

Fields = dict[str, str]


@dataclass
class SonicTables:
    """The fields by table and key. Parts of a key are joined as in the database.

    Lists are joined by commas; references such as ``[DSCP_TO_TC_MAP|AZURE]`` are the name alone.
    ``asics`` are the tables of each ASIC of a device with several.
    """

    tables: dict[str, dict[str, Fields]] = field(default_factory=dict)
    asics: dict[str, SonicTables] = field(default_factory=dict)


def _is_table(name: str, value: object) -> bool:
    return _NAME.fullmatch(name) is not None and isinstance(value, dict | list)


def _fits(content: Content) -> bool:
    return _is_database(content.json) or _is_of_namespaces(content.json)


def _is_database(value: object) -> bool:
    if not isinstance(value, dict) or not value:
        return False
    fits = sum(1 for name in value if _FLAT.fullmatch(name) or _is_table(name, value[name]))
    return 2 * fits > len(value)


def _is_of_namespaces(value: object) -> bool:
    return (
        isinstance(value, dict)
        and any(_is_database(tables) for tables in value.values())
        and all(
            _NAMESPACE.fullmatch(name) and isinstance(tables, dict)
            for name, tables in value.items()
        )
    )


def _read(content: Content) -> SonicTables:
    if not _is_of_namespaces(content.json):
        return _tables(content.json)
    asics = {name: _tables(tables) for name, tables in content.json.items()}
    host = asics.pop("localhost", SonicTables())
    return SonicTables(host.tables, asics)


def _tables(names: Mapping[str, Any]) -> SonicTables:
    database = SonicTables()
    for name, value in names.items():
        value = _unwrapped(value)
        if flat := _FLAT.fullmatch(name):
            keys = {flat[3]: value}
            database.tables.setdefault(flat[1], {}).update(_rows(keys))
        elif _NAME.fullmatch(name) and isinstance(value, dict):
            database.tables.setdefault(name, {}).update(_rows(value))
        elif value not in ([], None, "", "1"):
            database.tables.setdefault(name, {})[""] = {"": _text(value)}
    return database


def _unwrapped(value: Any) -> Any:
    """Return the value of a key without the type that Redis dumps have around it."""
    if isinstance(value, dict) and {"type", "value"} <= value.keys():
        return value["value"]
    return value


def _rows(keys: Mapping[str, Any]) -> dict[str, Fields]:
    rows: dict[str, Fields] = {}
    for key, fields in keys.items():
        if isinstance(fields, dict):
            rows[key] = {name.removesuffix("@"): _text(field) for name, field in fields.items()}
        else:
            rows[key] = {"": _text(fields)}
    return rows


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(_text(item) for item in value)
    text = "" if value is None else str(value)
    if not text.startswith("["):
        return text
    references = [_REFERENCE.fullmatch(part) for part in text.split(",")]
    return ",".join(part[1] for part in references if part) if all(references) else text


KIND = FileKind("SONiC database", "routers", json_mark("{"), _read, _fits)
