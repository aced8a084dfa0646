"""Changes of JSON values: JSON Patch, and fragments that are merged.

References
----------
RFC 6901: JavaScript Object Notation (JSON) Pointer; RFC 6902: JavaScript Object Notation (JSON)
Patch. sonic-net/SONiC, doc/config-generic-update-rollback: ``config apply-patch``; ``config load``
merges and deletes nothing.

"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from knotless.base.errors import RuleError

MAX_OPERATIONS = 100_000
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_ESCAPE = re.compile(r"~(?![01])")
_SHOWN = 120
_NEEDS = {
    "add": ("value",),
    "remove": (),
    "replace": ("value",),
    "move": ("from",),
    "copy": ("from",),
    "test": ("value",),
}
"""The members that each operation has besides ``op`` and ``path``."""


def patched(value: Any, operations: object) -> Any:
    """Return a JSON value after a patch; the value itself stays as it is.

    Raises
    ------
    RuleError
        The patch is none, or an operation cannot be applied: then none is.

    Examples
    --------
    >>> patched({"a": {"b/c": [1]}}, [{"op": "add", "path": "/a/b~1c/-", "value": 2}])
    {'a': {'b/c': [1, 2]}}

    """
    if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
        raise RuleError(f"not a JSON patch: a list of at most {MAX_OPERATIONS} operations")
    value = copy.deepcopy(value)
    for number, operation in enumerate(operations, 1):
        try:
            value = _applied(value, operation)
        except RuleError as error:
            raise RuleError(f"operation {number}{_shown(operation)}: {error}") from None
    return value


def _shown(operation: object) -> str:
    if not isinstance(operation, dict):
        return ""
    return f" ({operation.get('op')} {operation.get('path')})"[:_SHOWN]


def _applied(value: Any, operation: object) -> Any:
    if not isinstance(operation, dict):
        raise RuleError("it is no object")
    op = operation.get("op")
    if not isinstance(op, str) or op not in _NEEDS:
        raise RuleError(f"'op' is not one of {', '.join(_NEEDS)}")
    for name in _NEEDS[op]:
        if name not in operation:
            raise RuleError(f"it has no {name!r}")
    path = pointer(operation.get("path"))
    if op == "test":
        if not same(found_at(value, path), operation["value"]):
            raise RuleError("the value there is another one")
        return value
    if op == "remove":
        return without(value, path)
    if op == "add":
        return with_value(value, path, copy.deepcopy(operation["value"]))
    if op == "replace":
        found_at(value, path)
        return with_value(value, path, copy.deepcopy(operation["value"]), replaces=True)
    source = pointer(operation["from"])
    moved = copy.deepcopy(found_at(value, source))
    if op == "move":
        if source == path:
            return value
        if path[: len(source)] == source:
            raise RuleError("a value cannot move into itself")
        value = without(value, source)
    return with_value(value, path, moved)


def pointer(text: object) -> list[str]:
    """Return the parts of a JSON pointer; raises RuleError if it is none."""
    if not isinstance(text, str) or (text and not text.startswith("/")) or _ESCAPE.search(text):
        raise RuleError(f"{str(text)[:_SHOWN]!r} is no JSON pointer, such as /PORT/Ethernet0")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def found_at(value: Any, path: Sequence[str]) -> Any:
    """Return the value at a place; raises RuleError if there is none."""
    for place, part in enumerate(path):
        if isinstance(value, list):
            value = value[_index(part, len(value) - 1, path[: place + 1])]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            raise RuleError(f"there is no {_text(path[: place + 1])}")
    return value


def without(value: Any, path: Sequence[str]) -> Any:
    """Return a value without the one at a place, in place; raises RuleError if there is none."""
    found_at(value, path)
    if not path:
        return None
    holder = found_at(value, path[:-1])
    del holder[int(path[-1]) if isinstance(holder, list) else path[-1]]
    return value


def with_value(value: Any, path: Sequence[str], new: Any, *, replaces: bool = False) -> Any:
    """Return a value with a new one at a place, in place; in lists it is inserted.

    Raises RuleError if there is nothing that could hold it.
    """
    if not path:
        return new
    holder = found_at(value, path[:-1])
    if isinstance(holder, dict):
        holder[path[-1]] = new
    elif not isinstance(holder, list):
        raise RuleError(f"{_text(path[:-1])} is no object and no list")
    elif replaces:
        holder[int(path[-1])] = new
    elif path[-1] == "-":
        holder.append(new)
    else:
        holder.insert(_index(path[-1], len(holder), path), new)
    return value


def _index(part: str, last: int, path: Sequence[str]) -> int:
    if not _NUMBER.fullmatch(part) or int(part) > last:
        raise RuleError(f"there is no {_text(path)}")
    return int(part)


def _text(path: Sequence[str]) -> str:
    parts = (part.replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{part}" for part in parts)[:_SHOWN] or "whole value"


def same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal; true and 1 are not (RFC 6902, 4.6)."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return type(one) in (int, float, str, type(None)) and bool(one == other)


def merged(value: Mapping[str, Any], fragment: Mapping[str, Any]) -> dict[str, Any]:
    """Return objects with those of a fragment, down to fields; nothing is deleted.

    Examples
    --------
    >>> merged({"PORT": {"a": {"mtu": "1"}}}, {"PORT": {"a": {"speed": "2"}}})
    {'PORT': {'a': {'mtu': '1', 'speed': '2'}}}

    """
    result = dict(value)
    for key, new in fragment.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(new, Mapping)
        result[key] = merged(old, new) if both and old is not None else copy.deepcopy(new)
    return result
