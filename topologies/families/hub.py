"""A repeater hub and its hosts: one half-duplex medium, which can be simulated only."""

from __future__ import annotations

from dataclasses import replace

from common.errors import SpecError
from topologies.fabric import Fabric
from topologies.family import Family, Request, assemble

CABLE_DELAY_US = 0.5
"""Of 100 m of cable, the longest of 10BASE-T: about 5 ns a metre."""


def build(request: Request) -> Fabric:
    """Return one hub with as many hosts as the spec says."""
    (hosts,) = request.sizes
    if hosts < 1:
        raise SpecError(f"{request.name}: at least 1 host is needed, not {hosts}")
    fabric = assemble(request, [hosts], [])
    return replace(fabric, switches=tuple(replace(s, hub=True) for s in fabric.switches))


FAMILY = Family(
    name="hub",
    usage="hub,N",
    summary="a repeater hub with N hosts, half duplex (simulated only)",
    sizes=(1, 1),
    build=build,
    hosts=False,
    default_delay_us=CABLE_DELAY_US,
)
