"""Tagging by hosts: the VLAN in which each host's interface sends to each destination."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knotless.base.errors import RuleError
from knotless.base.model_limits import LAST_VLAN
from knotless.topologies.fabric import Fabric

HostTags = dict[str, dict[str, int]]
"""Host -> {destination MAC: VLAN}; :data:`EVERYTHING_ELSE` is the VLAN of all others, e.g.
broadcasts."""
EVERYTHING_ELSE = "default"
FILE = "tags.json"
"""The name of the file, in the same folder as the rules."""


def to_text(tags: HostTags) -> str:
    """Return ``tags`` as JSON text."""
    return json.dumps(tags, indent=1) + "\n"


def from_text(fabric: Fabric, text: str) -> HostTags:
    """Parse the output of :func:`to_text` for the hosts of ``fabric``.

    Raises
    ------
    RuleError
        The text is not JSON, a host is missing or unknown, or a VLAN is not 1 to 4094.

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
            if not isinstance(vlan, int) or isinstance(vlan, bool) or not 1 <= vlan <= LAST_VLAN:
                raise RuleError(f"host {host}: the VLAN of {mac[:20]!r} must be 1 to {LAST_VLAN}")
    return {str(host): dict(vlans) for host, vlans in read.items()}


def tag_table(fabric: Fabric, tags: HostTags, addresses: Sequence[str]) -> NDArray[np.uint16]:
    """Return the VLAN tag of each host towards each address, shape (hosts, addresses)."""
    table = np.empty((len(fabric.hosts), len(addresses)), dtype=np.uint16)
    for row, host in zip(table, fabric.hosts, strict=True):
        vlan_of = tags[host.name]
        other = vlan_of[EVERYTHING_ELSE]
        row[:] = [vlan_of.get(address, other) for address in addresses]
    return table
