"""The plot of a sweep: one column over another, with a line per combination of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from knotless.base.errors import SweepError
from knotless.results.spread import Spread, spread_of
from knotless_experiments.sweeps.figures import ERROR
from knotless_experiments.sweeps.grid import Grid

Row = Mapping[str, Any]
Lines = dict[str, dict[Any, Spread]]
MOST_LINES = 24
_SEED = "seed"


def axes_of(grid: Grid) -> tuple[str, str]:
    """Return the columns x and y: those of the file, or the defaults.

    The default of x is the first numeric setting that varies, other than the seed, else the first
    that varies. The default of y is the mean latency if the load varies.
    """
    varying = [key for key in grid.varying if key != _SEED]
    numbers = [
        key
        for key in varying
        if all(isinstance(getattr(point, key), int | float) for point in grid.points)
    ]
    x = grid.plot.get("x") or next(iter([*numbers, *varying, _SEED]))
    default = "throughput_ratio" if grid.do == "analyse" else "throughput_mbps"
    return x, grid.plot.get("y", "latency_mean_us" if x == "load" else default)


def lines_of(grid: Grid, rows: Sequence[Row], x: str, y: str) -> Lines:
    """Return the spread of y over the seeds, by x, for each combination of the other settings.

    Points that failed, or that lack this figure, are omitted.
    """
    others = [key for key in grid.varying if key not in (x, _SEED)]
    values: dict[str, dict[Any, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row[ERROR] is None and row[y] is not None and row[x] is not None:
            name = ", ".join(_setting_text(key, row[key]) for key in others)
            values[name][row[x]].append(float(row[y]))
    return {
        name: {
            x_value: spread for x_value in by_x if (spread := spread_of(by_x[x_value])) is not None
        }
        for name, by_x in values.items()
    }


def _setting_text(key: str, value: object) -> str:
    # Names are shown alone, numbers with their setting.
    return str(value) if isinstance(value, str) else f"{key} {value}"


def draw(grid: Grid, rows: Sequence[Row], path: Path) -> None:
    """Draw the plot of a sweep.

    Raises
    ------
    SweepError
        The column has no numbers, or there would be too many lines.
    KnotlessError
        The path does not end in .svg, .png or .pdf, or the file cannot be written.

    """
    import matplotlib as mpl

    from knotless.results.plots import STYLE, check_format, new_figure, write_figure

    check_format(str(path))
    x, y = axes_of(grid)
    try:
        lines = lines_of(grid, rows, x, y)
    except ValueError:
        raise SweepError(f"plot: column {y} has no numbers") from None
    if len(lines) > MOST_LINES:
        raise SweepError(f"plot: {len(lines)} lines are too many to distinguish")
    with mpl.rc_context(STYLE):
        figure = new_figure(7.5, 4.2)
        plot = figure.subplots()
        names = not all(isinstance(value, int | float) for by_x in lines.values() for value in by_x)
        for number, (name, by_x) in enumerate(lines.items()):
            places = list(by_x) if names else sorted(by_x)
            spreads = [by_x[value] for value in places]
            (line,) = plot.plot(
                places,
                [spread.mean for spread in spreads],
                marker="os^Dv<>"[number % 7],
                markersize=4,
                linewidth=1.4,
                label=name or None,
            )
            plot.fill_between(
                places,
                [spread.least for spread in spreads],
                [spread.most for spread in spreads],
                color=line.get_color(),
                alpha=0.15,
                linewidth=0,
            )
        plot.set(xlabel=_words(x), ylabel=_words(y), title=f"{_words(y)} against {_words(x)}")
        if any(lines):
            figure.legend(loc="outside right upper", fontsize=8)
        write_figure(figure, path)


def _words(column: str) -> str:
    """Return ``latency_mean_us`` as ``latency mean, us``."""
    head, _, unit = column.rpartition("_")
    return f"{head}, {unit}".replace("_", " ") if unit in _UNITS else column.replace("_", " ")


_UNITS = ("us", "mbps", "bytes")
