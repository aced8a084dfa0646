"""Files and folders that users name, read as one imported fabric."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from common.errors import KnotlessError, RuleError
from common.files import read_text
from common.gc_pause import collector_paused
from common.memory import refuse_beyond
from forwarding.file_kinds import Content, FoundFile, file_kinds, kind_of
from forwarding.imported import infiniband, routers
from forwarding.imported.fabric import ImportedFabric

MAX_FILES = 100_000
MAX_FILE_BYTES = 256 << 20
MAX_ALL_BYTES = 2 << 30
MEMORY_PER_BYTE = 12
"""What a byte of JSON becomes in memory."""
_ASSEMBLERS = {"infiniband": infiniband.assemble, "routers": routers.assemble}


@collector_paused()
def read_paths(paths: Sequence[str | Path]) -> ImportedFabric:
    """Return the fabric that the files, and the files in the folders, describe together.

    Files in folders that no reader recognises are listed in the result.

    Raises
    ------
    KnotlessError
        A file cannot be read, a named file is of no known kind, or the files are not of one
        fabric.

    """
    found: list[FoundFile] = []
    ignored: list[str] = []
    total = 0
    for number, (path, named) in enumerate(_files([Path(path) for path in paths])):
        if number >= MAX_FILES:
            raise RuleError(f"{path}: there are more than {MAX_FILES} files")
        text = read_text(path, RuleError, MAX_FILE_BYTES)
        total += len(text)
        if total > MAX_ALL_BYTES:
            raise RuleError(f"{path}: the files have more than {MAX_ALL_BYTES >> 30} GiB together")
        try:
            refuse_beyond("this file", MEMORY_PER_BYTE * len(text), RuleError)
            content = Content(text.removeprefix("\ufeff"))
            kind = kind_of(content)
            if kind is not None:
                found.append(FoundFile(path, kind, kind.read(content)))
            elif named:
                known = ", ".join(file_kinds())
                raise RuleError(f"no known kind of file; known are {known}")
            else:
                ignored.append(str(path))
        except KnotlessError as error:
            raise error.within(str(path)) from None
    technologies = sorted({file.kind.technology for file in found})
    if not technologies:
        known = ", ".join(file_kinds())
        raise RuleError(f"{paths[0]}: no file of a known kind in it; known are {known}")
    if len(technologies) > 1:
        raise RuleError(f"{paths[0]}: files of different fabrics: {' and '.join(technologies)}")
    try:
        imported = _ASSEMBLERS[technologies[0]](_name(Path(paths[0])), found)
    except KnotlessError as error:
        raise error.within(str(paths[0])) from None
    return replace(imported, ignored=tuple(ignored))


def _name(path: Path) -> str:
    text = path.resolve().stem or "fabric"
    return "".join(c if c.isprintable() else "?" for c in text)[:200]


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield all files in a fixed order, each with whether it was named itself."""
    for path in paths:
        if not path.is_dir():
            yield path, True
            continue
        for folder, inner, names in os.walk(path):
            inner.sort()
            for name in sorted(names):
                yield Path(folder, name), False
