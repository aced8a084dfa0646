"""The default routing engine of a fabric's family."""

from __future__ import annotations

from knotless.base.engine_name import AUTO_ENGINE
from knotless.topologies.fabric import Fabric

_ENGINES = {
    "clos3": "fattree",
    "cube": "dor",
    "dragonfly": "dragonfly",
    "dragonflyplus": "dragonflyplus",
    "fattree": "fattree",
    "fattree2": "fattree",
    "fattree3": "fattree",
    "fullmesh": "hyperx",
    "hyperx": "hyperx",
    "lsft": "lsft",
    "mesh": "dor",
    "polarfly": "sbp",
    "rail": "fattree",
    "ring": "dor",
    "slimfly": "sbp",
    "torus": "dor",
}


def default_engine(fabric: Fabric) -> str:
    """Return the engine for the fabric's family, or updown, which routes any fabric."""
    if fabric.family is None:
        return "updown"
    if fabric.family.options.get("twist"):
        return "cube"
    return _ENGINES.get(fabric.family.name, "updown")


def engine_for(fabric: Fabric, name: str) -> str:
    """Return ``name``, or the default engine of ``fabric`` if ``name`` is ``auto``.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> engine_for(load("torus,4,4"), "auto"), engine_for(load("torus,4,4"), "lash")
    ('dor', 'lash')

    """
    return default_engine(fabric) if name == AUTO_ENGINE else name
