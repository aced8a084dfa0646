"""The files that users name: files, those in folders, and those in archives.

A SONiC techsupport archive holds hundreds of files of one switch, most of them logs; those of
:data:`_OF_TECHSUPPORT` are read.

References
----------
sonic-net/sonic-utilities, scripts/generate_dump: the files of a techsupport archive.

"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from knotless.base import archives
from knotless.base.errors import KnotlessError, RuleError
from knotless.base.files import read_bytes

MAX_FILE_BYTES = 256 << 20
MAX_MEMBERS = 1_000_000
_TECHSUPPORT = re.compile(r"sonic_dump_.+")
_OF_TECHSUPPORT = re.compile(
    r"dump/(?:CONFIG_DB|APPL_DB|COUNTERS_DB)\.json(?:\.(?P<dump>\d{1,2}))?"
    r"|etc/sonic/config_db(?P<saved>\d{0,2})\.json"
)
_SAVED = "etc/sonic/"


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
    for path in paths:
        if not path.is_dir():
            yield from _file(path, True, special)
            continue
        for folder, inner, names in os.walk(path):
            inner.sort()
            for name in sorted(names):
                if _is_read(Path(folder, name)):
                    yield from _file(Path(folder, name), False, special)


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
    yield _source(path, named, data)


def _members(path: Path, archive: archives.Archive, special: list[str]) -> Iterator[Source]:
    for number, member in enumerate(archive.members()):
        if number >= MAX_MEMBERS:
            raise RuleError(f"there are more than {MAX_MEMBERS} files")
        inner = Path(member.name)
        if inner.is_absolute() or ".." in inner.parts:
            raise RuleError(f"{member.name[:200]!r} would be outside of the archive")
        if member.name.endswith("/") or not _is_read(inner):
            continue
        if not member.is_file:
            special.append(str(path / inner))
        elif member.size > MAX_FILE_BYTES:
            raise RuleError(f"{inner} has {member.size} bytes, at most {MAX_FILE_BYTES} are read")
        else:
            data = archive.data(member)
            if data.startswith(archives.GZIP):
                raise RuleError(f"{inner} is packed again: unpack the outer archive")
            yield _source(path / inner, False, data)


def _source(path: Path, named: bool, data: bytes) -> Source:
    whole = path.resolve()
    inside = _in_techsupport(whole)
    if inside is None:
        return Source(path, named, data, whole.parent)
    base, inner = inside
    read = _OF_TECHSUPPORT.fullmatch(inner)
    asic = "" if read is None else read["dump"] or read["saved"] or ""
    running = base / "dump" / f"CONFIG_DB.json{'.' * bool(asic)}{asic}"
    device = base / f"asic{asic}" if asic else base
    return Source(path, named, data, device, running if inner.startswith(_SAVED) else None)


def _in_techsupport(path: Path) -> tuple[Path, str] | None:
    """Return the folder of the techsupport that a file is in, and its path in there."""
    for place, part in reversed([*enumerate(path.parts[:-1])]):
        if _TECHSUPPORT.fullmatch(part) and not _is_archive_name(part):
            return Path(*path.parts[: place + 1]), "/".join(path.parts[place + 1 :])
    return None


def _is_archive_name(name: str) -> bool:
    return name.endswith((".tar", ".tar.gz", ".tgz", ".gz"))


def _is_read(path: Path) -> bool:
    """Tell whether a file is read: all are, but of a techsupport only those that matter."""
    inside = _in_techsupport(path)
    return inside is None or _OF_TECHSUPPORT.fullmatch(inside[1]) is not None
