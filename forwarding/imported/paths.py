"""Files, folders and archives that users name, read as one imported fabric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from common.errors import KnotlessError, RuleError
from common.gc_pause import collector_paused
from common.memory import refuse_beyond
from forwarding.file_kinds import Content, FoundFile, file_kinds, kind_of
from forwarding.imported import infiniband, openflow_switches, routers
from forwarding.imported.fabric import ImportedFabric
from forwarding.imported.sources import Source, sources

MAX_FILES = 100_000
MAX_ALL_BYTES = 2 << 30
MEMORY_PER_BYTE = 12
"""What a byte of JSON becomes in memory."""
_ASSEMBLERS = {
    "infiniband": infiniband.assemble,
    "openflow": openflow_switches.assemble,
    "routers": routers.assemble,
}
_COMMON = "cables"
"""The technology of files that list cables between switches of any kind."""


def read_paths(paths: Sequence[str | Path]) -> ImportedFabric:
    """Return the fabric that the files, and those in the folders and archives, describe together.

    Files in folders and archives that no reader recognises are listed in the result.

    Raises
    ------
    KnotlessError
        A file cannot be read, a named file is of no known kind, or the files are not of one
        fabric.

    """
    ignored: list[str] = []
    found = read_sources(str(paths[0]), sources([Path(path) for path in paths], ignored))
    return replace(found, ignored=(*found.ignored, *ignored))


@collector_paused()
def read_sources(name: str, files: Iterable[Source]) -> ImportedFabric:
    """Return the fabric that ``files`` describe, called after the path ``name``."""
    found: list[FoundFile] = []
    replaced: list[Path | None] = []
    ignored: list[str] = []
    total = 0
    for number, source in enumerate(files):
        if number >= MAX_FILES:
            raise RuleError(f"{source.path}: there are more than {MAX_FILES} files")
        total += len(source.data)
        if total > MAX_ALL_BYTES:
            raise RuleError(
                f"{source.path}: the files have more than {MAX_ALL_BYTES >> 30} GiB together"
            )
        try:
            file = _read(source)
        except KnotlessError as error:
            raise error.within(str(source.path)) from None
        if file is None:
            ignored.append(str(source.path))
        else:
            found.append(file)
            replaced.append(source.replaced_by)
    present = {file.path.resolve() for file in found}
    files_used = [
        file for file, by in zip(found, replaced, strict=True) if by is None or by not in present
    ]
    if not files_used:
        known = ", ".join(file_kinds())
        raise RuleError(f"{name}: no file of a known kind in it; known are {known}")
    technologies = sorted({file.kind.technology for file in files_used} - {_COMMON})
    if len(technologies) > 1:
        raise RuleError(f"{name}: files of different fabrics: {' and '.join(technologies)}")
    try:
        assemble = _ASSEMBLERS[technologies[0] if technologies else "routers"]
        imported = assemble(_fabric_name(Path(name)), files_used)
    except KnotlessError as error:
        raise error.within(name) from None
    return replace(imported, ignored=tuple(ignored))


def _read(source: Source) -> FoundFile | None:
    refuse_beyond("this file", MEMORY_PER_BYTE * len(source.data), RuleError)
    try:
        text = source.data.decode()
    except UnicodeDecodeError:
        raise RuleError("cannot be read: not UTF-8 text") from None
    content = Content(text.removeprefix("\ufeff"))
    kind = kind_of(content)
    if kind is not None:
        return FoundFile(source.path, kind, kind.read(content), source.device)
    if source.named:
        known = ", ".join(file_kinds())
        raise RuleError(f"no known kind of file; known are {known}")
    return None


def _fabric_name(path: Path) -> str:
    text = path.resolve().stem or "fabric"
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
