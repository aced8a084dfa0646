"""Multicast groups.

Any host may send to a group. Every member except the sender receives one copy; no other host
receives any. Frames to an undeclared group address go to all hosts, as on ordinary switches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from knotless.base.errors import PlanError
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import MAX_GROUPS, group_mac, mac_text

ALL = "all"
"""As the only member: all hosts of the fabric."""


@dataclass(frozen=True)
class MulticastGroup:
    """A group: its number (from 1), and the names of its members in the fabric's order."""

    number: int
    members: tuple[str, ...]

    @property
    def address(self) -> int:
        """The destination MAC address of the group."""
        return group_mac(self.number)


def groups_of(
    fabric: Fabric, requested: Mapping[int, Sequence[str]] | None
) -> tuple[MulticastGroup, ...]:
    """Return the groups of ``{number: members}``, in the order of their numbers.

    Parameters
    ----------
    fabric : Fabric
        The fabric whose hosts are members.
    requested : mapping of int to sequence of str, or None
        The names of the members of each group; ``["all"]`` are all hosts.

    Returns
    -------
    tuple of MulticastGroup
        The groups, their members in the order of the fabric.

    Raises
    ------
    PlanError
        A number is out of range, or the members are unknown, duplicate or none.

    Examples
    --------
    >>> from knotless.topologies import load
    >>> groups_of(load("ring,4"), {1: ["h3", "h1"]})
    (MulticastGroup(number=1, members=('h1', 'h3')),)

    """
    groups = []
    for number, members in sorted((requested or {}).items()):
        group = f"multicast group {number}"
        if not 1 <= number <= MAX_GROUPS:
            raise PlanError(f"{group}: groups are numbered from 1 to {MAX_GROUPS}")
        names = list(members)
        if names == [ALL]:
            names = [host.name for host in fabric.hosts]
        for name in names:
            if name not in fabric.host_index:
                raise PlanError(f"{group}: {fabric.name} has no host {name!r}")
        if not names or len(set(names)) != len(names):
            raise PlanError(f"{group}: name at least one member, each once, or {ALL!r} alone")
        names.sort(key=fabric.host_index.__getitem__)
        groups.append(MulticastGroup(number, tuple(names)))
    return tuple(groups)


def addresses(numbers: Iterable[int]) -> list[str]:
    """Return the MAC addresses of the groups with these numbers, in their order.

    >>> addresses([258, 1])
    ['03:00:00:00:00:01', '03:00:00:00:01:02']

    """
    return [mac_text(group_mac(number)) for number in sorted(numbers)]


def united(
    old: Iterable[MulticastGroup], new: Iterable[MulticastGroup]
) -> tuple[MulticastGroup, ...]:
    """Return the groups of both, by number; one that both have, has the ``new`` members."""
    by_number = {group.number: group for group in (*old, *new)}
    return tuple(by_number[number] for number in sorted(by_number))


def parse(texts: Iterable[str]) -> dict[int, list[str]]:
    """Parse texts such as ``1=h1,h2,h7`` or ``2=all``; return ``{number: members}``.

    Raises
    ------
    PlanError
        A text has another form, or a number occurs twice.

    Examples
    --------
    >>> parse(["1=h1,h2", "2=all"])
    {1: ['h1', 'h2'], 2: ['all']}

    """
    requested: dict[int, list[str]] = {}
    for text in texts:
        number, equals, members = text.partition("=")
        if not (equals and number.isdecimal() and len(number) < 10):
            raise PlanError(f"multicast {text!r}: must be NUMBER=HOST,HOST,... or NUMBER=all")
        if int(number) in requested:
            raise PlanError(f"multicast {text!r}: group {int(number)} is already declared")
        requested[int(number)] = [name.strip() for name in members.split(",")]
    return requested


def to_text(groups: Iterable[MulticastGroup]) -> str:
    """Return the groups as JSON: an object of ``"NUMBER": [MEMBER, ...]``."""
    return json.dumps({str(group.number): group.members for group in groups}, indent=1) + "\n"


def from_text(fabric: Fabric, text: str) -> tuple[MulticastGroup, ...]:
    """Parse the output of :func:`to_text`.

    Raises
    ------
    PlanError
        The text has another form, or does not fit ``fabric``.

    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not all(
        number.isdecimal() and len(number) < 10 and _are_names(members)
        for number, members in content.items()
    ):
        raise PlanError('must be an object of "NUMBER": [MEMBER, ...]')
    return groups_of(fabric, {int(number): members for number, members in content.items()})


def _are_names(members: object) -> bool:
    return isinstance(members, list) and all(isinstance(name, str) for name in members)
