"""How plots look, and how they are written: SVG and PNG, the same bytes for the same data."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import KnotlessError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#22272e"
MUTED = "#8a929b"
GRID = "#e4e7ea"
RED = "#c8102e"
BLUE = "#1f5fa8"
GREEN = "#2e8b57"
AMBER = "#d98600"
PNG_DPI = 160
_FORMATS = (".svg", ".png", ".pdf")

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10.0,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 11.0,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "svg.hashsalt": "knotless",
}


def check_format(path: str) -> None:
    """Raise KnotlessError when a drawing cannot be written with this ending."""
    if Path(path).suffix.lower() not in _FORMATS:
        raise KnotlessError(f"{path!r}: a drawing ends in one of {' '.join(_FORMATS)}")


def new_figure(width_in: float, height_in: float) -> Figure:
    """Return an empty figure of ours; sizes in inches. Needs no display."""
    from matplotlib.figure import Figure as MatplotlibFigure

    return MatplotlibFigure(figsize=(width_in, height_in), layout="constrained")


def svg_text(figure: Figure) -> str:
    """Return the bare ``<svg>`` element: no XML head, no DOCTYPE, no metadata."""
    sink = io.StringIO()
    figure.savefig(
        sink,
        format="svg",
        metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
    )
    text = sink.getvalue()
    return re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write ``NAME.svg`` and ``NAME.png`` into ``folder``; returns the SVG element."""
    svg = svg_text(figure)
    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
    figure.savefig(folder / f"{name}.png", format="png", dpi=PNG_DPI, metadata={"Software": None})
    return svg
