"""With tagging by hosts: in which VLAN each host's network interface sends to whom."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import RuleError
from topologies.fabric import Fabric

HostTags = dict[str, dict[str, int]]
"""Host -> {destination MAC: VLAN}, and the VLAN of :data:`EVERYTHING_ELSE`, broadcasts too."""
EVERYTHING_ELSE = "default"
FILE = "tags.json"
"""What the file is called beside the rules that it belongs to."""


def to_text(tags: HostTags) -> str:
    """Return ``tags`` as JSON text."""
    return json.dumps(tags, indent=1) + "\n"


def from_text(fabric: Fabric, text: str) -> HostTags:
    """Return what :func:`to_text` wrote, for the hosts of ``fabric``.

    Raises
    ------
    RuleError
        Not JSON, a host is missing or unknown, or a VLAN is not 1 to 4094.

    """
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise RuleError("not JSON") from None
    if not isinstance(read, dict) or set(read) != set(fabric.host_index):
        raise RuleError(f"must have one object for each host of {fabric.name}")
    for host, vlans in read.items():
        if not isinstance(vlans, dict) or EVERYTHING_ELSE not in vlans:
            raise RuleError(f"host {host}: must be an object with the key {EVERYTHING_ELSE!r}")
        for mac, vlan in vlans.items():
            if not isinstance(vlan, int) or isinstance(vlan, bool) or not 1 <= vlan <= 4094:
                raise RuleError(f"host {host}: the VLAN of {mac[:20]!r} must be 1 to 4094")
    return {str(host): dict(vlans) for host, vlans in read.items()}


def tag_table(fabric: Fabric, tags: HostTags, addresses: Sequence[str]) -> NDArray[np.uint16]:
    """Return (hosts, addresses): the VLAN that each host puts on what it sends to each address."""
    table = np.empty((len(fabric.hosts), len(addresses)), dtype=np.uint16)
    for row, host in zip(table, fabric.hosts, strict=True):
        own = tags[host.name]
        other = own[EVERYTHING_ELSE]
        row[:] = [own.get(address, other) for address in addresses]
    return table
