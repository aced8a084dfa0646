"""Failures: links and switches that must not carry frames, and what they leave of a fabric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from knotless.base.errors import FabricError
from knotless.topologies.fabric import Fabric, Link
from knotless.topologies.spec import WITHOUT
from knotless.topologies.validate import validate

FAILED = -1
"""The part of a switch that has failed."""


@dataclass(frozen=True)
class Failures:
    """The links and switches of a fabric that must not carry frames.

    Two values with the same failures are equal: links are named by :attr:`Link.name`, and all
    names are in the order of the fabric. Make one with :meth:`from_names`.

    Attributes
    ----------
    links : tuple of str
        The names of links, ``s1:2-s2:3``.
    switches : tuple of str
        The names of switches.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> Failures.from_names(load("ring,4"), ["s3", "s2-s1"])
    Failures(links=('s1:2-s2:3',), switches=('s3',))

    """

    links: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()

    @classmethod
    def from_names(cls, fabric: Fabric, names: Iterable[str]) -> Failures:
        """Return the failures with these names.

        ``s1:2-s2:3`` is a link, ``s1-s2`` all links between two switches, ``s5`` a switch.

        Raises
        ------
        FabricError
            A name is unknown, or is that of a switch as well as that of a link, or of links between
            different switches.

        """
        links: set[Link] = set()
        switches: set[str] = set()
        for name in names:
            matches = fabric.link_names.find(name, FabricError)
            if name in fabric.switch_index:
                if matches:
                    raise FabricError(
                        f"{fabric.name}: {name[:60]!r} is a switch and a link; write the link with"
                        " its ports, such as s1:2-s2:3"
                    )
                switches.add(name)
            elif matches:
                links.update(matches)
            else:
                raise FabricError(
                    f"{fabric.name} has no link or switch {name[:60]!r}; write a link as s1:2-s2:3"
                    " or s1-s2, a switch as s5, each by itself"
                )
        # Nothing has failed most of the time, and then nobody searches a large fabric.
        return cls(
            tuple(link.name for link in fabric.links if link in links) if links else (),
            tuple(s.name for s in fabric.switches if s.name in switches) if switches else (),
        )

    def __bool__(self) -> bool:
        """Return whether anything has failed."""
        return bool(self.links or self.switches)

    @property
    def names(self) -> tuple[str, ...]:
        """All names: links, then switches."""
        return self.links + self.switches

    def within(self, fabric: Fabric) -> Failures:
        """Return the failures of parts that ``fabric`` has, in its order."""
        links, switches = set(self.links), set(self.switches)
        return Failures(
            tuple(link.name for link in fabric.links if link.name in links),
            tuple(switch.name for switch in fabric.switches if switch.name in switches),
        )

    def dead_links(self, fabric: Fabric) -> set[Link]:
        """Return the links that carry no frames: those that failed, and those of dead switches."""
        dead = set(self.switches)
        failed = set(self.links)
        return {
            link for link in fabric.links if link.a in dead or link.b in dead or link.name in failed
        }


NO_FAILURES = Failures()
"""No failures: the fabric is intact."""


def parts(fabric: Fabric, failures: Failures) -> list[int]:
    """Return the part to which each switch belongs; switches of different parts are not connected.

    Parameters
    ----------
    fabric : Fabric
        The intact fabric.
    failures : Failures
        What carries no frames.

    Returns
    -------
    list of int
        The part of each switch, numbered from 0 in the order of their first switches, or
        :data:`FAILED` if the switch has failed.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> ring = load("ring,4")
    >>> parts(ring, Failures.from_names(ring, ["s1-s2", "s3"]))
    [0, 1, -1, 0]

    """
    dead = failures.dead_links(fabric)
    beyond: dict[str, list[str]] = {switch.name: [] for switch in fabric.switches}
    for link in fabric.links:
        if link not in dead:
            beyond[link.a].append(link.b)
            beyond[link.b].append(link.a)
    part = dict.fromkeys(failures.switches, FAILED)
    count = 0
    for switch in fabric.switches:
        if switch.name in part:
            continue
        part[switch.name] = count
        waiting = [switch.name]
        while waiting:
            for neighbour in beyond[waiting.pop()]:
                if neighbour not in part:
                    part[neighbour] = count
                    waiting.append(neighbour)
        count += 1
    return [part[switch.name] for switch in fabric.switches]


def host_parts(fabric: Fabric, failures: Failures) -> list[int]:
    """Return the part of each host; a host on a failed switch is a part of its own."""
    of_switch = parts(fabric, failures)
    alone = len(fabric.switches)
    part_of_host = []
    for host in fabric.hosts:
        part = of_switch[fabric.switch_index[host.switch]]
        alone += part == FAILED
        part_of_host.append(alone if part == FAILED else part)
    return part_of_host


def hosts_by_part(fabric: Fabric, failures: Failures) -> list[list[str]]:
    """Return the names of the hosts of each part, in the order of their first hosts.

    A host on a failed switch is a part of its own.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> ring = load("ring,4")
    >>> hosts_by_part(ring, Failures.from_names(ring, ["s1-s2", "s3"]))
    [['h1', 'h4'], ['h2'], ['h3']]

    """
    names: dict[int, list[str]] = {}
    for host, part in zip(fabric.hosts, host_parts(fabric, failures), strict=True):
        names.setdefault(part, []).append(host.name)
    return list(names.values())


def pairs_apart(by_part: Sequence[Sequence[str]]) -> int:
    """Return the number of ordered pairs of hosts that are in different parts."""
    return sum(map(len, by_part)) ** 2 - sum(len(names) ** 2 for names in by_part)


def components(fabric: Fabric, failures: Failures) -> Iterator[Fabric]:
    """Yield the connected fabrics with hosts that remain, in the order of their first switches.

    Parameters
    ----------
    fabric : Fabric
        The intact fabric.
    failures : Failures
        What carries no frames.

    Yields
    ------
    Fabric
        The switches, hosts and links of one part, with their names, ports and addresses.

    """
    part = dict(zip(fabric.switch_index, parts(fabric, failures), strict=True))
    dead = failures.dead_links(fabric)
    for number in range(max(part.values(), default=FAILED) + 1):
        hosts = tuple(host for host in fabric.hosts if part[host.switch] == number)
        if hosts:
            yield replace(
                fabric,
                switches=tuple(switch for switch in fabric.switches if part[switch.name] == number),
                hosts=hosts,
                links=tuple(
                    link for link in fabric.links if link not in dead and part[link.a] == number
                ),
                grid=None,
            )


def usable(fabric: Fabric, failures: Failures) -> Fabric:
    """Return what packets can use of ``fabric``: all switches and hosts, without dead links."""
    dead = failures.dead_links(fabric)
    if not dead:
        return fabric
    return replace(fabric, links=tuple(link for link in fabric.links if link not in dead))


def without_links(fabric: Fabric, missing: Sequence[str]) -> Fabric:
    """Return a fabric without some of its links.

    Parameters
    ----------
    fabric : Fabric
        The fabric, which stays as it is.
    missing : sequence of str
        Names of links: ``s1:2-s2:3``; ``s1-s2`` names all between two switches.

    Returns
    -------
    Fabric
        The degraded fabric, validated. Its name says what it lacks.

    Raises
    ------
    FabricError
        A link does not exist, or the remaining fabric is not connected.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> degraded = without_links(load("ring,4"), ["s1-s2"])
    >>> degraded.name, len(degraded.links)
    ('ring,4 without s1-s2', 3)

    """
    if not missing:
        return fabric
    failures = Failures.from_names(fabric, missing)
    if failures.switches:
        raise FabricError(f"{failures.switches[0]} is a switch; only links can be missing")
    name = f"{fabric.name}{WITHOUT}{' '.join(missing)}"[:200]
    degraded = replace(usable(fabric, failures), name=name)
    validate(degraded)
    return degraded
