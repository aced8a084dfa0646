"""When Open vSwitch has no cached entries of older rules left.

Open vSwitch confirms a change of rules before it has checked the entries by which it forwards, and
OpenFlow does not show when that is done. Its ``revalidator/wait`` (``ovs-appctl``) answers when a
check of all entries has ended. The first one that ends may have begun before the change; so may
the second one, as Open vSwitch starts a check for the change only in the next turn of its main
loop. The third one has seen the change.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import eventlet
from ovs.unixctl.client import UnixctlClient

from controller.southbound.drains import Drain

_CHECKS = 3
_TIMEOUT_S = 10.0
"""Without a change, a check begins every half second."""
_RETRY_S = 0.1
_HAS_ENDED = (errno.ECONNREFUSED, errno.ENOENT)
"""Errors of the control socket of a process that exists no more: it has no entries."""


def unchecked(directory: Path) -> list[str]:
    """Wait until each Open vSwitch has checked all its cached entries after now.

    ``directory`` is that of their control sockets, ``ovs-vswitchd.PID.ctl``. Returns those that
    have not answered in time.
    """
    sockets = sorted(directory.glob("ovs-vswitchd.*.ctl"))
    checked = eventlet.GreenPool().imap(_has_checked, sockets)
    return [path.name for path, done in zip(sockets, checked, strict=True) if not done]


def _has_checked(path: Path) -> bool:
    with eventlet.Timeout(_TIMEOUT_S, False):
        error, client = UnixctlClient.create(str(path))
        if error:
            return error in _HAS_ENDED
        try:
            for _ in range(_CHECKS):
                error, refused, _ = client.transact("revalidator/wait", [])
                if error or refused:
                    return False
            return True
        finally:
            client.close()
    return False


class AfterCaches:
    """A :class:`~controller.southbound.drains.Drain` that begins with empty caches.

    ``unchecked`` waits for them and names those that have not answered; ``begin`` returns the
    drain that follows.
    """

    def __init__(self, unchecked: Callable[[], list[str]], begin: Callable[[], Drain]) -> None:
        self._unchecked, self._begin = unchecked, begin
        self._late: list[str] = []
        self._drain: Drain | None = None

    @property
    def problem(self) -> str | None:
        """See :class:`~controller.southbound.drains.Drain`."""
        if self._drain is not None:
            return self._drain.problem
        if not self._late:
            return None
        return (
            f"{', '.join(self._late)}: Open vSwitch does not say whether it has checked its cached"
            " entries of older rules; it may be stopped"
        )

    @property
    def pause_s(self) -> float:
        """See :class:`~controller.southbound.drains.Drain`."""
        return self._drain.pause_s if self._drain else _RETRY_S

    def look(self) -> bool:
        """See :class:`~controller.southbound.drains.Drain`."""
        if self._drain is None:
            self._late = self._unchecked()
            if self._late:
                return False
            self._drain = self._begin()
        return self._drain.look()
