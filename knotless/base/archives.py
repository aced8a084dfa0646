"""Tar archives and gzip files, read from front to back: nothing is extracted to disk.

Archives come from other machines and may be hostile. Python's ``tarfile`` reads headers of any
size into memory and takes a damaged header for the end of an archive, so headers are read here.

References
----------
IEEE Std 1003.1-2017, pax (ustar and pax headers); GNU tar manual, Basic Tar Format.

"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from knotless.base.errors import KnotlessError
from knotless.base.files import open_binary

MAX_ARCHIVE_BYTES = 4 << 30
MAX_UNPACKED_BYTES = 16 << 30
"""Limit of what an archive unpacks to, whether it is read or skipped."""
_BLOCK = 512
_CHUNK = 1 << 20
_MAX_HEADER = 1 << 16
"""Limit of a long name or of pax records, in bytes."""
_FILES, _EXTENSIONS = b"0\x007", b"LxKg"
GZIP = b"\x1f\x8b"
"""The first bytes of a gzip file."""


@dataclass(frozen=True)
class Member:
    """A member of an archive; ``is_file`` is false for links, folders and devices."""

    name: str
    size: int
    is_file: bool


class Archive:
    """The unpacked bytes of a file, read from front to back.

    Raises an error of the kind ``error`` if the file is cut off or damaged, or unpacks to more
    than :data:`MAX_UNPACKED_BYTES`.
    """

    def __init__(self, stream: BinaryIO, error: type[KnotlessError]) -> None:
        self._stream, self._error, self._offset = stream, error, 0
        self._first = self._some(_BLOCK)
        self._left = 0
        self.is_tar = len(self._first) == _BLOCK and _has_checksum(self._first)

    def content(self, limit: int) -> bytes:
        """Return the unpacked bytes of a file that is no tar archive."""
        pieces = [self._first]
        while piece := self._some(_CHUNK):
            pieces.append(piece)
            if self._offset > limit:
                raise self._error(f"unpacks to more than {limit} bytes")
        return b"".join(pieces)

    def members(self) -> Iterator[Member]:
        """Yield all members; :meth:`data` is that of the last one."""
        block, extended = self._first, dict[str, bytes]()
        while any(block):
            name, size, kind = self._header(block)
            padded = -(-size // _BLOCK) * _BLOCK
            if kind in _EXTENSIONS:
                if size > _MAX_HEADER:
                    raise self._error(f"a header of {size} bytes at byte {self._offset}")
                text = self._exactly(padded)[:size]
                extended |= {b"L": {"path": text}, b"x": _records(text)}.get(kind, {})
            else:
                size = self._extended_size(extended, size)
                self._left = -(-size // _BLOCK) * _BLOCK
                sparse = any(key.startswith("GNU.sparse") for key in extended)
                shown = _shown(extended.get("path", name))
                # A name that ends in / is a folder in old archives.
                is_file = kind in _FILES and not shown.endswith("/") and not sparse
                yield Member(shown, size, is_file)
                while self._left:
                    self._left -= len(self._exactly(min(self._left, _CHUNK)))
                extended = {}
            block = self._exactly(_BLOCK)
        while self._some(_CHUNK):  # gzip's checksum is at the end
            pass

    def data(self, member: Member) -> bytes:
        """Return the content of the member that was yielded last."""
        content = self._exactly(self._left)[: member.size]
        self._left = 0
        return content

    def _header(self, block: bytes) -> tuple[bytes, int, bytes]:
        """Return the name, the size and the type in a header."""
        if not _has_checksum(block):
            raise self._error(f"damaged at byte {self._offset - _BLOCK}: not a header of tar")
        name = block[:100].rstrip(b"\0")
        if block[257:263] == b"ustar\0" and block[345] != 0:
            name = block[345:500].rstrip(b"\0") + b"/" + name
        size = _number(block[124:136])
        if size is None or not 0 <= size <= MAX_UNPACKED_BYTES:
            raise self._error(f"damaged at byte {self._offset - _BLOCK}: not a size")
        return name.partition(b"\0")[0], size, block[156:157]

    def _extended_size(self, extended: dict[str, bytes], size: int) -> int:
        text = extended.get("size", b"%d" % size)
        if not text.isdigit() or len(text) > 12:
            raise self._error(f"damaged at byte {self._offset}: not a size")
        return int(text)

    def _exactly(self, count: int) -> bytes:
        pieces = []
        while count:
            piece = self._some(min(count, _CHUNK))
            if not piece:
                raise self._error("cut off")
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def _some(self, count: int) -> bytes:
        try:
            data = self._stream.read(count)
        except EOFError:
            raise self._error("cut off") from None
        except (OSError, zlib.error) as problem:
            raise self._error(f"damaged: {problem}") from None
        self._offset += len(data)
        if self._offset > MAX_UNPACKED_BYTES:
            raise self._error(f"unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB")
        return data


@contextmanager
def opened(path: Path, error: type[KnotlessError]) -> Iterator[Archive | None]:
    """Open a tar archive or a gzip file; None if it is neither."""
    with open_binary(path, error, MAX_ARCHIVE_BYTES) as file:
        start = file.peek(_BLOCK)[:_BLOCK]
        if start.startswith(GZIP):
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield Archive(unpacked, error)  # type: ignore[arg-type]
        elif len(start) == _BLOCK and _has_checksum(start):
            yield Archive(file, error)
        else:
            yield None


def _has_checksum(block: bytes) -> bool:
    """Tell whether a block is a header: its checksum is right, as if it were eight spaces."""
    return _number(block[148:156]) == sum(block) - sum(block[148:156]) + 8 * ord(" ")


def _number(field: bytes) -> int | None:
    if field[0] & 0x80:  # GNU's form of large numbers
        return int.from_bytes(field, "big") - (0x80 << 8 * (len(field) - 1))
    digits = field.strip(b" \0")
    if not all(byte in b"01234567" for byte in digits):
        return None
    return int(digits or b"0", 8)


def _records(text: bytes) -> dict[str, bytes]:
    """Return pax records: ``LENGTH KEY=VALUE`` and a line end each."""
    records = {}
    while text:
        length, _, _ = text.partition(b" ")
        if not length.isdigit() or not len(length) < int(length[:6]) <= len(text):
            break
        key, _, value = text[len(length) + 1 : int(length) - 1].partition(b"=")
        records[key.decode(errors="replace")] = value
        text = text[int(length) :]
    return records


def _shown(name: bytes) -> str:
    text = name.rstrip(b"\0").decode(errors="replace")
    return "".join(c if c.isprintable() else "?" for c in text)
