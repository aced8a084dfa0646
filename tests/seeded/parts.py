"""Parts of a fabric that a reload may leave: they stay connected, and keep their addresses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric, Link
from knotless.topologies.validate import validate

_MOST = 2
"""Parts without a link, and as many without two."""


def parts_of(fabric: Fabric) -> tuple[Fabric, ...]:
    """Return the fabric without some links, and without the switch of the last host.

    Of several controllers, no more than one switch may come or go at a time.
    """
    links = fabric.links
    lacking = ({link} for link in (*links[:1], *links[len(links) // 2 :]))
    pairs = ({a, b} for a, b in zip(links, links[len(links) // 2 :], strict=False))
    parts = [*islice(_connected(fabric, lacking), _MOST), *islice(_connected(fabric, pairs), _MOST)]
    parts += _connected(fabric, [()], gone=fabric.hosts[-1].switch)
    return tuple(replace(each, name=f"part-{number}") for number, each in enumerate(parts, 1))


def _connected(
    fabric: Fabric, lacking: Iterable[Iterable[Link]], gone: str = ""
) -> Iterator[Fabric]:
    """Yield the fabric without some links and a switch, each time that it stays connected."""
    for links in lacking:
        part = replace(
            fabric,
            grid=None,
            switches=tuple(one for one in fabric.switches if one.name != gone),
            hosts=tuple(one for one in fabric.hosts if one.switch != gone),
            links=tuple(
                one for one in fabric.links if one not in links and gone not in (one.a, one.b)
            ),
        )
        try:
            validate(part)
        except FabricError:
            continue
        yield part
