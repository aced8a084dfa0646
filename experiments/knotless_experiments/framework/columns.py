"""The columns of an experiment, each declared once.

From the declarations follow the keys of rows in ``run.json``, the schema of ``samples.parquet``,
the table of ``report.html`` and that of the terminal, what compares two runs, and what rows must
agree in before the reproduction divides one by another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

Row = Mapping[str, Any]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "bool": (bool,),
    "int32": (int,),
    "int64": (int,),
    "double": (float, int),
}
"""The types of values by their names in Arrow, and the values of Python that they accept."""


class Role(Enum):
    """The use of a column.

    ``CASE`` identifies a case: runs are compared case by case. ``CONDITION`` can differ as well
    (a rate, a number of virtual channels); ``PARAMETER`` is a condition that is the same for all
    rows and is stored in the parameters of the run. ``REPEAT`` counts the runs of a case.
    ``MEASURE`` is a result by which runs are compared, ``RESULT`` any other; ``VALIDITY`` says
    whether the row counts, and how it was measured. ``SAMPLE`` is in ``samples.parquet`` only,
    ``SHOWN`` in tables only: computed from the row.
    """

    CASE = "case"
    CONDITION = "condition"
    PARAMETER = "parameter"
    REPEAT = "repeat"
    MEASURE = "measure"
    RESULT = "result"
    VALIDITY = "validity"
    SAMPLE = "sample"
    SHOWN = "shown"


_NOT_STORED = (Role.PARAMETER, Role.SAMPLE, Role.SHOWN)
_CONDITIONS = (Role.CASE, Role.CONDITION, Role.PARAMETER)
EMULATED = ("stretch", "slow_down", "host_wait_us", "datapath", "real_time_programs")
"""The names of what only an emulated case has."""
ADDED = (*EMULATED, "valid", "problems")
"""The names of what :mod:`knotless_experiments.framework.routed` adds to a row."""
REQUIRED = object()
"""The default of a column without one: :meth:`Columns.row` needs its value."""


@dataclass(frozen=True)
class Column:
    """A column: its name in files, its type, its unit, and its heading in tables.

    Parameters
    ----------
    name : key of the rows in ``run.json`` and of the samples
    type : by its name in Arrow: string, bool, int32, int64, double; ``list<TYPE>`` is a list and
        ``map<TYPE>`` a dictionary with names as keys; None is a value that does not exist
    unit : of a number, "" if it has none
    heading : in tables; "" leaves the column out
    role : the use of the column
    form : the text of a value in a table: a format for :meth:`str.format` or a function; without
        one, flags are yes and NO; None is a dash
    cell : the text of a table, of the whole row, where the value alone does not make it
    brief : the column is also in the table of the terminal
    meaning : what the value is, if the name does not say so
    default : the value where a measurement gives none

    """

    name: str
    type: str
    unit: str = ""
    heading: str = ""
    role: Role = Role.RESULT
    form: str | Callable[[Any], str] = "{}"
    cell: Callable[[Row], str] | None = None
    brief: bool = False
    meaning: str = ""
    default: Any = REQUIRED

    def __post_init__(self) -> None:
        """Check the type."""
        if self.type.rstrip(">").rpartition("<")[2] not in _TYPES:
            raise TypeError(f"column {self.name!r}: there is no type {self.type!r}")

    @classmethod
    def case(cls, name: str, kind: str, unit: str = "", **more: Any) -> Column:
        """Return a column that identifies a case, in all tables, with its name for heading."""
        return cls(name, kind, unit, name, Role.CASE, brief=True, **more)

    @classmethod
    def condition(cls, name: str, kind: str, unit: str = "", **more: Any) -> Column:
        """Return a column of a condition, in no table."""
        return cls(name, kind, unit, role=Role.CONDITION, **more)

    @classmethod
    def sample(cls, name: str, kind: str, unit: str = "", **more: Any) -> Column:
        """Return a column of samples only."""
        return cls(name, kind, unit, role=Role.SAMPLE, **more)

    def text(self, row: Row) -> str:
        """Return the cell of a row in a table."""
        if self.cell is not None:
            return self.cell(row)
        value = row[self.name]
        if value is None:
            return "-"
        if not isinstance(self.form, str):
            return self.form(value)
        if isinstance(value, bool):
            return "yes" if value else "NO"
        return self.form.format(value)

    def accepts(self, value: object) -> bool:
        """Tell whether a value has the column's type; None always has."""
        outer, _, inner = self.type.rstrip(">").partition("<")
        if outer == "list":
            return value is None or (
                isinstance(value, list | tuple) and all(_is(inner, each) for each in value)
            )
        if outer == "map":
            return value is None or (
                isinstance(value, dict) and all(_is(inner, each) for each in value.values())
            )
        return _is(outer, value)


def _is(kind: str, value: object) -> bool:
    if isinstance(value, bool) and kind != "bool":
        return False
    return value is None or isinstance(value, _TYPES[kind])


ROW = Column.sample("row", "int32", meaning="the index of the row in run.json, from 0")
ON = Column("on", "string", role=Role.RESULT, meaning="emulation, simulation or analysis")
REPEAT = Column("repeat", "int32", heading="run", role=Role.REPEAT)
SHA = Column(
    "result_sha256",
    "string",
    default=None,
    meaning="of all counters of a simulated run; equal runs",
)


