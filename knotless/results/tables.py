"""Tables of samples as Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knotless.base.errors import KnotlessError
from knotless.base.files import read_bytes

if TYPE_CHECKING:
    import pyarrow as pa

MAX_FILE_BYTES = 256 << 20
MAX_CELLS = 50_000_000
"""Rows times columns that are read: a file of a few bytes may stand for any number."""


def to_parquet(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> bytes:
    """Return rows as a Parquet file; ``types`` has each column's pyarrow type by name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([dict(row) for row in rows], schema=_schema(types))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


def read(
    path: Path, error: type[KnotlessError], types: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file; with ``types``, those columns alone, of those types.

    Raises ``error``, with the path, where it is no such file or has too many rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = read_bytes(path, error, MAX_FILE_BYTES)
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        cells = file.metadata.num_rows * file.metadata.num_columns
        if cells > MAX_CELLS:
            raise error(f"{path}: has {cells} values, at most {MAX_CELLS} are read")
        schema = None if types is None else _schema(types)
        rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(data), schema=schema).to_pylist()
    except (OSError, pa.ArrowException, ValueError) as problem:
        cause = " ".join(str(problem).split()) or type(problem).__name__
        raise error(f"{path}: not a table of samples: {cause[:200]}") from problem
    return rows


def _schema(types: Mapping[str, str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])
