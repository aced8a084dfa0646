"""Network namespaces of a fabric that a test keeps, so that their inodes stay theirs."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from typing import Self

from knotless.emulation import state
from knotless.emulation.names import NETNS_DIRECTORY, Names


class HeldNamespaces(ExitStack):
    """Inodes of namespaces, by which a process or file in one of them is known.

    The kernel gives the inode of a namespace that is gone to a new one, perhaps of another test, so
    the namespaces are kept open until the end of the ``with`` statement.
    """

    def __init__(self, names: Names) -> None:
        super().__init__()
        self.inodes: set[int] = set()
        self._names = names

    def __enter__(self) -> Self:
        self.add()
        return self

    def add(self) -> None:
        """Keep those of the namespaces of the fabric that exist now."""
        for space in state.existing_namespaces(self._names):
            with suppress(FileNotFoundError):  # it is removed at this moment
                path = NETNS_DIRECTORY / space
                if path.stat().st_ino not in self.inodes:
                    file = self.enter_context(path.open("rb"))
                    self.inodes.add(os.fstat(file.fileno()).st_ino)
