"""Files that users name: read with a bound, written whole or not at all.

Only regular files are read: opening a pipe or a device could block for ever, and reading it might
never end. Output is written to a temporary file beside its target, which is then renamed.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import TextIO

from knotless.base.errors import KnotlessError
from knotless.base.printable import shortened

MAX_BYTES = 64 << 20
"""Limit of a file that is read at once: its parsed form takes up to thirty times as much memory."""
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_STANDARD_OUTPUT = 1


def _kind(status: os.stat_result) -> str:
    return _KINDS.get(stat.S_IFMT(status.st_mode), "something else")


def reason(error: OSError) -> str:
    """Return what the operating system says, without number and path."""
    return error.strerror or str(error) or type(error).__name__


def _open(path: str | Path, error: type[KnotlessError], limit: int) -> int:
    """Return a descriptor of a regular file of at most ``limit`` bytes; never blocks."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as problem:
        raise error(f"{shortened(str(path))}: cannot be read: {reason(problem)}") from problem
    except ValueError as problem:
        raise error(f"{str(path)!r}: cannot be read: no file has such a name") from problem
    status = os.fstat(file)
    wrong = None
    if not stat.S_ISREG(status.st_mode):
        wrong = f"cannot be read: it is {_kind(status)}, not a file"
    elif status.st_size > limit:
        wrong = f"has {status.st_size} bytes, at most {limit} are read"
    if wrong is not None:
        os.close(file)
        raise error(f"{shortened(str(path))}: {wrong}")
    return file


def read_bytes(
    path: str | Path, error: type[KnotlessError] = KnotlessError, limit: int = MAX_BYTES
) -> bytes:
    """Return the content of a regular file; raises ``error`` if it is unreadable or too long."""
    with open(_open(path, error, limit), "rb") as file:  # noqa: PTH123 - a descriptor
        try:
            data = file.read(limit + 1)
        except OSError as problem:
            raise error(f"{shortened(str(path))}: cannot be read: {reason(problem)}") from problem
    if len(data) > limit:
        raise error(
            f"{shortened(str(path))}: has more than {limit} bytes, at most {limit} are read"
        )
    return data


def read_text(
    path: str | Path, error: type[KnotlessError] = KnotlessError, limit: int = MAX_BYTES
) -> str:
    """Return the content as text; also raises ``error`` if it is not UTF-8."""
    try:
        return read_bytes(path, error, limit).decode()
    except UnicodeDecodeError as problem:
        raise error(f"{shortened(str(path))}: cannot be read: not UTF-8 text") from problem


def open_text(path: str | Path, error: type[KnotlessError], limit: int) -> TextIO:
    """Open a regular file of at most ``limit`` bytes, to be read line by line (csv: newline='')."""
    descriptor = _open(path, error, limit)
    return open(descriptor, encoding="utf-8", newline="")  # noqa: PTH123


def open_binary(path: str | Path, error: type[KnotlessError], limit: int) -> BufferedReader:
    """Open a regular file of at most ``limit`` bytes."""
    return open(_open(path, error, limit), "rb")  # noqa: PTH123 - a descriptor


