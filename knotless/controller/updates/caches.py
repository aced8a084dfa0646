"""Megaflows: Open vSwitch's cached entries of older rules, and how it forgets them.

Open vSwitch confirms a change of rules before it has checked the entries by which it forwards, and
OpenFlow does not show when that is done. Nor do its checks correct all entries: in Open vSwitch 3.1
under load, some have stayed wrong through many checks, for as long as frames used them. So
``revalidator/purge`` (``ovs-appctl``) removes them all; frames make new ones, by the current rules.
A thread may still be about to add one that it made before the change. Checks do correct those;
``revalidator/wait`` answers when one has ended. The first one that ends may have begun before Open
vSwitch knew of the change, in the next turn of its main loop. The second one has seen it.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from knotless.controller import runtime
from knotless.controller.updates.quiescence import Quiescence

_COMMANDS = ("revalidator/purge", "revalidator/wait", "revalidator/wait")
_TIMEOUT_S = 10.0
"""Without a change, a check begins every half second."""
_RETRY_S = 0.1
_HAS_ENDED = (errno.ECONNREFUSED, errno.ENOENT)
"""Errors of the control socket of a process that exists no more: it has no entries."""


def purge_megaflows(directory: Path) -> list[str]:
    """Wait until no Open vSwitch has a cached entry that is older than now.

    ``directory`` is that of their control sockets, ``ovs-vswitchd.PID.ctl``. Returns those that
    have not answered in time.
    """
    sockets = runtime.control_sockets(directory, "ovs-vswitchd.*.ctl")
    purged = runtime.together(_purge, sockets)
    return [path.name for path, done in zip(sockets, purged, strict=True) if not done]


def _purge(path: Path) -> bool:
    with suppress(runtime.TimeLimitError), runtime.time_limit(_TIMEOUT_S):
        error = runtime.command_open_vswitch(path, _COMMANDS)
        return error == 0 or error in _HAS_ENDED
    return False


class AfterPurge:
    """A :class:`~knotless.controller.updates.quiescence.Quiescence` that begins without megaflows.

    ``purge`` waits until they are gone and names the processes that have not answered; ``begin``
    returns the quiescence that follows.
    """

    def __init__(self, purge: Callable[[], list[str]], begin: Callable[[], Quiescence]) -> None:
        self._purge, self._begin = purge, begin
        self._late: list[str] = []
        self._quiescence: Quiescence | None = None

    @property
    def problem(self) -> str | None:
        """See :class:`~knotless.controller.updates.quiescence.Quiescence`."""
        if self._quiescence is not None:
            return self._quiescence.problem
        if not self._late:
            return None
        return (
            f"{', '.join(self._late)}: Open vSwitch does not say whether it has checked its cached"
            " entries of older rules; it may be stopped"
        )

    @property
    def pause_s(self) -> float:
        """See :class:`~knotless.controller.updates.quiescence.Quiescence`."""
        return self._quiescence.pause_s if self._quiescence else _RETRY_S

    def look(self) -> bool:
        """See :class:`~knotless.controller.updates.quiescence.Quiescence`."""
        if self._quiescence is None:
            self._late = self._purge()
            if self._late:
                return False
            self._quiescence = self._begin()
        return self._quiescence.look()
