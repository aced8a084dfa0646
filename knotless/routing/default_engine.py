"""The family of a fabric, and the default routing engine of that family."""

from __future__ import annotations

from dataclasses import replace

from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.errors import SpecError
from knotless.topologies.fabric import Fabric
from knotless.topologies.family import Family, Request
from knotless.topologies.spec import build, parse

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
    """Return the family of ``fabric`` with its sizes and options, or None if it has none.

    The fabric's name is parsed as a spec. The fabric belongs to that family if its switches,
    hosts and links equal those of the spec; rates and delays are ignored.
    """
    try:
        family, request = parse(fabric.name)
        same = _bare(build(fabric.name)) == _bare(fabric)
    except SpecError:
        return None
    return (family, request) if same else None


def default_engine(fabric: Fabric) -> str:
    """Return the engine for the fabric's family, or updown, which routes any fabric."""
    family = family_of(fabric)
    return _ENGINES.get(family[0].name, "updown") if family else "updown"


def engine_for(fabric: Fabric, name: str) -> str:
    """Return ``name``, or the default engine of ``fabric`` if ``name`` is ``auto``.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> engine_for(load("torus,4,4"), "auto"), engine_for(load("torus,4,4"), "lash")
    ('dor', 'lash')

    """
    return default_engine(fabric) if name == AUTO_ENGINE else name


def _bare(fabric: Fabric) -> tuple[object, ...]:
    """Return the switches, host ports and links, without rates, delays and addresses."""
    hosts = [(host.name, host.switch, host.port) for host in fabric.hosts]
    links = [replace(link, rate_mbps=0.0, delay_us=0.0) for link in fabric.links]
    return fabric.switches, hosts, links
