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
from knotless.importers.frr import configuration
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
    "routers": routers.assemble,
}
COMPUTED = ("bgp",)
"""The protocols by which routes can be computed from the configurations of routers."""
_COMMON = "cables"
"""The technology of files that list cables between switches of any kind."""


def read_paths(paths: Sequence[str | Path], *, routes_by: str | None = None) -> AnyFabric:
    """Return the fabric that the files, and those in the folders and archives, describe together.

    Files in folders and archives that no reader recognises are listed in the result. Routes are
    those that files list, or computed by the protocol ``routes_by``, one of :data:`COMPUTED`.

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
            file = read_source(source, configurations=routes_by is not None)
            if file is None:
                ignored.append(str(source.path))
            else:
                recognised.append(file)
        fabric = assembled(str(paths[0]), recognised, routes_by=routes_by)
        return replace(fabric, ignored=tuple(ignored))


def read_source(source: Source, *, configurations: bool = False) -> FoundFile | None:
    """Return what a reader finds in a file; None if none recognises it and no user named it.

    Configurations of routing are read only on request: what they lead to is in lists of routes.

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
        if kind is configuration.KIND and not configurations:
            kind = None
        value = None if kind is None else kind.read(content)
    except KnotlessError as error:
        raise error.within(str(source.path)) from None
    if kind is None:
        return None
    return FoundFile(source.path, kind, value, source.device, source.replaced_by)


def assembled(name: str, files: Sequence[FoundFile], *, routes_by: str | None = None) -> AnyFabric:
    """Return the fabric that ``files`` describe together, called after the path ``name``.

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
        technology = technologies[0] if technologies else "routers"
        if routes_by is None:
            return _ASSEMBLERS[technology](_fabric_name(Path(name)), used)
        if technology != "routers":
            raise RuleError(f"routes by {routes_by} are those of routers, these are {technology}")
        return routers.assemble(_fabric_name(Path(name)), used, routes_by=routes_by)
    except KnotlessError as error:
        raise error.within(name) from None


def _fabric_name(path: Path) -> str:
    text = path.resolve().stem or "fabric"
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
