"""The rows of stored runs, each with everything that can differ between two measurements.

Rows do not hold the settings of their run (rates, costs, watchdogs), so these are added here. A
ratio is only taken between rows whose conditions are all equal, apart from those compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from knotless.results.stored import Stored
from knotless_experiments.framework.experiment import EMULATION, load

Row = Mapping[str, Any]

COMPARED = (
    *("all-to-all", "barrier", "change", "deadlock", "hops", "nas", "paths", "pingpong"),
    *("primitives", "traffic"),
)
"""The experiments whose runs are compared with the papers."""
CONDITIONS: Mapping[str, tuple[str, ...]] = {
    name: load(name).columns.conditions for name in COMPARED
}
"""Conditions that differ between rows of an experiment: columns, and settings of its run."""

_NEUTRAL: tuple[object, ...] = (None, 0, 0.0)
"""Values of a setting that older runs lack: all mean 'not used'."""


@lru_cache(maxsize=128)
def rows(stored: Stored, experiment: str, on: str, *, valid: bool = True) -> Sequence[Row]:
    """Return the rows of an experiment in one place; only the valid ones unless told otherwise."""
    conditions = CONDITIONS[experiment]
    chosen: list[Row] = []
    for run in stored.runs:
        if run["experiment"] != experiment:
            continue
        for row in run["rows"]:
            if row.get("on", EMULATION) != on or (valid and not row["valid"]):
                continue
            added = {name: run["parameters"].get(name) for name in conditions if name not in row}
            settings = {name: _plain(value) for name, value in added.items()}
            chosen.append({**row, **settings, "experiment": experiment, "seed": run["seed"]})
    return chosen


def condition(row: Row, free: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the conditions of a row, except the ``free`` ones, as a key."""
    names = CONDITIONS[row["experiment"]]
    return tuple((name, row.get(name)) for name in names if name not in free)


def is_random(row: Row) -> bool:
    """Tell whether a simulated row can differ between seeds, or between machines.

    Random are when hosts begin (``deadlock``), times of switches (``change``), visiting lists and
    collisions on a hub (``barrier``). Programs compute for as long as the machine took (``nas``).
    """
    name = row["experiment"]
    return (
        name in ("deadlock", "change")
        or (name == "barrier" and (row["lists"] > 1 or row["fabric"].startswith("hub")))
        or (name == "nas" and row["computing"] is not None)
    )


def _plain(value: object) -> object:
    if value in _NEUTRAL:
        return None
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else value
