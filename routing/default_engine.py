"""The family that a fabric is of, whole, and the routing engine that is made for it."""

from __future__ import annotations

from dataclasses import replace

from common.errors import SpecError
from topologies.fabric import Fabric
from topologies.family import Family, Request
from topologies.spec import build, parse

NATIVE = "native"
"""As an engine's name: the engine made for the fabric's family."""
_ENGINES = {
    "fattree": "fattree",
    "fattree2": "fattree",
    "fattree3": "fattree",
    "lsft": "lsft",
    "mesh": "dor",
    "ring": "dor",
    "torus": "dor",
}


def family_of(fabric: Fabric) -> tuple[Family, Request] | None:
    """Return the family of ``fabric`` and its sizes and options, None when it is of none.

    The fabric's name says what it claims to be; its switches, hosts and links are
    compared with that one's, rates and delays aside.
    """
    try:
        family, request = parse(fabric.name)
        same = _bare(build(fabric.name)) == _bare(fabric)
    except SpecError:
        return None
    return (family, request) if same else None


def native_engine(fabric: Fabric) -> str:
    """Return the engine made for the fabric's family; updown, which routes any, for others."""
    found = family_of(fabric)
    return _ENGINES.get(found[0].name, "updown") if found else "updown"


def engine_for(fabric: Fabric, name: str) -> str:
    """Return the name of an engine: what ``native`` means for the fabric, others as they are."""
    return native_engine(fabric) if name == NATIVE else name


def _bare(fabric: Fabric) -> tuple[object, ...]:
    """Return what must be equal for two fabrics to be wired alike."""
    hosts = [(host.name, host.switch, host.port) for host in fabric.hosts]
    links = [replace(link, rate_mbps=0.0, delay_us=0.0) for link in fabric.links]
    return fabric.switches, hosts, links
