"""The style of plots, and their files: SVG and PNG, reproducible byte for byte."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from knotless.base.errors import KnotlessError
from knotless.base.files import write_whole
from knotless.base.printable import drawn_text

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
_UNDATED: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
}
"""Metadata that would differ between equal figures is left out."""

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

TEXT_AS_TEXT = {"svg.fonttype": "none"}
"""Text in SVG stays text: it can be searched, copied and read aloud."""


def check_format(path: str) -> None:
    """Raise KnotlessError if no format has the suffix of ``path``."""
    if Path(path).suffix.lower() not in _FORMATS:
        raise KnotlessError(f"{path!r}: the name of a drawing must end in {' or '.join(_FORMATS)}")


def new_figure(width_in: float, height_in: float) -> Figure:
    """Return an empty figure in the project's style; sizes in inches. Needs no display."""
    from matplotlib.figure import Figure as MatplotlibFigure

    return MatplotlibFigure(figsize=(width_in, height_in), layout="constrained")


def _drawn(write: Callable[[float, int | None], str]) -> Callable[[float, int | None], str]:
    return lambda value, place: drawn_text(write(value, place))


def _protect(figure: Figure) -> None:
    """Have no text be read as mathematics but the numbers that Matplotlib writes on axes."""
    from matplotlib.text import Text
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    numbers = set()
    for axes in figure.get_axes():
        for axis in (axes.xaxis, axes.yaxis):
            formatter = axis.get_major_formatter()
            if isinstance(formatter, FixedFormatter):
                formatter.seq = [drawn_text(text) for text in formatter.seq]
            elif isinstance(formatter, FuncFormatter):  # also that of ``set_xticks`` with names
                formatter.func = _drawn(formatter.func)
            numbers |= {*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)}
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text not in numbers:
            text.set_text(drawn_text(text.get_text()))


def svg_text(figure: Figure) -> str:
    """Return only the ``<svg>`` element: no XML head, no DOCTYPE, no metadata."""
    _protect(figure)
    sink = io.StringIO()
    figure.savefig(
        sink,
        format="svg",
        metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
    )
    text = sink.getvalue()
    return re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)


def write_figure(figure: Figure, path: str | Path, *, dpi: int = 150) -> None:
    """Draw to a file in the format that its suffix names; equal figures give equal bytes.

    Raises KnotlessError if the file cannot be written.
    """
    import matplotlib as mpl

    _protect(figure)
    sink = io.BytesIO()
    form = Path(path).suffix[1:].lower()
    with mpl.rc_context({"svg.hashsalt": STYLE["svg.hashsalt"], **TEXT_AS_TEXT}):
        figure.savefig(sink, format=form, dpi=dpi, metadata=_UNDATED[form])
    write_whole(path, sink.getvalue())


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write ``NAME.svg`` and ``NAME.png`` into ``folder``; returns the SVG element."""
    svg = svg_text(figure)
    write_whole(folder / f"{name}.svg", svg)
    write_figure(figure, folder / f"{name}.png", dpi=PNG_DPI)
    return svg
