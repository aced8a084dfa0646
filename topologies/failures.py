"""Fabrics with links missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from common.errors import FabricError
from topologies.fabric import Fabric, Link
from topologies.validate import validate


def without_links(fabric: Fabric, missing: Sequence[str]) -> Fabric:
    """Return ``fabric`` without some links, named ``s1:2-s2:3``, or ``s1-s2`` for all between two.

    Raises
    ------
    FabricError
        There is no such link, or without them some switch cannot be reached.

    """
    if not missing:
        return fabric
    gone: set[Link] = set()
    for name in missing:
        found = [link for link in fabric.links if name in _names(link)]
        if not found:
            raise FabricError(
                f"{fabric.name} has no link {name[:60]!r}; write one as s1:2-s2:3, or s1-s2"
            )
        gone.update(found)
    wounded = replace(
        fabric,
        name=f"{fabric.name} without {' '.join(missing)}"[:200],
        links=tuple(link for link in fabric.links if link not in gone),
    )
    validate(wounded)
    return wounded


def _names(link: Link) -> set[str]:
    a, b = f"{link.a}:{link.a_port}", f"{link.b}:{link.b_port}"
    return {f"{a}-{b}", f"{b}-{a}", f"{link.a}-{link.b}", f"{link.b}-{link.a}"}
