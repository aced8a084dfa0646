"""Results that display themselves in notebooks: tables, verdicts and drawings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from knotless.base.files import write_whole
from knotless.base.printable import html_text, printable
from knotless.base.suggestions import suggestion


@dataclass(frozen=True, repr=False)
class Figures(Mapping[str, Any]):
    """Figures by name, with a title and a line about them.

    Works like a dictionary; a figure is an attribute too. ``source`` is the object from which the
    figures were taken.
    """

    title: str
    values_by_name: Mapping[str, Any]
    text: str = ""
    source: Any = field(default=None, compare=False)

    def __getitem__(self, name: str) -> Any:
        """Return a figure; raises KeyError."""
        return self.values_by_name[name]

    def __getattr__(self, name: str) -> Any:
        """Return a figure; raises AttributeError that names a similar one."""
        if name.startswith("_"):  # asked of objects that are being made, or copied
            raise AttributeError(name)
        if name in self.values_by_name:
            return self.values_by_name[name]
        raise AttributeError(f"there is no figure {name!r}; {suggestion(name, self)}")

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the figures."""
        return iter(self.values_by_name)

    def __len__(self) -> int:
        """Return the number of figures."""
        return len(self.values_by_name)

    def __repr__(self) -> str:
        """Return the figures as lines of text."""
        rows = [f"{name:20} {formatted(value)}" for name, value in self.items()]
        lines = [self.title, *rows, *([self.text] if self.text else [])]
        return "\n".join(map(printable, lines))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html_text(name.replace('_', ' '))}</th>"
            f"<td>{html_text(formatted(value))}</td></tr>"
            for name, value in self.items()
        )
        line = f"<p>{html_text(self.text)}</p>" if self.text else ""
        return f"<p><b>{html_text(self.title)}</b></p><table>{rows}</table>{line}"


@dataclass(frozen=True, repr=False)
class Comparison:
    """A table of figures: one row for each engine, and a line about them."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    text: str
    source: Any = field(default=None, compare=False)

    def __repr__(self) -> str:
        """Return the table as lines of text."""
        cells = [self.columns, *(tuple(map(table_cell, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        return "\n".join(map(printable, [self.title, *lines, self.text]))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html_text(name)}</th>" for name in self.columns)
        body = "".join(
            f"<tr>{''.join(f'<td>{html_text(table_cell(cell))}</td>' for cell in row)}</tr>"
            for row in self.rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p><b>{html_text(self.title)}</b></p>{table}<p>{html_text(self.text)}</p>"


@dataclass(frozen=True, repr=False)
class Drawing:
    """A drawing as SVG."""

    title: str
    svg: str

    def __repr__(self) -> str:
        """Return what is drawn."""
        return f"Drawing of {printable(self.title)}"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file; raises KnotlessError if it cannot be written."""
        write_whole(path, self.svg)


def formatted(value: object) -> str:
    """Format a figure for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1e6 else f"{value:,.0f}"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {formatted(each)}" for key, each in value.items()) or "-"
    return str(value)


def table_cell(value: object) -> str:
    """Format a figure of a table, whose column is easier to compare with two decimals."""
    return f"{value:.2f}" if isinstance(value, float) else formatted(value)
