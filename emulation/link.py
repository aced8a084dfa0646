"""Mininet's view of an emulated link: two interfaces that stand already."""

from __future__ import annotations

from typing import Any

from emulation.mn import Intf, Link
from emulation.wiring import Cable


class EmulatedIntf(Intf):  # type: ignore[misc]  # Mininet is not typed
    """An interface that is made, placed and configured before Mininet hears of it."""

    def config(self, **_params: Any) -> dict[str, Any]:
        """Do nothing: :mod:`emulation.network` has done it for all at once."""
        return {}


class EmulatedLink(Link):  # type: ignore[misc]  # Mininet is not typed
    """A link between two Mininet nodes through the link emulator: two veth pairs.

    ``cable`` says which interfaces; its rate, delay, buffers and flow control are the
    emulator's. The pairs of a whole fabric are made by one process before
    (:func:`emulation.wiring.emulated_pairs`), because one by one takes most of the start.
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
        """Make nothing: both interfaces stand."""
        return None, None

    def stop(self) -> None:
        """Do nothing: the namespaces' removal takes every pair with it."""
