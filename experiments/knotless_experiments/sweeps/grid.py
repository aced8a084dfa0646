"""The file of a sweep: the task and the grid of points."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from knotless.base import yaml_file
from knotless.base.complaints import brief, complaint
from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.errors import KnotlessError, SweepError
from knotless.base.files import read_bytes
from knotless.routing.engine import engine_named
from knotless.topologies import load
from knotless.topologies.formats.files import MAX_FILE_BYTES, looks_like_file
from knotless.traffic.patterns import pattern_named
from knotless_experiments.sweeps.figures import columns
from knotless_experiments.sweeps.settings import (
    KINDS,
    Analysis,
    Settings,
    Simulation,
    keys,
    settings_of,
)

MOST_POINTS = 100_000
_KEYS = ("do", "grid", "plot")
_PLOT_KEYS = ("x", "y")


@dataclass(frozen=True)
class Grid:
    """The points of a sweep, in order.

    ``do`` is one of :data:`knotless_experiments.sweeps.settings.KINDS`. ``varying`` are the
    settings that differ between points, in the order of the file. ``plot`` may name the columns
    ``x`` and ``y``.
    """

    do: str
    points: Sequence[Settings]
    varying: Sequence[str]
    plot: Mapping[str, str]

    @cached_property
    def sha256(self) -> str:
        """A hash of the points: equal for files with the same meaning.

        If a fabric is a file, its content counts.
        """
        specs = dict.fromkeys(point.fabric for point in self.points)
        files = {
            spec: hashlib.sha256(read_bytes(spec, SweepError, MAX_FILE_BYTES)).hexdigest()
            for spec in specs
            if looks_like_file(spec)
        }
        points = [settings_of(self.do, point) for point in self.points]
        content = [self.do, points, files]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read(path: Path) -> Grid:
    """Read the grid in a file. Raises SweepError with file and key."""
    content = yaml_file.read(path, SweepError)
    try:
        return _grid(content)
    except KnotlessError as error:
        raise SweepError(f"{path}: {error}") from error


def parse(text: str) -> Grid:
    """Parse the grid in ``text`` (YAML). Raises KnotlessError with the key."""
    return _grid(yaml_file.parse(text, SweepError))


def _grid(held: object) -> Grid:
    content = _mapping(held, "the file")
    if unknown := [str(key) for key in content if key not in _KEYS]:
        raise SweepError(f"unknown key {unknown[0][:40]!r}; known are {', '.join(_KEYS)}")
    do = content.get("do", "simulate")
    if not isinstance(do, str) or do not in KINDS:
        raise SweepError(f"do: must be {' or '.join(KINDS)}, not {brief(do)}")
    grids = content.get("grid")
    several = grids if isinstance(grids, list) else [grids]
    axes = [_axes(_mapping(one, "grid"), do) for one in several]
    if sum(_size(one) for one in axes) > MOST_POINTS:
        raise SweepError(f"grid: more than {MOST_POINTS} points; split it into several files")
    points = [point for one in axes for point in _points(one, do)]
    if not points:
        raise SweepError("grid: it has no points")
    seen: dict[Settings, int] = {}
    for number, point in enumerate(points):
        if point in seen:
            raise SweepError(f"grid: point {number} is the same as point {seen[point]}")
        seen[point] = number
    _check(points)
    keys = dict.fromkeys(key for one in axes for key in one)
    varying = [key for key in keys if len({getattr(point, key) for point in points}) > 1]
    return Grid(do, points, varying, _plot(content.get("plot"), do))


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise SweepError(
            f"{what}: must have keys with values, such as 'grid: ..', not {brief(value)}"
        )
    return value


def _axes(grid: Mapping[str, Any], do: str) -> dict[str, list[Any]]:
    """Return the values of each key: a list, or a single value."""
    names = keys(do)
    for key in grid:
        if key not in names:
            raise SweepError(
                f"grid: unknown key {str(key)[:40]!r}; to {do} there are {', '.join(names)}"
            )
    axes = {key: value if isinstance(value, list) else [value] for key, value in grid.items()}
    for key, values in axes.items():
        if not values:
            raise SweepError(f"grid: {key}: the list of values is empty")
    return axes


def _size(axes: Mapping[str, Sequence[Any]]) -> int:
    size = 1
    for values in axes.values():
        size *= len(values)
    return size


def _points(axes: Mapping[str, Sequence[Any]], do: str) -> Iterator[Settings]:
    """Yield every combination; the values of the last key vary fastest."""
    for values in itertools.product(*axes.values()):
        try:
            yield KINDS[do].model_validate(dict(zip(axes, values, strict=True)))
        except ValidationError as error:
            raise SweepError(f"grid: {complaint(error)}") from error


def _check(points: Sequence[Settings]) -> None:
    """Raise KnotlessError for errors of a point that do not depend on its fabric.

    Whether an engine can route a fabric, and whether a pattern fits it, is found when the point
    runs: it may be what the sweep is about.
    """
    for spec in dict.fromkeys(point.fabric for point in points):
        _check_value("fabric", load, spec)
    for engine in dict.fromkeys(point.engine for point in points):
        if engine != AUTO_ENGINE:
            _check_value("engine", engine_named, engine)
    for pattern in dict.fromkeys(point.pattern for point in points):
        _check_value("pattern", pattern_named, pattern)
    # The checks of a scenario do not depend on its plan: use the smallest one.
    plan = Analysis(fabric="flat,2", pattern="shift").plan()
    for point in points:
        if isinstance(point, Simulation):
            point.scenario(plan).check_end()


def _check_value(key: str, lookup: Any, value: str) -> None:
    try:
        lookup(value)
    except KnotlessError as error:
        raise error.within(f"grid: {key}") from error


def _plot(value: object, do: str) -> dict[str, str]:
    plot = {} if value is None else _mapping(value, "plot")
    for key, column in plot.items():
        if key not in _PLOT_KEYS:
            raise SweepError(f"plot: unknown key {str(key)[:40]!r}; known are x and y")
        if not isinstance(column, str) or column not in columns(do):
            raise SweepError(
                f"plot: {key}: no column {brief(column)}; there are {', '.join(columns(do))}"
            )
    return plot
