"""Files, folders and archives that users name, read as one imported fabric."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from knotless.base.errors import KnotlessError, RuleError
from knotless.base.memory import collector_paused
from knotless.importers.causes import Cause
from knotless.importers.fabric import AnyFabric
from knotless.importers.file_kinds import FoundFile, file_kinds
from knotless.importers.infiniband import fabric as infiniband
from knotless.importers.neutral import fabric as neutral
from knotless.importers.not_read import NotRead
from knotless.importers.openflow import switches as openflow_switches
from knotless.importers.reading import read_source
from knotless.importers.routers import assemble as routers
from knotless.importers.sources import Source, sources

MAX_FILES = 100_000
MAX_ALL_BYTES = 2 << 30
_ASSEMBLERS: dict[str, Callable[[str, Sequence[FoundFile]], AnyFabric]] = {
    "infiniband": infiniband.assemble,
    "neutral": neutral.assemble,
    "openflow": openflow_switches.assemble,
}
_ROUTERS = "routers"
_COMMON = "cables"
"""The technology of files that list cables between switches of any kind."""


def read_paths(
    paths: Sequence[str | Path],
    hosts: Sequence[str] = (),
    *,
    routes_by: str | None = None,
    progress: Callable[[int], None] = lambda _number: None,
) -> AnyFabric:
    """Return the fabric that the files, and those in the folders and archives, describe together.

    ``hosts`` are patterns of the names of neighbours by LLDP that are hosts, whatever they
    announce. Routes are those that files list, or taken from configurations as ``routes_by`` says,
    one of :data:`~knotless.base.computed_routes.COMPUTED`. ``progress`` is told how many files
    have been read.

    Files in folders and archives that no reader recognises, or that cannot be read, are listed in
    the result. If the text of one is that of a kind that is read, nothing is certain without it.

    Raises
    ------
    KnotlessError
        A named file cannot be read or is of no known kind, a folder or archive cannot be read, or
        the files are not of one fabric.

    """
    with collector_paused():
        special: list[str] = []
        files: list[FoundFile | NotRead] = []
        for source in sources_of(paths, special):
            files.append(read_source(source, configurations=routes_by is not None))
            progress(len(files))
        return fabric_of(str(paths[0]), files, special, hosts, routes_by=routes_by)


def sources_of(paths: Sequence[str | Path], special: list[str]) -> Iterator[Source]:
    """Yield all files, see :func:`~knotless.importers.sources.sources`, up to a limit."""
    total = 0
    for number, source in enumerate(sources([Path(path) for path in paths], special)):
        if number >= MAX_FILES:
            raise RuleError(f"{source.path}: there are more than {MAX_FILES} files")
        total += len(source.data)
        if total > MAX_ALL_BYTES:
            raise RuleError(
                f"{source.path}: the files have more than {MAX_ALL_BYTES >> 30} GiB together"
            )
        yield source


def fabric_of(
    name: str,
    files: Iterable[FoundFile | NotRead],
    special: Iterable[str] = (),
    hosts: Sequence[str] = (),
    *,
    routes_by: str | None = None,
) -> AnyFabric:
    """Return the fabric of files that were read; ``special`` ones are not regular.

    For the rest, and what is raised, see :func:`assembled`.
    """
    recognised: list[FoundFile] = []
    skipped: list[NotRead] = []
    for file in files:
        if isinstance(file, NotRead):
            skipped.append(file)
        else:
            recognised.append(file)
    skipped += [NotRead(text, "not a regular file") for text in special]
    return assembled(name, recognised, hosts, skipped, routes_by=routes_by)


def assembled(
    name: str,
    files: Sequence[FoundFile],
    hosts: Sequence[str] = (),
    skipped: Sequence[NotRead] = (),
    *,
    routes_by: str | None = None,
) -> AnyFabric:
    """Return the fabric that ``files`` describe together, called after the path ``name``.

    For ``hosts`` see :func:`read_paths`. Without the files that were ``skipped`` and matter,
    nothing is certain.

    Raises
    ------
    KnotlessError
        They are not of one fabric, contradict each other, or lack what is in a skipped file.

    """
    damaged = [file for file in skipped if file.matters]
    try:
        imported = _assembled(name, files, hosts, routes_by)
    except KnotlessError as error:
        if damaged:
            raise RuleError(f"{damaged[0].file}: {damaged[0].reason}") from None
        raise error.within(name) from None
    for file in damaged:
        imported.findings.unclear(
            f"what {file.file} says: {file.text}", Cause.from_error(file.file, file.reason)
        )
    return replace(imported, not_read=tuple(skipped))


def _assembled(
    name: str, files: Sequence[FoundFile], hosts: Sequence[str], routes_by: str | None
) -> AnyFabric:
    replaced = any(file.replaced_by for file in files)
    present = {file.path.resolve() for file in files} if replaced else set()
    used = [file for file in files if file.replaced_by not in present]
    if not used:
        raise RuleError(f"no file of a known kind in it; known are {', '.join(file_kinds())}")
    technologies = sorted({file.kind.technology for file in used} - {_COMMON})
    if len(technologies) > 1:
        raise RuleError(f"files of different fabrics: {' and '.join(technologies)}")
    technology = technologies[0] if technologies else _ROUTERS
    if technology == _ROUTERS:
        return routers.assemble(_fabric_name(Path(name)), used, hosts, routes_by=routes_by)
    if hosts:
        raise RuleError("--hosts: only routers hear neighbours by LLDP, and these are none")
    if routes_by is not None:
        raise RuleError(f"--routes {routes_by}: only routers have such, and these are none")
    return _ASSEMBLERS[technology](_fabric_name(Path(name)), used)


def _fabric_name(path: Path) -> str:
    text = path.resolve().stem or "fabric"
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
