"""Kinds of files that configure an 802.1Q switch, one module of ``targets/`` for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from knotless.base.plugins import Plugins
from knotless.forwarding.dot1q.model import L2Switch
from knotless.topologies.fabric import Fabric


@dataclass(frozen=True)
class Target:
    """One kind of file.

    ``suffix`` is what its name ends in, after the switch's name. ``write`` returns the text for a
    switch, ``read`` what such a text gives the switch of that name; ``read`` raises RuleError.
    """

    name: str
    suffix: str
    write: Callable[[Fabric, L2Switch], str]
    read: Callable[[Fabric, str, str], L2Switch]


@cache
def targets() -> Mapping[str, Target]:
    """Return the kinds of files by their suffix."""
    return {
        each.suffix: each for each in Plugins("knotless.forwarding.dot1q.targets", Target).values()
    }


def peers_of(fabric: Fabric, switch: str) -> dict[int, str]:
    """Return what each port leads to: a host (``h1``), or a port of another switch (``s2:3``)."""
    hosts = {port: host.name for port, host in fabric.hosts_at[switch].items()}
    return hosts | {
        port: f"{neighbour}:{p}" for port, (neighbour, p) in fabric.neighbours[switch].items()
    }
