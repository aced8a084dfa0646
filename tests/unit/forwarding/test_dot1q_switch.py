"""Forwarding of a frame by one 802.1Q switch, port by port."""

from __future__ import annotations

import pytest

from knotless.forwarding.dot1q.model import L2Fabric, L2Port, L2Switch
from knotless.forwarding.dot1q.state import state_of_dot1q
from knotless.topologies import load

UNTAGGED = 0
FABRIC = load("flat,4")
UNKNOWN, ASIDE, _, KNOWN = (host.mac for host in FABRIC.hosts)
SWITCH = L2Switch(
    "s1",
    (
        L2Port(1, 2, (2, 3), ()),
        L2Port(2, 3, (3,), ()),
        L2Port(3, None, (), (2, 3)),
        L2Port(4, None, (), (2,)),
    ),
    {2: {KNOWN: 3}, 3: {KNOWN: 1, ASIDE: 4}},
)


def sent(port: int, tag: int, mac: str | None) -> set[tuple[int, int]]:
    """The copies (port, tag) of a frame that the host at ``port`` sends to ``mac``, or to all."""
    tags = {host.name: {"default": tag} for host in FABRIC.hosts}
    state = state_of_dot1q(L2Fabric(FABRIC, (SWITCH,), None), tags)
    to = {host.mac: host.name for host in FABRIC.hosts}
    name = f"h{port}"
    hops = (state.flood(name) if mac is None else state.trace(name, to[mac])).hops
    copies = {(FABRIC.hosts[hop.channel - len(state.channels)].port, hop.label) for hop in hops}
    assert len(copies) == len(hops)
    assert {hop.priority for hop in hops} <= {0}
    return copies


@pytest.mark.parametrize(
    ("port", "tag", "mac", "copies"),
    [
        # Untagged: the PVID's VLAN, by its table; dropped where there is no PVID.
        (1, UNTAGGED, KNOWN, {(3, 2)}),
        (2, UNTAGGED, KNOWN, {(1, UNTAGGED)}),
        (3, UNTAGGED, KNOWN, set()),
        # Tagged: where the port is a member.
        (1, 3, None, {(2, UNTAGGED), (3, 3)}),
        (2, 2, None, set()),
        (4, 3, None, set()),
        (1, 4094, None, set()),
        # Flooding, never back.
        (3, 2, UNKNOWN, {(1, UNTAGGED), (4, 2)}),
        (4, 2, None, {(1, UNTAGGED), (3, 2)}),
        # The port that it came by, and a port that is no member.
        (3, 2, KNOWN, set()),
        (3, 3, ASIDE, set()),
    ],
)
def test_one_switch(port: int, tag: int, mac: str | None, copies: set[tuple[int, int]]) -> None:
    assert sent(port, tag, mac) == copies
