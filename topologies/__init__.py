"""Fabrics: what they are, the families of them, and their files.

Only the standard library is imported here, because Mininet's own interpreter runs this
package too (:mod:`topologies.mn`).
"""

from __future__ import annotations

from common.errors import FabricError, KnotlessError, SpecError
from topologies.fabric import Fabric, Grid, Host, Link, Switch
from topologies.formats.files import looks_like_file, read
from topologies.spec import build

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

    Raises
    ------
    SpecError
        The spec cannot be understood or built.
    FabricError
        The file cannot be read, or contradicts itself.

    """
    return read(text) if looks_like_file(text) else build(text)
