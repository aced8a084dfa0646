"""The files that a check has read, and those that have changed since.

A file whose inode, size and times are those of then has not changed. Of any other file, the hash of
its content decides. A file that was changed in the second before it was read could be changed again
within one tick of the clock of its file system, so its times say nothing.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from knotless.base.errors import RuleError, StateError
from knotless.base.files import read_bytes
from knotless.base.sections import digest
from knotless.importers.listing import MAX_FILE_BYTES, listed_files

TICK_NS = 1_000_000_000
_LEVEL = 1
"""Of compression: the fastest."""


@dataclass(frozen=True)
class FileRecord:
    """A file as it was read: where it is, its times, and its content.

    ``status`` are its file system, inode, size, and the times of its last change of content and of
    status, in nanoseconds; None: they say nothing. ``folder`` is where it really is, links
    followed. ``place`` and ``packed`` are where in the contents of all files its own is,
    compressed.
    """

    path: str
    named: bool
    status: tuple[int, ...] | None
    folder: str
    digest: str
    place: int
    packed: int
    size: int

    def as_json(self) -> list[Any]:
        """Return the record as a value for :func:`json.dumps`."""
        status = None if self.status is None else list(self.status)
        where = [self.place, self.packed, self.size]
        return [self.path, self.named, status, self.folder, self.digest, *where]

    @classmethod
    def from_json(cls, value: object) -> FileRecord:
        """Return the record of such a value; raises StateError."""
        match value:
            case [
                str(path),
                bool(named),
                (None | [int(), int(), int(), int(), int()]) as status,
                str(folder),
                str(text),
                int(place),
                int(packed),
                int(size),
            ] if 0 <= size <= MAX_FILE_BYTES and place >= 0 <= packed:
                recorded = None if status is None else tuple(status)
                return cls(path, named, recorded, folder, text, place, packed, size)
        raise StateError("a state has a record of a file that is none")


@dataclass(frozen=True)
class Listed:
    """A file that is there now, and its status; None if it has none."""

    path: str
    named: bool
    status: tuple[int, ...] | None


def listed_now(paths: Sequence[str]) -> list[Listed]:
    """Return all files that a check of ``paths`` would read."""
    return [Listed(path, named, _status(path)) for path, named in listed_files(paths)]


def folder_of(path: str) -> str:
    """Return where a file really is."""
    return os.path.dirname(os.path.realpath(path))  # noqa: PTH120 - thousands of them


def _status(path: str) -> tuple[int, ...] | None:
    """Return the status of a file; None if it has none, or is a link, which may lead elsewhere."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def records_of(listed: Sequence[Listed], read_at_ns: int) -> tuple[list[FileRecord], list[bytes]]:
    """Return the records of files, and the compressed content of each.

    ``listed`` and ``read_at_ns`` are from before they were read.

    Raises
    ------
    StateError
        A file has changed since, so that nobody knows what was read of it.

    """
    records: list[FileRecord] = []
    contents: list[bytes] = []
    place = 0
    for file in listed:
        try:
            data = read_bytes(file.path, RuleError, MAX_FILE_BYTES)
        except RuleError as error:
            raise StateError(str(error)) from None
        if _status(file.path) != file.status:
            raise StateError(f"{file.path}: has changed while it was checked")
        contents.append(zlib.compress(data, _LEVEL))
        certain = file.status is not None and max(file.status[3:]) < read_at_ns - TICK_NS
        records.append(
            FileRecord(
                file.path,
                file.named,
                file.status if certain else None,
                folder_of(file.path),
                digest(data).hex(),
                place,
                len(contents[-1]),
                len(data),
            )
        )
        place += len(contents[-1])
    return records, contents


def content_of(record: FileRecord, contents: memoryview) -> bytes:
    """Return what a file had; raises StateError if it is damaged."""
    unpacker = zlib.decompressobj()
    try:
        packed = contents[record.place : record.place + record.packed]
        data = unpacker.decompress(packed, record.size + 1)
    except (zlib.error, ValueError):
        data = b""
    if len(data) != record.size or digest(data).hex() != record.digest:
        raise StateError(f"what {record.path} was is damaged in the state")
    return data


@dataclass(frozen=True)
class FileChange:
    """A file that is not what it was: its record and what it has now.

    ``before`` is None if it is new, or now is elsewhere or was not named, ``now`` if it is gone.
    """

    path: str
    before: FileRecord | None
    now: bytes | None


def changes_since(
    records: Sequence[FileRecord], listed: Sequence[Listed], *, rehash: bool
) -> list[FileChange]:
    """Return the files that have changed, are new, or are gone; with ``rehash`` all are read.

    Raises
    ------
    RuleError
        A file cannot be read.

    """
    former = {record.path: record for record in records}
    changes: list[FileChange] = []
    for file in listed:
        record = former.pop(file.path, None)
        if record is not None and not rehash and record.status == file.status is not None:
            continue
        if record is not None and (record.named, record.folder) != (
            file.named,
            folder_of(file.path),
        ):
            record = None
        data = read_bytes(file.path, RuleError, MAX_FILE_BYTES)
        if record is None or digest(data).hex() != record.digest:
            changes.append(FileChange(file.path, record, data))
    changes += [FileChange(path, record, None) for path, record in former.items()]
    return changes
