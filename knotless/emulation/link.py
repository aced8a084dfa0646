"""Mininet's view of an emulated link, whose two interfaces already exist."""

from __future__ import annotations

from typing import Any

from knotless.base.errors import EmulationError
from knotless.emulation.mn import Intf, Link
from knotless.emulation.wiring import Cable

LINE = ("bw", "delay", "jitter", "loss", "max_queue_size")
"""What Mininet's ``TCIntf`` changes at any time."""


class EmulatedIntf(Intf):  # type: ignore[misc]  # Mininet is not typed
    """An interface that is created and configured before Mininet uses it."""

    def config(self, **params: Any) -> dict[str, Any]:
        """Do nothing: :mod:`knotless.emulation.network` has configured all interfaces at once.

        Raises EmulationError for what a link could have been given before it ran.
        """
        if late := [key for key in LINE if params.get(key) is not None]:
            raise EmulationError(f"{self.name}: {late[0]}: give it to addLink, before net.start()")
        return {}


class EmulatedLink(Link):  # type: ignore[misc]  # Mininet is not typed
    """A link between two Mininet nodes through the link emulator: two veth pairs.

    ``cable`` names the interfaces; rate, delay, buffers and flow control are the emulator's. All
    pairs of a fabric are created by one process beforehand
    (:func:`knotless.emulation.wiring.emulated_pairs`), because a process for each would be slow.
    """

    def __init__(self, node1: Any, node2: Any, *, cable: Cable) -> None:
        self.cable = cable
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

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_kwargs: Any) -> tuple[None, None]:  # noqa: N802 - Mininet's name
        """Do nothing: both interfaces exist."""
        return None, None

    def stop(self) -> None:
        """Do nothing: removing the namespaces removes every pair."""
