"""Mininet nodes that are described first, and run when their fabric starts."""

from __future__ import annotations

from typing import Any

from knotless.base.errors import EmulationError


class DescribedNode:
    """The common part of hosts and switches before they run; comes first among the base classes.

    Mininet's own nodes start a shell when they are made. The shells of a fabric start together,
    when all is known and checked.
    """

    def __init__(self, name: str, **params: Any) -> None:
        self.name = name
        self.params: dict[str, Any] = params
        self.shell: Any = None
        self.pid: int | None = None
        self.waiting = False
        self.intfs: dict[int, Any] = {}
        self.ports: dict[Any, int] = {}
        self.nameToIntf: dict[str, Any] = {}

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command in the shell and return its output; raises EmulationError likewise."""
        self._require_shell()
        return super().cmd(*args, **kwargs)  # type: ignore[misc]  # Mininet's

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802 - Mininet's name
        """Start a command in the shell; raises EmulationError if the node does not run."""
        self._require_shell()
        super().sendCmd(*args, **kwargs)  # type: ignore[misc]  # Mininet's

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """Start a program; raises EmulationError if the node does not run."""
        self._require_shell()
        return super().popen(*args, **kwargs)  # type: ignore[misc]  # Mininet's

    def _require_shell(self) -> None:
        if self.shell is None:
            raise EmulationError(f"{self.name} runs no programs before net.start() or after stop()")
