"""The rows of stored runs, each with everything that can differ between two measurements.

Rows do not hold the settings of their run (rates, costs, watchdogs), so these are added here. A
ratio is only taken between rows whose conditions are all equal, apart from those compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from knotless.experiments.framework.experiment import EMULATION
from knotless.results.stored import Stored

Row = Mapping[str, Any]

CONDITIONS: Mapping[str, tuple[str, ...]] = {
    name: tuple(text.split())
    for name, text in {
        "all-to-all": "configuration share fabric schedule hosts phases datagrams rate_mbps "
        "delay_us slow_down",
        "barrier": "fabric engine vcs algorithm hosts networks lists rate_mbps delay_us "
        "message_bytes cut_through computing_us costs slow_down",
        "change": "fabric flow_control way",
        "deadlock": "pattern tagging routes flow_control protocol rate_mbps delay_us watchdog_us "
        "slow_down",
        "hops": "measure tagging switches message_bytes rate_mbps delay_us slow_down",
        "nas": "fabric engine vcs routes kernel class processes computing slow_down",
        "paths": "fabric engine vcs routes select vlan_assignment",
        "pingpong": "kind bytes fabric engine hosts send_us receive_us slow_down",
        "primitives": "operation bytes fabric engine hosts send_us receive_us slow_down",
        "traffic": "part fabric engine vcs routes select pattern protocol message_bytes rate_mbps "
        "delay_us cut_through slow_down",
    }.items()
}
"""What can differ between rows of an experiment: columns of its rows, and settings of its run."""

_NEUTRAL: tuple[object, ...] = (None, 0, 0.0)
"""Values of a setting that older runs lack: all mean 'not used'."""


@lru_cache(maxsize=128)
def rows(stored: Stored, experiment: str, on: str, *, valid: bool = True) -> Sequence[Row]:
    """Return the rows of an experiment in one place; only the valid ones unless told otherwise."""
    conditions = CONDITIONS[experiment]
    found: list[Row] = []
    for run in stored.runs:
        if run["experiment"] != experiment:
            continue
        for row in run["rows"]:
            if row.get("on", EMULATION) != on or (valid and not row["valid"]):
                continue
            added = {name: run["parameters"].get(name) for name in conditions if name not in row}
            settings = {name: _plain(value) for name, value in added.items()}
            found.append({**row, **settings, "experiment": experiment})
    return found


def condition(row: Row, free: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the conditions of a row, except the ``free`` ones, as a key."""
    names = CONDITIONS[row["experiment"]]
    return tuple((name, row.get(name)) for name in names if name not in free)


def _plain(value: object) -> object:
    if value in _NEUTRAL:
        return None
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value
