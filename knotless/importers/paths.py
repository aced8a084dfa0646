"""Files, folders and archives that users name, read as one imported fabric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from knotless.base.errors import KnotlessError, RuleError
from knotless.base.gc_pause import collector_paused
from knotless.base.memory import refuse_beyond
from knotless.importers.fabric import AnyFabric
from knotless.importers.file_kinds import Content, FoundFile, file_kinds, kind_of
from knotless.importers.infiniband import fabric as infiniband
from knotless.importers.openflow import switches as openflow_switches
from knotless.importers.routers import assemble as routers
from knotless.importers.sources import Source, sources

MAX_FILES = 100_000
MAX_ALL_BYTES = 2 << 30
MEMORY_PER_BYTE = 12
"""The bytes that a byte of JSON becomes in memory."""
_ASSEMBLERS: dict[str, Callable[[str, Sequence[FoundFile]], AnyFabric]] = {
    "infiniband": infiniband.assemble,
    "openflow": openflow_switches.assemble,
}
_ROUTERS = "routers"
_COMMON = "cables"
"""The technology of files that list cables between switches of any kind."""


def read_paths(paths: Sequence[str | Path], hosts: Sequence[str] = ()) -> AnyFabric:
    """Return the fabric that the files, and those in the folders and archives, describe together.

    ``hosts`` are patterns of the names of neighbours by LLDP that are hosts, whatever they
    announce.

    Files in folders and archives that no reader recognises are listed in the result.

    Raises
    ------
    KnotlessError
        A file cannot be read, a named file is of no known kind, or the files are not of one
        fabric.

    """
    with collector_paused():
        recognised: list[FoundFile] = []
        ignored: list[str] = []
        total = 0
        for number, source in enumerate(sources([Path(path) for path in paths], ignored)):
            if number >= MAX_FILES:
                raise RuleError(f"{source.path}: there are more than {MAX_FILES} files")
            total += len(source.data)
            if total > MAX_ALL_BYTES:
                raise RuleError(
                    f"{source.path}: the files have more than {MAX_ALL_BYTES >> 30} GiB together"
                )
            file = read_source(source)
            if file is None:
                ignored.append(str(source.path))
            else:
                recognised.append(file)
        return replace(assembled(str(paths[0]), recognised, hosts), ignored=tuple(ignored))


def read_source(source: Source) -> FoundFile | None:
    """Return what a reader finds in a file; None if none recognises it and no user named it.

    Raises
    ------
    KnotlessError
        It cannot be read, or it is named and of no known kind.

    """
    try:
        refuse_beyond("this file", MEMORY_PER_BYTE * len(source.data), RuleError)
        try:
            text = source.data.decode()
        except UnicodeDecodeError:
            raise RuleError("cannot be read: not UTF-8 text") from None
        content = Content(text.removeprefix("\ufeff"))
        kind = kind_of(content)
        if kind is None and source.named:
            raise RuleError(f"no known kind of file; known are {', '.join(file_kinds())}")
        value = None if kind is None else kind.read(content)
    except KnotlessError as error:
        raise error.within(str(source.path)) from None
    if kind is None:
        return None
    return FoundFile(source.path, kind, value, source.device, source.replaced_by)


def assembled(name: str, files: Sequence[FoundFile], hosts: Sequence[str] = ()) -> AnyFabric:
    """Return the fabric that ``files`` describe together, called after the path ``name``.

    For ``hosts`` see :func:`read_paths`.

    Raises
    ------
    KnotlessError
        They are not of one fabric, or contradict each other.

    """
    replaced = any(file.replaced_by for file in files)
    present = {file.path.resolve() for file in files} if replaced else set()
    used = [file for file in files if file.replaced_by not in present]
    if not used:
        raise RuleError(
            f"{name}: no file of a known kind in it; known are {', '.join(file_kinds())}"
        )
    technologies = sorted({file.kind.technology for file in used} - {_COMMON})
    if len(technologies) > 1:
        raise RuleError(f"{name}: files of different fabrics: {' and '.join(technologies)}")
    try:
        technology = technologies[0] if technologies else _ROUTERS
        if technology == _ROUTERS:
            return routers.assemble(_fabric_name(Path(name)), used, hosts)
        if hosts:
            raise RuleError("--hosts: only routers hear neighbours by LLDP, and these are none")
        return _ASSEMBLERS[technology](_fabric_name(Path(name)), used)
    except KnotlessError as error:
        raise error.within(name) from None


def _fabric_name(path: Path) -> str:
    text = path.resolve().stem or "fabric"
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
