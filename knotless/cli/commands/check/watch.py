"""``knotless check --watch``: the verdict again whenever files change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from time import sleep
from typing import NoReturn

from knotless.base.errors import KnotlessError, RuleError
from knotless.base.files import read_bytes
from knotless.cli.commands.check.answer import Extras, print_imported
from knotless.cli.commands.check.options import Output, Source
from knotless.cli.output import say
from knotless.importers.listing import MAX_FILE_BYTES
from knotless.importers.manifest import Listed, listed_now
from knotless.sessions import Session
from knotless.snapshots import snapshot

PERIOD_S = 0.5
"""Between two looks at the files."""


def watch(source: Source, output: Output, wait: Callable[[float], None] = sleep) -> NoReturn:
    """Print the verdict at first and after each change, until Ctrl-C; exit with the last status.

    ``wait`` waits for some seconds. Files that are not of one fabric, as while they are written,
    are an error of one line; they are read again when they change.
    """
    status = 2
    session: Session | None = None
    before: list[Listed] | None = None
    try:
        while True:
            now = listed_now(source.paths)
            if now != before:
                try:
                    session = _follow(session, source, before or [], now)
                    status = _printed(session, source, output)
                except KnotlessError as error:
                    session, status = None, 2
                    say(f"knotless: {error}", err=True)
                before = now
            wait(PERIOD_S)
    except KeyboardInterrupt:
        sys.exit(status)


def _follow(
    session: Session | None,
    source: Source,
    before: Sequence[Listed],
    now: Sequence[Listed],
) -> Session:
    """Return a session with the files that are there now."""
    files = () if session is None else session.snapshot.files
    paths = {str(file.source.path) for file in files}
    changes = dict(_changes(before, now))
    if session is None or not all(path in paths for path in changes):  # archives have several
        return Session(snapshot(*source.paths, hosts=source.hosts, routes=source.routes))
    session.update(changes)
    return session


def _changes(before: Sequence[Listed], now: Sequence[Listed]) -> Iterator[tuple[str, bytes | None]]:
    """Yield the files that are new, changed or gone, with what they have."""
    old = {file.path: file for file in before}
    for file in now:
        if old.pop(file.path, None) != file or file.status is None:
            yield file.path, read_bytes(file.path, RuleError, MAX_FILE_BYTES)
    for path in old:
        yield path, None


def _printed(session: Session, source: Source, output: Output) -> int:
    """Print the verdict; return its exit status."""
    try:
        print_imported(session.snapshot.verdict().source, source, Extras(), output)
    except SystemExit as end:
        return int(end.code or 0)