def write_whole(
    path: str | Path,
    data: bytes | str,
    error: type[KnotlessError] = KnotlessError,
    *,
    is_private: bool = False,
) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part."""
    write_all({Path(path): data}, error, is_private=is_private)


def write_all(
    files: Mapping[Path, bytes | str],
    error: type[KnotlessError] = KnotlessError,
    remove: Iterable[Path] = (),
    *,
    is_private: bool = False,
) -> None:
    """Write files that belong together, then remove others; all are replaced or none.

    Owner and mode of a file that is replaced stay, but of one that ``is_private`` only the owner
    keeps rights. ``/dev/null`` and what is standard output, as
    ``/dev/stdout`` is, are written to; other pipes and devices are refused, since nobody may ever
    read.

    Raises
    ------
    KnotlessError
        Of the kind ``error``: a file cannot be written.

    """
    ready: list[tuple[str, str]] = []
    path: Path | str = ""
    try:
        for path, data in files.items():
            content = data.encode() if isinstance(data, str) else data
            target = _target(path, error)
            if target is None:
                _write_through(path, content)
            else:
                ready.append((_temporary(target, content, is_private=is_private), target))
        while ready:
            temporary, path = ready[0]
            Path(temporary).replace(path)
            ready.pop(0)
        for path in remove:
            path.unlink(missing_ok=True)
    except BrokenPipeError:
        raise
    except OSError as problem:
        raise error(f"{shortened(str(path))}: cannot be written: {reason(problem)}") from problem
    except ValueError as problem:
        raise error(f"{str(path)!r}: cannot be written: no file has such a name") from problem
    finally:
        for temporary, _ in ready:
            Path(temporary).unlink(missing_ok=True)


@contextmanager
def folder_for_files(path: Path, error: type[KnotlessError] = KnotlessError) -> Iterator[None]:
    """Make a folder, and those that it is in, unless they exist, for files that are written inside.

    If they cannot be written, as on a full disk, the folders that it has made are removed again.

    Raises
    ------
    KnotlessError
        Of the kind ``error``: the folder cannot be made.

    """
    created: list[Path] = []
    try:
        try:
            created = [folder for folder in (path, *path.parents) if not folder.exists()]
            path.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as problem:
            cause = reason(problem) if isinstance(problem, OSError) else "no folder has such a name"
            raise error(f"{shortened(str(path))}: cannot be written: {cause}") from problem
        yield
    except BaseException:
        for folder in created:
            with suppress(OSError, ValueError):
                folder.rmdir()
        raise


def _target(path: Path, error: type[KnotlessError]) -> str | None:
    """Return the file that is to be replaced, links followed; None for what is written through."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return os.path.realpath(path)
    mode = status.st_mode
    with suppress(OSError):
        if os.path.samestat(status, os.fstat(_STANDARD_OUTPUT)) and not stat.S_ISDIR(mode):
            return None
    if stat.S_ISREG(mode):
        if not os.access(path, os.W_OK):
            raise PermissionError(0, "Permission denied")
        return os.path.realpath(path)
    if stat.S_ISCHR(mode) and os.path.samestat(status, Path(os.devnull).stat()):
        return None
    raise error(f"{shortened(str(path))}: cannot be written: it is {_kind(status)}, not a file")


def _write_through(path: Path, data: bytes) -> None:
    if path.samefile(os.devnull):
        return
    sys.stdout.flush()
    while data:
        data = data[os.write(_STANDARD_OUTPUT, data) :]


def _temporary(target: str, data: bytes, *, is_private: bool = False) -> str:
    """Write a file beside ``target``, to take its place; returns its path."""
    # Of tens of thousands at the same time, no two may have one name.
    temporary = str(Path(target).with_name(f".knotless-{os.getpid()}-{secrets.token_hex(16)}"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600 if is_private else 0o666)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            with suppress(FileNotFoundError):
                former = Path(target).stat()
                with suppress(PermissionError):
                    os.fchown(descriptor, former.st_uid, former.st_gid)
                mode = stat.S_IMODE(former.st_mode)
                os.fchmod(descriptor, mode & stat.S_IRWXU if is_private else mode)
            file.write(data)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return temporary


def append(path: Path, text: str, error: type[KnotlessError]) -> None:
    """Add to the end of a regular file, made where there is none; all of ``text`` or nothing."""
    descriptor = _open_to_change(path, os.O_WRONLY | os.O_APPEND, error)
    try:
        write_open(descriptor, path, text, error)
    finally:
        os.close(descriptor)


def write_open(descriptor: int, path: Path, text: str, error: type[KnotlessError]) -> None:
    """Write all of ``text`` at the end of an open file, or nothing."""
    end = os.lseek(descriptor, 0, os.SEEK_END)
    data = text.encode()
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError as problem:
        os.ftruncate(descriptor, end)
        raise error(f"{shortened(str(path))}: cannot be written: {reason(problem)}") from problem


def open_to_lock(path: Path, error: type[KnotlessError]) -> int:
    """Return a descriptor of a regular file to read, write and lock, made where there is none."""
    return _open_to_change(path, os.O_RDWR, error)


def _open_to_change(path: Path, how: int, error: type[KnotlessError]) -> int:
    try:
        file = os.open(path, how | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o666)
    except OSError as problem:
        raise error(f"{shortened(str(path))}: cannot be written: {reason(problem)}") from problem
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        raise error(f"{shortened(str(path))}: cannot be written: it is {_kind(status)}, not a file")
    return file
