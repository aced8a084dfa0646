"""The union of two fabrics: what exists while one of them is changed to the other. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import chain

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric, Host, Link, Switch
from knotless.topologies.numbering import mac_value

Part = Switch | Host | Link


def union(old: Fabric, new: Fabric) -> Fabric:
    """Return the fabric with all switches, hosts and links of two fabrics, those of ``new`` first.

    A part that both have is as in ``new``: rates, delays and IP addresses may differ.

    Parameters
    ----------
    old, new : Fabric
        The fabrics before and after a change.

    Returns
    -------
    Fabric
        The union; ``new`` itself if ``old`` has nothing else.

    Raises
    ------
    FabricError
        The same name, dpid, address or port belongs to different parts, such as a host that has
        moved: both cannot exist at the same time.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> from knotless.topologies.failures import without_links
    >>> ring = load("ring,4")
    >>> len(union(ring, without_links(ring, ["s1-s2"])).links)
    4

    """
    gone = removed(old, new)
    if not gone:
        return new
    claimed = {claim: part for part in parts_of(new) for claim in _claims(part)}
    for part in gone:
        for claim in _claims(part):
            if (other := claimed.get(claim)) is not None:
                raise FabricError(
                    f"{claim} belongs to {described(part)} now, and to {described(other)} in the"
                    " new fabric; reload without both first, then add the new one"
                )
    return replace(
        new,
        switches=(*new.switches, *(part for part in gone if isinstance(part, Switch))),
        hosts=(*new.hosts, *(part for part in gone if isinstance(part, Host))),
        links=(*new.links, *(part for part in gone if isinstance(part, Link))),
        grid=None,
    )


def removed(old: Fabric, new: Fabric) -> list[Part]:
    """Return the parts of ``old`` that ``new`` does not have."""
    if old is new:
        return []
    kept = {_identity(part) for part in parts_of(new)}
    return [part for part in parts_of(old) if _identity(part) not in kept]


def hosts_of_both(old: Fabric, new: Fabric) -> frozenset[str]:
    """Return the names of the hosts that two fabrics have, at the same port."""
    of_old = {_identity(host) for host in old.hosts}
    return frozenset(host.name for host in new.hosts if _identity(host) in of_old)


def parts_of(fabric: Fabric) -> Iterator[Part]:
    """Yield the switches, hosts and links of a fabric."""
    yield from chain(fabric.switches, fabric.hosts, fabric.links)


def described(part: Part) -> str:
    """Return what a part is, and where: ``host h1 at s1:1``."""
    match part:
        case Switch():
            return f"switch {part.name} (dpid {part.dpid})"
        case Host():
            return f"host {part.name} at {part.switch}:{part.port}"
        case Link():
            return f"link {part.name}"


def _identity(part: Part) -> Hashable:
    match part:
        case Switch():
            return part
        case Host():
            return part.name, mac_value(part.mac), part.switch, part.port
        case Link():
            return frozenset({(part.a, part.a_port), (part.b, part.b_port)})


def _claims(part: Part) -> Iterator[str]:
    """Yield what only one part of a fabric can have."""
    match part:
        case Switch():
            yield f"the name {part.name}"
            yield f"dpid {part.dpid}"
        case Host():
            yield f"the name {part.name}"
            yield f"MAC {part.mac.lower()}"
            yield f"port {part.port} of {part.switch}"
        case Link():
            yield f"port {part.a_port} of {part.a}"
            yield f"port {part.b_port} of {part.b}"
