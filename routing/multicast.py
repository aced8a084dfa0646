"""Multicast groups: which hosts get what is sent to a group's address.

Any host may send to a group, a member or not; every member but the sender gets one copy, and
nobody else any. A group address that nobody declared goes to all hosts, as on ordinary switches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from common.errors import PlanError
from topologies.fabric import Fabric
from topologies.numbering import MAX_GROUPS, group_mac

ALL = "all"
"""As the only member: every host of the fabric."""


@dataclass(frozen=True)
class MulticastGroup:
    """A group by its number (from 1) and its members, names of hosts in the fabric's order."""

    number: int
    members: tuple[str, ...]

    @property
    def address(self) -> int:
        """The destination address of frames to the group."""
        return group_mac(self.number)


def groups_of(
    fabric: Fabric, wanted: Mapping[int, Sequence[str]] | None
) -> tuple[MulticastGroup, ...]:
    """Return the groups of ``{number: members}``, in the order of their numbers.

    Raises
    ------
    PlanError
        A number that is out of range, or members that the fabric has not, none or one twice.

    """
    groups = []
    for number, members in sorted((wanted or {}).items()):
        where = f"multicast group {number}"
        if not 1 <= number <= MAX_GROUPS:
            raise PlanError(f"{where}: groups are numbered from 1 to {MAX_GROUPS}")
        names = list(members)
        if names == [ALL]:
            names = [host.name for host in fabric.hosts]
        for name in names:
            if name not in fabric.host_index:
                raise PlanError(f"{where}: {fabric.name} has no host {name!r}")
        if not names or len(set(names)) != len(names):
            raise PlanError(f"{where}: name each member once, one at least, or {ALL!r} alone")
        names.sort(key=fabric.host_index.__getitem__)
        groups.append(MulticastGroup(number, tuple(names)))
    return tuple(groups)


def parse(texts: Iterable[str]) -> dict[int, list[str]]:
    """Return ``{number: members}`` of texts such as ``1=h1,h2,h7`` or ``2=all``.

    Raises
    ------
    PlanError
        A text that is none of these, or a number that comes twice.

    """
    wanted: dict[int, list[str]] = {}
    for text in texts:
        number, equals, members = text.partition("=")
        if not (equals and number.isdecimal() and len(number) < 10):
            raise PlanError(f"multicast {text!r}: wanted NUMBER=HOST,HOST,... or NUMBER=all")
        if int(number) in wanted:
            raise PlanError(f"multicast {text!r}: group {int(number)} is declared already")
        wanted[int(number)] = [name.strip() for name in members.split(",")]
    return wanted


def to_text(groups: Iterable[MulticastGroup]) -> str:
    """Return the groups as JSON: an object of ``"NUMBER": [MEMBER, ...]``."""
    return json.dumps({str(group.number): group.members for group in groups}, indent=1) + "\n"


def from_text(fabric: Fabric, text: str) -> tuple[MulticastGroup, ...]:
    """Return the groups in what :func:`to_text` made.

    Raises
    ------
    PlanError
        It is no such text, or does not fit ``fabric``.

    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not all(
        number.isdecimal() and len(number) < 10 and _are_names(members)
        for number, members in content.items()
    ):
        raise PlanError('wanted an object of "NUMBER": [MEMBER, ...]')
    return groups_of(fabric, {int(number): members for number, members in content.items()})


def _are_names(members: object) -> bool:
    return isinstance(members, list) and all(isinstance(name, str) for name in members)
