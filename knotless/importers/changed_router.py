"""The router whose files have changed, as it was and as it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from knotless.base.errors import StateError
from knotless.importers.file_kinds import FoundFile
from knotless.importers.findings import Findings
from knotless.importers.listing import in_techsupport
from knotless.importers.manifest import FileChange, FileRecord, content_of
from knotless.importers.reading import read_source
from knotless.importers.routers.files import chosen_routes, missing_routes, routers_of
from knotless.importers.routers.router import Router
from knotless.importers.routers.tables import is_named_alone, judge_tables, unknown_fields
from knotless.importers.sources import Source

_OF_ROUTES = ("ROUTE_TABLE", "NEXTHOP_GROUP_TABLE")
"""Tables of which nothing is used but routes, and what :func:`.judge_tables` says."""


class ChangedRouter(NamedTuple):
    """A router with the files of then and of now; None: they say the same."""

    before: Router
    after: Router


def changed_router(
    records: Sequence[FileRecord], contents: memoryview, changes: Sequence[FileChange]
) -> ChangedRouter | None:
    """Return the router of which files have changed, if only its routes have.

    Raises
    ------
    StateError
        More than the routes of one router has changed.
    KnotlessError
        A file cannot be read, or says something impossible.

    """
    changed = {change.path: change for change in changes}
    folders = {change.before.folder for change in changes if change.before is not None}
    if len(folders) != 1 or any(None in (change.before, change.now) for change in changes):
        raise StateError(f"{_named(changes)} changed")
    (folder,) = folders
    if in_techsupport(Path(folder) / "file") is not None:
        raise StateError(f"{folder} is of a techsupport archive")
    before: list[FoundFile] = []
    after: list[FoundFile] = []
    for record in records:
        if record.folder == folder:
            data = content_of(record, contents)
            change = changed.get(record.path)
            old = _read(record, data)
            new = old if change is None or change.now is None else _read(record, change.now)
            if (old is None or new is None) and old is not new:
                raise StateError(f"{record.path} is of another kind")
            before += [] if old is None else [old]
            after += [] if new is None else [new]
    return with_other_routes(before, after)


def with_other_routes(
    before: Sequence[FoundFile], after: Sequence[FoundFile]
) -> ChangedRouter | None:
    """Return the router whose files were and are these, if only its routes have changed.

    Raises StateError if more has, or the files are not of one router; None: they say the same.
    """
    if [_statement(file) for file in before] == [_statement(file) for file in after]:
        return None
    return _of_routes_alone(_router(before), _router(after))


def _named(changes: Sequence[FileChange]) -> str:
    more = len(changes) - 1
    return changes[0].path + (f" and {more} more" if more else "")


def _read(record: FileRecord, data: bytes) -> FoundFile | None:
    """Return what a file says; None if nothing in it is read."""
    if data.lstrip()[:1] not in (b"{", b"[") or b"\0" in data:
        raise StateError(f"{record.path} is no JSON")
    path = Path(record.path)
    file = read_source(Source(path, record.named, data, Path(record.folder)))
    if not isinstance(file, FoundFile):
        raise StateError(f"{record.path} is not read")
    return file


def _statement(file: FoundFile) -> tuple[str, str]:
    """Return what a file says, in its order, in which findings are as well."""
    return file.kind.name, repr(file.value)


def _router(files: Sequence[FoundFile]) -> tuple[Router, str]:
    """Return the only router in files, and what they show besides its routes."""
    findings = Findings()
    routers, cables = routers_of(files, findings)
    if len(routers) != 1 or cables:
        raise StateError(f"{files[0].path} is not of one router")
    (router,) = routers
    dumped = chosen_routes(router, findings)
    judge_tables(routers, findings)
    counted = {
        table: rows
        for table, rows in router.tables.items()
        if table not in _OF_ROUTES and not is_named_alone(table)
    }
    named = sorted(table for table, rows in router.tables.items() if rows and is_named_alone(table))
    fields = sorted({*unknown_fields(router)})
    statements = (router.host, counted, named, router.heard, router.configuration, fields, findings)
    return router, repr((*statements, [*missing_routes(router, dumped)]))


def _of_routes_alone(before: tuple[Router, str], after: tuple[Router, str]) -> ChangedRouter:
    (old, said_before), (new, said_after) = before, after
    if (old.name, said_before) != (new.name, said_after):
        raise StateError(f"more than the routes of {old.name} changed")
    return ChangedRouter(old, new)
