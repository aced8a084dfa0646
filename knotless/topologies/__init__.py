"""Fabrics, topology families and fabric files.

This package imports only the standard library, and modules of ``base`` that do the same, because
it also runs in Mininet's Python interpreter (:mod:`topologies.mn`).
"""

from __future__ import annotations

from knotless.base.errors import FabricError, KnotlessError, SpecError
from knotless.topologies.fabric import Fabric, Grid, Host, Link, Switch
from knotless.topologies.formats.files import looks_like_file, read
from knotless.topologies.formats.graphs import TOPOHUB, from_topohub
from knotless.topologies.spec import build

__all__ = [
    "Fabric",
    "FabricError",
    "Grid",
    "Host",
    "KnotlessError",
    "Link",
    "SpecError",
    "Switch",
    "load",
]


def load(text: str) -> Fabric:
    """Return the fabric that ``text`` names: a spec (``torus,4,4``) or the path of a file.

    Parameters
    ----------
    text : str
        A spec, ``FAMILY,SIZE..,option=VALUE..``; ``topohub:GROUP/NAME``, if the package topohub is
        installed; or a path, which has a ``/`` or one of the suffixes in
        :data:`knotless.topologies.formats.files.SUFFIXES`.

    Returns
    -------
    Fabric
        The fabric, validated.

    Raises
    ------
    SpecError
        The spec cannot be parsed or built.
    FabricError
        The file cannot be read, or the fabric is inconsistent.

    Examples
    --------
    >>> fabric = load("torus,4,4,hosts=2")
    >>> len(fabric.switches), len(fabric.hosts), len(fabric.links)
    (16, 32, 32)
    >>> load("tours,4,4")
    Traceback (most recent call last):
        ...
    knotless.base.errors.SpecError: tours,4,4: there is no family 'tours'; did you mean 'torus'?

    """
    if text.startswith(TOPOHUB):
        return from_topohub(text)
    return read(text) if looks_like_file(text) else build(text)
