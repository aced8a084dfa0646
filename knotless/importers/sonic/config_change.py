"""A change of the configuration of a SONiC switch before it is made, and what it leaves unknown.

References
----------
sonic-net/sonic-buildimage, src/sonic-yang-models: what the tables of CONFIG_DB configure.

"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from knotless.base.errors import RuleError
from knotless.base.suggestions import suggestion
from knotless.importers.file_kinds import FoundFile
from knotless.importers.sonic.database import SonicTables
from knotless.importers.sonic.json_patch import merged, patched

_NAMESPACE = re.compile(r"localhost|asic\d{1,3}")
_OF_CONFIG = frozenset({"DEVICE_METADATA", "PORT", "INTERFACE", "PORT_QOS_MAP", "VLAN"})
"""Tables of which a configuration has one: other databases call theirs otherwise."""
_FLAT = re.compile(r"([A-Z][A-Z0-9_]{1,63})\|(.+)", re.DOTALL)
_JUDGED = re.compile(
    r"BUFFER_\w+|CABLE_LENGTH|DEFAULT_LOSSLESS_BUFFER_PARAMETER|DOT1P_TO_TC_MAP|DSCP_TO_TC_MAP"
    r"|LOSSLESS_TRAFFIC_PATTERN|MAP_PFC_PRIORITY_TO_QUEUE|PFC_PRIORITY_TO_PRIORITY_GROUP_MAP|PFC_WD"
    r"|PORT_QOS_MAP|QUEUE|SCHEDULER|TC_TO_DSCP_MAP|TC_TO_PRIORITY_GROUP_MAP|TC_TO_QUEUE_MAP"
    r"|WRED_PROFILE"
)
"""Tables of buffers, PFC and QoS: switches do at once what they say."""
_WITHOUT_EFFECT = re.compile(
    r"AAA|AUTO_TECHSUPPORT\w*|BANNER_MESSAGE|CONSOLE_\w+|CRM|DNS_\w+|FLEX_COUNTER_TABLE|GNMI|KDUMP"
    r"|LOGGER|MGMT_\w+|NTP\w*|PASSW_HARDENING|RADIUS\w*|RESTAPI|SNMP\w*|SSH_SERVER|SYSLOG_\w+"
    r"|TACPLUS\w*|TELEMETRY|VERSIONS"
)
"""Tables of the management of a switch: packets between hosts go and wait as before."""


def changed_config(data: bytes, change: bytes) -> tuple[bytes, frozenset[str]]:
    """Return a configuration after a change, and the tables in which they differ.

    Parameters
    ----------
    data : bytes
        CONFIG_DB as JSON, in any of the forms that are read.
    change : bytes
        A JSON patch, a list of operations, or a fragment for ``config load``, an object.

    Raises
    ------
    RuleError
        The change is neither, or cannot be applied.

    """
    config = _by_table(_json(data))
    match _json(change):
        case list(operations):
            result = patched(config, [_in_namespace(config, one) for one in operations])
        case dict(fragment):
            result = merged(config, _by_table(fragment))
        case _:
            raise RuleError("neither a JSON patch (a list) nor a fragment for 'config load'")
    if not isinstance(result, dict):
        raise RuleError("nothing is left of the configuration")
    return json.dumps(result).encode(), frozenset(_different(config, result))


def config_of(name: str, files: Sequence[object]) -> FoundFile:
    """Return the file with the configuration of a switch, of the files of a fabric.

    ``name`` is its host name, or the name of the folder with its files.

    Raises
    ------
    RuleError
        There is none, or more than one.

    """
    configs = [
        file
        for file in files
        if isinstance(file, FoundFile)
        and isinstance(file.value, SonicTables)
        and (file.value.asics or file.value.tables.keys() & _OF_CONFIG)
    ]
    present = {file.path for file in configs}
    configs = [file for file in configs if file.replaced_by not in present]
    named = [file for file in configs if name in _names_of(file)]
    if not named:
        names = sorted({_names_of(file)[0] for file in configs})
        hint = suggestion(name, names) if names else "no file is one of SONiC"
        raise RuleError(f"there is no configuration of {name[:40]!r}; {hint}"[:400])
    if len(named) > 1:
        paths = ", ".join(str(file.path) for file in named)
        raise RuleError(f"several configurations are of {name[:40]!r}: {paths}"[:400])
    return named[0]


def _names_of(file: FoundFile) -> tuple[str, ...]:
    host = file.value.tables.get("DEVICE_METADATA", {}).get("localhost", {}).get("hostname")
    return (file.device.name, host) if host else (file.device.name,)


def undecided(tables: Iterable[str]) -> list[str]:
    """Return those tables after whose change routes, addresses or ports may be others.

    Examples
    --------
    >>> undecided(["BGP_NEIGHBOR", "PORT_QOS_MAP", "SYSLOG_SERVER"])
    ['BGP_NEIGHBOR']

    """
    return sorted(
        name for name in tables if not (_JUDGED.fullmatch(name) or _WITHOUT_EFFECT.fullmatch(name))
    )


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"not JSON: {str(error)[:200]}") from None


def _by_table(value: Any) -> dict[str, Any]:
    """Return CONFIG_DB by table and key, as ``config`` has it, from any form of it."""
    if not isinstance(value, dict):
        raise RuleError("a configuration is an object of tables")
    if value and all(_NAMESPACE.fullmatch(name) for name in value):
        return {name: _by_table(tables) for name, tables in value.items()}
    config: dict[str, Any] = {}
    for name, rows in value.items():
        flat = _FLAT.fullmatch(name)
        if flat is None:
            config[name] = rows
            continue
        if isinstance(rows, dict) and {"type", "value"} <= rows.keys():
            rows = rows["value"]
        config.setdefault(flat[1], {})[flat[2]] = _fields(rows)
    return config


def _fields(row: Any) -> Any:
    """Return the fields of a row as ``config`` has them: lists where Redis has names with an @."""
    if not isinstance(row, dict):
        return row
    fields = {
        name.removesuffix("@"): value.split(",")
        if name.endswith("@") and isinstance(value, str)
        else value
        for name, value in row.items()
    }
    return {} if fields == {"NULL": "NULL"} else fields


def _in_namespace(config: Mapping[str, Any], operation: Any) -> Any:
    """Return an operation whose paths begin with a namespace only if the configuration does."""
    if not isinstance(operation, dict) or "localhost" in config:
        return operation
    paths = {
        name: path.removeprefix("/localhost")
        for name in ("path", "from")
        if isinstance(path := operation.get(name), str) and path.startswith("/localhost/")
    }
    return {**operation, **paths}


def _different(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for name in {*before, *after}:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if _NAMESPACE.fullmatch(name) and all(isinstance(one, dict | None) for one in (old, new)):
            yield from _different(old or {}, new or {})
        else:
            yield name
