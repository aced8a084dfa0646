"""The source addresses of the controller's probes: their frames are no traffic of hosts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PROBE_SOURCE = bytes((0x06, 0x6B, 0x6E))
"""The first bytes (locally administered); the sending port follows."""
_PREFIX = PROBE_SOURCE.hex(":")


def of_hosts(flows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the flows of the emulator's report that are not probes of the controller."""
    return [flow for flow in flows if not str(flow["from"]).startswith(_PREFIX)]
