"""The resource limits that the processes of a running fabric need."""

from __future__ import annotations

from knotless.base.errors import EmulationError
from knotless.base.limits import need_address_space, need_open_files
from knotless.topologies.fabric import Fabric

OPEN_FILES = 256
OPEN_FILES_A_CABLE = 4
"""Both ends, in the emulator and in Open vSwitch."""
ADDRESS_SPACE_BYTES = 1 << 30
"""Python with its libraries, and threads' stacks."""


def require_limits(fabric: Fabric) -> None:
    """Raise EmulationError if the limits are too low for a fabric; call before its parts start."""
    what = f"running {fabric.name}"
    cables = len(fabric.links) + len(fabric.hosts)
    need_open_files(OPEN_FILES + OPEN_FILES_A_CABLE * cables, what, EmulationError)
    need_address_space(ADDRESS_SPACE_BYTES, what, EmulationError)
