"""Files of named sections that are mapped into memory: only what is asked for is read.

A file is a line, the length and the hash of a table (JSON), the table, and the sections. The table
has the place, the length and the hash of each. A file may come from anywhere: nothing in it is
executed, and what does not fit is an error. With a key all hashes are keyed (BLAKE2, RFC 7693), so
that only who has the key can write a file that fits.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Mapping
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path
from typing import Any, Self

from knotless.base.errors import StateError
from knotless.base.files import open_binary, write_whole

_KIND = b"knotless sections "
MAGIC = _KIND + b"1\n"
MAX_BYTES = 8 << 30
_HEAD = struct.Struct("<Q16s")
_MAX_TABLE = 1 << 20
_LEAST_KEY, _MAX_KEY_FILE = 16, 1 << 16
_ALIGNED = 64
"""Sections begin at multiples of this, for arrays that are used where they lie."""


def digest(data: bytes | memoryview, key: bytes = b"") -> bytes:
    """Return the hash of some bytes, 16 bytes long; with a key of up to 64 bytes, a keyed one."""
    return blake2b(data, digest_size=16, key=key).digest()


def read_key(path: str | Path) -> bytes:
    """Return the key in a file of at least 16 bytes, whatever they are; raises StateError."""
    with open_binary(path, StateError, _MAX_KEY_FILE) as file:
        data = file.read()
    if len(data) < _LEAST_KEY:
        raise StateError(
            f"{path}: a key has at least {_LEAST_KEY} bytes: 'head -c 32 /dev/urandom > {path}'"
            " makes one"
        )
    return blake2b(data).digest()


def write_sections(path: str | Path, sections: Mapping[str, bytes], key: bytes = b"") -> None:
    """Write a file that only its owner may read, whole or not at all.

    Raises StateError if it cannot be written.
    """
    table: dict[str, tuple[int, int, str]] = {}
    place = 0
    padded: list[bytes] = []
    for name, data in sections.items():
        table[name] = (place, len(data), digest(data, key).hex())
        padded += [data, bytes(-len(data) % _ALIGNED)]
        place += len(data) + len(padded[-1])
    text = json.dumps(table).encode()
    text += b" " * (-(len(MAGIC) + _HEAD.size + len(text)) % _ALIGNED)
    head = MAGIC + _HEAD.pack(len(text), digest(text, key))
    write_whole(path, b"".join([head, text, *padded]), StateError, is_private=True)


def refuse_to_replace(path: str | Path) -> None:
    """Raise StateError if a file is there that :func:`write_sections` has not written."""
    file = Path(path)
    if not file.is_file() or file.stat().st_size == 0:
        return
    with open_binary(file, StateError, MAX_BYTES) as opened:
        start = opened.read(len(_KIND))
    if start != _KIND:
        raise StateError(f"{path} is no state of a check, and is not replaced: name another file")


class Sections:
    """An open file of sections. Its views are valid until it is closed.

    Raises
    ------
    StateError
        It cannot be read, is no such file, or is damaged.

    """

    def __init__(self, path: str | Path, key: bytes = b"") -> None:
        with open_binary(path, StateError, MAX_BYTES) as file:
            try:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except (OSError, ValueError):
                raise StateError(f"{path}: empty, or cannot be mapped") from None
        self._path, self._key = path, key
        self._view = memoryview(self._map)
        first = len(MAGIC) + _HEAD.size
        if len(self._view) < first or self._view[: len(MAGIC)] != MAGIC:
            raise StateError(f"{path}: no state that this version writes")
        length, expected = _HEAD.unpack(self._view[len(MAGIC) : first])
        table = self._view[first : first + min(length, _MAX_TABLE)]
        if len(table) != length or not compare_digest(digest(table, key), expected):
            raise self._damaged()
        self._data = self._view[first + length :]
        self._table: dict[str, tuple[int, int, str]] = {}
        for name, entry in _mapping(bytes(table)).items():
            match entry:
                case [int(place), int(size), str(text)] if (
                    place >= 0 <= size and place + size <= len(self._data)
                ):
                    self._table[name] = (place, size, text)
                case _:
                    raise self._damaged()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the file mapped: arrays may still refer to it. It is closed with the last one."""

    @property
    def names(self) -> list[str]:
        """The names of all sections."""
        return list(self._table)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a section of this name."""
        return name in self._table

    def part(self, name: str) -> memoryview:
        """Return a section; without a key, without looking at its hash.

        Raises StateError if there is none, or it is not of who has the key.
        """
        return self.view(name) if self._key else self._part(name)

    def _part(self, name: str) -> memoryview:
        if name not in self._table:
            raise self._damaged()
        place, size, _ = self._table[name]
        return self._data[place : place + size]

    def view(self, name: str) -> memoryview:
        """Return a section; raises StateError if there is none, or it is damaged."""
        part = self._part(name)
        if not compare_digest(digest(part, self._key).hex(), self._table[name][2]):
            raise self._damaged()
        return part

    def json(self, name: str) -> dict[str, Any]:
        """Return a section that is a JSON object; raises StateError."""
        return _mapping(bytes(self.view(name)))

    def _damaged(self) -> StateError:
        of_key = "of this key" if self._key else "without a key"
        return StateError(f"{self._path}: damaged, or not written {of_key}")


def _mapping(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise StateError("a state has a section that is no JSON object")
    return value
