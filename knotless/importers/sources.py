"""The files that users name: files, those in folders, and those in archives.

A SONiC techsupport archive holds hundreds of files of one switch, most of them logs; those of
:data:`.OF_TECHSUPPORT` are read.

References
----------
sonic-net/sonic-utilities, scripts/generate_dump: the files of a techsupport archive.

"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from knotless.base import archives
from knotless.base.errors import KnotlessError, RuleError
from knotless.base.files import read_bytes
from knotless.importers.listing import (
    MAX_FILE_BYTES,
    OF_TECHSUPPORT,
    SAVED,
    in_techsupport,
    is_read,
    listed_files,
)

MAX_MEMBERS = 1_000_000


@dataclass(frozen=True)
class Source:
    """A file: its path, that of its archive included, and whether the user named it.

    ``device`` is the folder, or the part of a techsupport archive, whose files are those of one
    device. ``replaced_by`` is the file that counts instead if it exists: the running
    configuration instead of the saved one.
    """

    path: Path
    named: bool
    data: bytes
    device: Path
    replaced_by: Path | None = None


def sources(paths: Sequence[Path], special: list[str]) -> Iterator[Source]:
    """Yield all files in a fixed order.

    Adds the members of archives that are no regular files to ``special``.

    Raises
    ------
    RuleError
        A file cannot be read, is too long, or an archive is damaged.

    """
    for path, named in listed_files(paths):
        yield from _file(Path(path), named, special)


def _file(path: Path, named: bool, special: list[str]) -> Iterator[Source]:
    with archives.opened(path, RuleError) as archive:
        if archive is None:
            data = read_bytes(path, RuleError, MAX_FILE_BYTES)
        else:
            try:
                if archive.is_tar:
                    yield from _members(path, archive, special)
                    return
                data = archive.content(MAX_FILE_BYTES)
            except KnotlessError as error:
                raise error.within(str(path)) from None
    yield source_of(path, named, data)


def _members(path: Path, archive: archives.Archive, special: list[str]) -> Iterator[Source]:
    for number, member in enumerate(archive.members()):
        if number >= MAX_MEMBERS:
            raise RuleError(f"there are more than {MAX_MEMBERS} files")
        inner = Path(member.name)
        if inner.is_absolute() or ".." in inner.parts:
            raise RuleError(f"{member.name[:200]!r} would be outside of the archive")
        if member.name.endswith("/") or not is_read(inner):
            continue
        if not member.is_file:
            special.append(str(path / inner))
        elif member.size > MAX_FILE_BYTES:
            raise RuleError(f"{inner} has {member.size} bytes, at most {MAX_FILE_BYTES} are read")
        else:
            data = archive.data(member)
            if data.startswith(archives.GZIP):
                raise RuleError(f"{inner} is packed again: unpack the outer archive")
            yield source_of(path / inner, False, data)


def source_of(path: Path, named: bool, data: bytes) -> Source:
    """Return a file with its contents."""
    whole = path.resolve()
    inside = in_techsupport(whole)
    if inside is None:
        return Source(path, named, data, whole.parent)
    base, inner = inside
    read = OF_TECHSUPPORT.fullmatch(inner)
    asic = "" if read is None else read["dump"] or read["saved"] or ""
    running = base / "dump" / f"CONFIG_DB.json{'.' * bool(asic)}{asic}"
    device = base / f"asic{asic}" if asic else base
    return Source(path, named, data, device, running if inner.startswith(SAVED) else None)
