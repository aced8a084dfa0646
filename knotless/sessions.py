"""A fabric of others that stays in memory: changes of one router are judged in milliseconds.

import knotless as kn

session = kn.session(kn.snapshot("fabric"))
session.update({"leaf0/appl_db.json": text}).safe
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from knotless.arguments import checked
from knotless.base.errors import StateError
from knotless.importers.changed_router import with_other_routes
from knotless.importers.file_kinds import FoundFile
from knotless.notebook import Verdict
from knotless.snapshots import ReadFile, Snapshot
from knotless.verification.resident import ResidentCheck

if TYPE_CHECKING:
    from knotless.importers.routers.resident_routes import ChangedRoutes
    from knotless.verification.imported_verdict import ImportedVerdict

__all__ = ["Session", "session"]


@checked
def session(snapshot: Snapshot) -> Session:
    """Keep a snapshot in memory while its files change; see :meth:`Session.update`."""
    return Session(snapshot)


@dataclass(frozen=True)
class ReadChange:
    """Files that have changed, read: the snapshot with them, and the routes that they change.

    ``routes`` is None if more than the routes of one router has changed, as ``reason`` says, or
    without a reason if the files say the same. ``paths`` are the files that have changed.
    """

    after: Snapshot
    routes: ChangedRoutes | None
    reason: str
    paths: frozenset[Path]


class Session:
    """A fabric of others that stays in memory while its files change.

    Attributes
    ----------
    snapshot : Snapshot
        The files as they are now, with their verdict.
    full_checks : Counter of str
        How many changes were answered by a check of all files, by the reason.

    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.full_checks = snapshot, Counter[str]()
        self._resident: ResidentCheck | None = None
        self._reason = ""
        self._begin()

    def _begin(self) -> None:
        try:
            self._resident = ResidentCheck(self.snapshot.imported, self.snapshot.imported_verdict)
        except StateError as error:
            self._resident, self._reason = None, str(error)

    def update(self, changes: Mapping[str, str | bytes | None]) -> Verdict:
        """Return the verdict after files have changed, as :meth:`Snapshot.with_changes` takes them.

        Packets are followed again only to destinations that a router now sends elsewhere, if its
        routes alone have changed. Otherwise all is checked, which :attr:`full_checks` counts.

        Raises
        ------
        KnotlessError
            The files are not of one fabric. The session is as before.

        """
        return self.apply(self.read(changes))

    def read(self, changes: Mapping[str, str | bytes | None]) -> ReadChange:
        """Read changed files, without judging them; :meth:`apply` takes the result."""
        after = self.snapshot.with_changes(changes)
        old, new = self.snapshot.by_path, after.by_path
        paths = frozenset(path for path in {**old, **new} if old.get(path) is not new.get(path))
        try:
            return ReadChange(after, self._changed_routes(old, new, paths), "", paths)
        except StateError as error:
            return ReadChange(after, None, str(error), paths)

    def _changed_routes(
        self,
        old: Mapping[Path, ReadFile],
        new: Mapping[Path, ReadFile],
        paths: Collection[Path],
    ) -> ChangedRoutes | None:
        """Return the routes that have changed, if only routes have; None: files say the same."""
        devices = set()
        for path in paths:
            for file in (old.get(path), new.get(path)):
                if file is None or not isinstance(file.content, FoundFile):
                    raise StateError("files are new, gone or not read")
                if file.content.replaced_by is not None:
                    raise StateError("files replace others")
                devices.add(file.content.device)
        if not devices:
            return None
        if len(devices) > 1:
            raise StateError("files of several switches changed")
        (device,) = devices
        before, now = (
            [
                file.content
                for file in files.values()
                if isinstance(file.content, FoundFile) and file.content.device == device
            ]
            for files in (old, new)
        )
        changed = with_other_routes(before, now)
        if changed is None:
            return None
        if self._resident is None:
            raise StateError(self._reason)
        return self._resident.differing(changed.after)

    def apply(self, change: ReadChange) -> Verdict:
        """Return the verdict after changes that were read for the current snapshot.

        Raises KnotlessError as :meth:`update`.
        """
        after, reason = change.after, change.reason
        if not reason:
            try:
                gone = {str(path) for path in change.paths}
                places = self.snapshot.place_cache.items()
                same = {file: reached for file, reached in places if file not in gone}
                after.take_verdict(self._judged(change.routes), same)
                self.snapshot = after
                return after.verdict()
            except StateError as error:
                reason = str(error)
        verdict = after.verdict()
        self.snapshot = after
        self.full_checks[reason] += 1
        self._begin()
        return verdict

    def _judged(self, routes: ChangedRoutes | None) -> ImportedVerdict:
        if routes is None or self._resident is None:
            return self.snapshot.imported_verdict
        return self._resident.change(routes)

    def __repr__(self) -> str:
        """Return what is in memory."""
        return f"session of {self.snapshot!r}"
