"""Parts of all verdicts: witnesses, and the theorem that rules a deadlock out.

This module loads no libraries, so that a verdict that is only shown again is shown at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

ACYCLIC = "acyclic"
"""The theorem of Dally and Seitz: there is no cycle of dependencies."""
ESCAPE = "escape (first free of)"
"""There are cycles, but no set of virtual channels can block itself."""
BUBBLE = "bubble (rings keep room)"
"""There are cycles, but each is a ring that frames enter only if room is left for another."""
_POOL = "pool "


@dataclass(frozen=True)
class Witness:
    """A packet that holds one channel of a cycle while it waits for the next (``s1:2/0`` ..).

    ``destination`` is a host, ``all``, ``multicast:N``, or an address that no host has.
    """

    held: str
    wanted: str
    source: str
    destination: str

    @property
    def packet(self) -> str:
        """The packet as text."""
        return f"{self.source} to {self.destination}"

    @property
    def text(self) -> str:
        """The step of the cycle as a clause: the packet, what it holds and what it waits for."""
        if is_pool(self.wanted):
            return f"{self.packet} waits at {self.held} for room in {self.wanted}"
        held = f"room in {self.held}" if is_pool(self.held) else self.held
        return f"{self.packet} holds {held} while it waits for {self.wanted}"

    def as_json(self) -> Mapping[str, str | int]:
        """Return the witness as a value for :func:`json.dumps`."""
        return asdict(self)


def pool_name(pool: str, switch: str) -> str:
    """Return the name of a pool of a switch as a node of a cycle."""
    return f"{_POOL}{pool} of {switch}"


def is_pool(name: str) -> bool:
    """Tell whether a node of a cycle is a pool; others are ``SWITCH:PORT/PRIORITY``."""
    return name.startswith(_POOL)


def theorem_of(*, is_acyclic: bool, is_safe: bool) -> str | None:
    """Return the name of what proves that no deadlock is possible; None if one is."""
    if is_acyclic:
        return ACYCLIC
    return ESCAPE if is_safe else None
