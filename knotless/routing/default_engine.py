"""The default routing engine of a fabric's family."""

from __future__ import annotations

from knotless.base.engine_name import AUTO_ENGINE
from knotless.topologies.fabric import Fabric

_ENGINES = {
    "fattree": "fattree",
    "fattree2": "fattree",
    "fattree3": "fattree",
    "lsft": "lsft",
    "mesh": "dor",
    "ring": "dor",
    "torus": "dor",
}


def default_engine(fabric: Fabric) -> str:
    """Return the engine for the fabric's family, or updown, which routes any fabric."""
    return _ENGINES.get(fabric.family.name, "updown") if fabric.family else "updown"


def engine_for(fabric: Fabric, name: str) -> str:
    """Return ``name``, or the default engine of ``fabric`` if ``name`` is ``auto``.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> engine_for(load("torus,4,4"), "auto"), engine_for(load("torus,4,4"), "lash")
    ('dor', 'lash')

    """
    return default_engine(fabric) if name == AUTO_ENGINE else name