def joined(row: Row) -> str:
    """Return the problems of a row as one cell."""
    return "; ".join(row["problems"])


def _stretch(row: Row) -> str:
    stretch = row.get("stretch")
    return "-" if stretch is None else f"{stretch:.2f}"


def validity(
    remarks: Callable[[Row], str] = joined, *, stretch: bool = True, brief: bool = True
) -> tuple[Column, ...]:
    """Return the columns of :func:`knotless_experiments.framework.routed.with_validity`.

    ``remarks`` makes the last cell of a row. ``stretch``: the stretch is in the table of the
    report. ``brief``: whether a row is valid is in the table of the terminal.
    """
    role = Role.VALIDITY
    return (
        Column(
            *("stretch", "double", "", "stretch" if stretch else "", role, "{}", _stretch),
            meaning="real over virtual time; None in simulation",
        ),
        Column.condition("slow_down", "double", meaning="as --slow-down"),
        Column("host_wait_us", "double", "us", role=role),
        Column("datapath", "string", role=role, meaning="that of Open vSwitch"),
        Column(
            *("real_time_programs", "list<string>"),
            role=role,
            meaning="programs on hosts without virtual time, such as h1: sudo (4711)",
        ),
        Column("valid", "bool", heading="valid", role=role, brief=brief),
        Column(
            *("problems", "list<string>", "", "remarks", role, "{}", remarks),
            meaning="why the row is not valid, one line each",
        ),
    )


def hidden(*some: Column) -> tuple[Column, ...]:
    """Return columns without headings: they are in no table."""
    return tuple(replace(column, heading="", brief=False) for column in some)


@dataclass(frozen=True)
class Columns:
    """The columns of an experiment: those of rows, in the order of the table, and of samples."""

    every: tuple[Column, ...]
    samples: tuple[Column, ...] = (ROW,)
    measures: tuple[str, ...] = ()
    """The names of the results by which runs are compared, in the order of the comparison."""

    @property
    def shown(self) -> tuple[Column, ...]:
        """The columns of the table in ``report.html``."""
        return tuple(column for column in self.every if column.heading)

    @property
    def headings(self) -> list[str]:
        """The headings of the table in ``report.html``."""
        return [column.heading for column in self.shown]

    @property
    def brief(self) -> Columns:
        """The columns of the table in the terminal."""
        return replace(self, every=tuple(column for column in self.every if column.brief))

    def table(self, rows: Sequence[Row]) -> list[list[str]]:
        """Return a line of cells for each row, below :attr:`headings`."""
        shown = self.shown
        return [[column.text(row) for column in shown] for row in rows]

    def less_brief(self, name: str) -> Columns:
        """Return the same columns with one of them left out of the table in the terminal."""
        every = (replace(each, brief=each.brief and each.name != name) for each in self.every)
        return replace(self, every=tuple(every))

    def stored(self) -> Mapping[str, Column]:
        """Return the columns of rows in ``run.json``, by name."""
        return {c.name: c for c in self.every if c.role not in _NOT_STORED}

    @property
    def identity(self) -> tuple[str, ...]:
        """The names of the columns that identify a case."""
        return tuple(column.name for column in self.every if column.role is Role.CASE)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The names of all that can differ between two rows in the same place."""
        return tuple(c.name for c in self.every if c.role in _CONDITIONS and c.name != ON.name)

    @property
    def sample_types(self) -> dict[str, str]:
        """The Arrow type of each column of ``samples.parquet``."""
        return {column.name: column.type for column in self.samples}

    def row(self, **values: Any) -> dict[str, Any]:
        """Return a row for ``run.json`` without its validity, in the order of ``values``.

        Defaults are added. A value of a name that is not declared, one that is missing, or one of
        another type is a mistake of the experiment: TypeError.
        """
        stored = self.stored()
        for name, value in values.items():
            if name not in stored:
                raise TypeError(f"there is no column {name!r}")
            if not stored[name].accepts(value):
                raise TypeError(f"column {name!r}: {value!r} is not of type {stored[name].type}")
        for name, column in stored.items():
            if name not in values and name not in ADDED:
                if column.default is REQUIRED:
                    raise TypeError(f"column {name!r} has no value")
                values[name] = column.default() if callable(column.default) else column.default
        return values

    def head(self, row: Row) -> dict[str, Any]:
        """Return what samples of a row repeat of it: its case, settings and repeat."""
        repeated = (Role.CASE, Role.CONDITION, Role.REPEAT)
        return {c.name: row[c.name] for c in self.samples if c.role in repeated}


def columns(
    *every: Column, samples: Sequence[Column | str] = (), measures: Sequence[str] = ()
) -> Columns:
    """Return the columns of an experiment.

    ``every``, in the order of the table. ``samples``: the columns of ``samples.parquet`` after
    ``row``; a name is that of a column of rows, which has the same type there. ``measures`` gives
    another order of comparison than that of the table.
    """
    by_name = {column.name: column for column in every}
    sampled = tuple(by_name[each] if isinstance(each, str) else each for each in samples)
    default = tuple(column.name for column in every if column.role is Role.MEASURE)
    return Columns(every, (ROW, *sampled), tuple(measures) or default)
