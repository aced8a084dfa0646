"""Limits of fabrics and of what they carry: those of the core (``core/graph/src/limits.rs``).

Topologies do not load the core; a test compares their own.
"""

from __future__ import annotations

from knotless._core import graph as core

PRIORITIES = core.PRIORITIES
"""The priorities (PCP) of 802.1Q, each of which can carry a virtual channel."""
LAST_VLAN = core.LAST_VLAN
"""The highest VLAN of 802.1Q."""
MAX_BYTES = core.MAX_BYTES
"""Messages and buffers have fewer bytes."""
MAX_PACKET_BYTES = core.MAX_PACKET_BYTES
"""The most bytes of a message in one packet."""
