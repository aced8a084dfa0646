"""A repeater hub with hosts: one half-duplex medium, which can only be simulated."""

from __future__ import annotations

from dataclasses import replace

from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request, assemble

CABLE_DELAY_US = 0.5
"""Delay of 100 m of cable, the maximum of 10BASE-T, at about 5 ns per metre."""


def build(request: Request) -> Fabric:
    """Return one hub with the given number of hosts."""
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
