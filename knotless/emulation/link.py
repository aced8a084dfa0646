"""Mininet's view of an emulated link, whose two interfaces already exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knotless.base.errors import EmulationError
from knotless.emulation.cuts import channel_of
from knotless.emulation.daemon import Daemon
from knotless.emulation.described_fabric import changes_of
from knotless.emulation.mn import Intf, Link
from knotless.emulation.wiring import Cable


class EmulatedIntf(Intf):  # type: ignore[misc]  # Mininet is not typed
    """An interface that is created and configured before Mininet uses it."""

    def config(self, **params: Any) -> dict[str, Any]:
        """Change the line for what this end sends: ``bw``, ``delay``, ``jitter`` and ``loss``.

        All else :mod:`knotless.emulation.network` has configured at once. Raises EmulationError for
        a value that is impossible, or that counts before ``net.start()`` only.
        """
        if changes := changes_of(params, self.name):
            self.link.change(self, changes)
        return {}


class EmulatedLink(Link):  # type: ignore[misc]  # Mininet is not typed
    """A link between two Mininet nodes through the link emulator: two veth pairs.

    ``cable`` names the interfaces; rate, delay, buffers and flow control are those of the emulator,
    whose client is ``daemon``, if it is no plain link. All
    pairs of a fabric are created by one process beforehand
    (:func:`knotless.emulation.wiring.emulated_pairs`), because a process for each would be slow.
    """

    def __init__(self, node1: Any, node2: Any, *, cable: Cable, daemon: Daemon | None) -> None:
        self.cable, self._daemon = cable, daemon
        super().__init__(
            node1,
            node2,
            port1=cable.a.port,
            port2=cable.b.port,
            intfName1=cable.a.interface,
            intfName2=cable.b.interface,
            cls1=EmulatedIntf,
            cls2=EmulatedIntf,
        )

    def change(self, intf: Any, changes: Mapping[str, float]) -> None:
        """Change the line for what one end sends; raises EmulationError."""
        if self._daemon is None:
            raise EmulationError(f"{intf.name}: a plain link has no emulator that could change it")
        end = next(end for end in self.cable.ends if end.interface == intf.name)
        self._daemon.set_line(self.cable.name, changes, channel=channel_of(end))

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_kwargs: Any) -> tuple[None, None]:  # noqa: N802 - Mininet's name
        """Do nothing: both interfaces exist."""
        return None, None

    def stop(self) -> None:
        """Do nothing: removing the namespaces removes every pair."""
