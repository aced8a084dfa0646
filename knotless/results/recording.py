"""Recordings: the state of all channels over time, as one Parquet file that needs nothing else.

A frame is one interval. It has ``at_us`` (its end, in virtual time), ``rows`` (channel, priority,
load and paused share in thousandths, bytes in the egress queue and in the ingress buffer),
``drops`` (channel, frames dropped so far, and in this interval), ``down`` (channels that are cut)
and ``knot`` (null or the deadlock). Channels are numbered through ``channels``. What is zero is not
stored. The fabric, the times and the knots are in the file's metadata, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knotless.base.errors import KnotlessError
from knotless.base.files import read_bytes, write_whole
from knotless.results.tables import MAX_CELLS, MAX_FILE_BYTES

SUFFIX = ".channels.parquet"
MAX_FRAMES = 100_000
FULL = 1000
"""The load of a channel that is busy all the time, and the share of one that is paused all the
time."""
_KEY = b"knotless"
_VERSION = 1
_WHOLE = -1
"""The priority of a row that is about a channel as a whole: drops, and whether it is cut."""
_COLUMNS = {
    "frame": "int32",
    "channel": "int32",
    "priority": "int8",
    "load": "int16",
    "paused": "int16",
    "queue_bytes": "int64",
    "ingress_bytes": "int64",
    "dropped": "int64",
    "dropped_now": "int64",
    "down": "int8",
}

Frame = Mapping[str, Any]


class RecordingError(KnotlessError):
    """A file that is no recording."""


def file_of_row(directory: Path, row: int) -> Path:
    """Return the recording of a row of a run."""
    return directory / f"row-{row}{SUFFIX}"


@dataclass(frozen=True)
class Recording:
    """A recorded run. ``fabric`` is fabric JSON; ``title`` says what ran."""

    title: str
    fabric: Mapping[str, Any]
    channels: Sequence[str]
    frames: Sequence[Frame]


def write(path: str | Path, recording: Recording) -> None:
    """Write a recording; raises RecordingError if the file cannot be written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines: list[tuple[int, ...]] = []
    for number, frame in enumerate(recording.frames):
        lines += [(number, *row, 0, 0, 0) for row in frame["rows"]]
        lines += [
            (number, channel, _WHOLE, 0, 0, 0, 0, dropped, now, 0)
            for channel, dropped, now in frame["drops"]
        ]
        lines += [(number, channel, _WHOLE, 0, 0, 0, 0, 0, 0, 1) for channel in frame["down"]]
    about = {
        "version": _VERSION,
        "title": recording.title,
        "fabric": recording.fabric,
        "channels": list(recording.channels),
        "at_us": [frame["at_us"] for frame in recording.frames],
        "knots": {
            str(number): frame["knot"]
            for number, frame in enumerate(recording.frames)
            if frame["knot"] is not None
        },
    }
    columns: list[Any] = list(zip(*lines, strict=True)) or [()] * len(_COLUMNS)
    schema = pa.schema(
        [(name, pa.type_for_alias(kind)) for name, kind in _COLUMNS.items()],
        metadata={_KEY: json.dumps(about, separators=(",", ":")).encode()},
    )
    table = pa.Table.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    write_whole(path, bytes(sink.getvalue().to_pybytes()), RecordingError)


def read(path: str | Path) -> Recording:
    """Read a recording; raises RecordingError, with the path, if it is none or is too large."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = read_bytes(path, RecordingError, MAX_FILE_BYTES)
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        if file.metadata.num_rows * len(_COLUMNS) > MAX_CELLS:
            raise RecordingError(f"{path}: a recording has at most {MAX_CELLS} values")
        about = json.loads((file.schema_arrow.metadata or {}).get(_KEY, b"null"))
        lines = file.read(columns=list(_COLUMNS), use_threads=False).select(list(_COLUMNS))
        return _parsed(about, [column.to_pylist() for column in lines.columns])
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError, AttributeError) as problem:
        cause = " ".join(str(problem).split())[:200] or type(problem).__name__
        raise RecordingError(f"{path}: not a recording of channels: {cause}") from problem


def _parsed(about: Any, columns: Sequence[Sequence[int]]) -> Recording:
    if about["version"] != _VERSION:
        raise ValueError(f"its version is {about['version']!r}, only {_VERSION} is known")
    channels = [str(name) for name in about["channels"]]
    times = [float(time) for time in about["at_us"]]
    if len(times) > MAX_FRAMES:
        raise ValueError(f"it has {len(times)} frames, at most {MAX_FRAMES} are read")
    knots = about["knots"]
    frames: list[dict[str, Any]] = [
        {"at_us": at_us, "rows": [], "drops": [], "down": [], "knot": _knot(knots.get(str(number)))}
        for number, at_us in enumerate(times)
    ]
    for line in zip(*columns, strict=True):
        number, channel, priority, *values, dropped, now, down = line
        if not (0 <= number < len(frames) and 0 <= channel < len(channels)):
            raise ValueError(f"frame {number} or channel {channel} does not exist")
        frame = frames[number]
        if priority != _WHOLE:
            frame["rows"].append((channel, priority, *values))
        elif down:
            frame["down"].append(channel)
        else:
            frame["drops"].append((channel, dropped, now))
    return Recording(str(about["title"]), about["fabric"], channels, frames)


def _knot(knot: Any) -> dict[str, Any] | None:
    if knot is None:
        return None
    return {
        "since_us": float(knot["since_us"]),
        "cycle": [str(channel) for channel in knot["cycle"]],
        "members": [str(channel) for channel in knot["members"]],
        "waiting": {
            str(channel): [{str(key): value for key, value in flow.items()} for flow in flows]
            for channel, flows in knot["waiting"].items()
        },
    }
