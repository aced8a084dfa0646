"""Drained links and switches: they work, but routes shall not use them, for maintenance.

No route uses a drained link. A drained switch forwards nothing between its neighbours: routes use
only one of its links, which connects the hosts of the switch; of a switch without hosts, none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from knotless.topologies.fabric import Fabric, Link
from knotless.topologies.failures import Failures, hosts_by_part


@dataclass(frozen=True)
class Avoided:
    """The parts that routes avoid: all that has failed, and links that drained parts do not need.

    ``needed`` are drained parts without which some hosts could not reach each other: routes use
    them as if they were not drained.
    """

    failures: Failures
    needed: tuple[str, ...]


def avoided(fabric: Fabric, failures: Failures, drained: Sequence[str]) -> Avoided:
    """Return what routes avoid if these parts have failed or are drained.

    Drained parts are taken in the order of the fabric: links, then switches. A switch keeps the
    first of its links, by port, with which no host loses another one; links to switches that are
    not drained come first.
    """
    parts = Failures.from_names(fabric, drained)
    if not parts:
        return Avoided(failures, ())
    by_name = {link.name: link for link in fabric.links}
    together = hosts_by_part(fabric, failures)
    needed = []
    result = failures
    choices = [(name, iter([{by_name[name]}])) for name in parts.links]
    choices += [(name, _of_switch(fabric, failures, parts, name)) for name in parts.switches]
    for name, links_of_part in choices:
        for links in links_of_part:
            names = {link.name for link in links}
            tried = Failures.from_names(fabric, {*result.names, *names})
            if hosts_by_part(fabric, tried) == together:
                result = tried
                break
        else:
            needed.append(name)
    return Avoided(result, tuple(needed))


def _of_switch(
    fabric: Fabric, failures: Failures, drained: Failures, name: str
) -> Iterator[set[Link]]:
    """Yield the sets of links without which a switch forwards nothing for others."""
    dead = failures.dead_links(fabric)
    links = {
        (link.a_port if link.a == name else link.b_port): link
        for link in fabric.links
        if name in (link.a, link.b) and link not in dead
    }
    if not fabric.hosts_at[name]:
        yield set(links.values())
    busy = set(drained.switches)
    order = sorted(
        links, key=lambda port: (bool({links[port].a, links[port].b} & (busy - {name})), port)
    )
    for port in order:
        yield set(links.values()) - {links[port]}
