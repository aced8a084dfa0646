"""The forwarding state of 802.1Q switches with given tables.

``core/forwarding/src/dot1q.rs`` defines what such a switch does with a frame.
"""

from __future__ import annotations

from dataclasses import replace

from knotless._core import forwarding as core
from knotless.base.errors import RuleError
from knotless.forwarding.dot1q.model import L2Fabric
from knotless.forwarding.state import ForwardingState, channel_ends_of
from knotless.routing.graphs.channels import channels_of
from knotless.routing.vlans.host_tags import HostTags, tag_table
from knotless.topologies.numbering import mac_text

BROADCAST = mac_text(0xFFFFFFFFFFFF)


def state_of_dot1q(exported: L2Fabric, tags: HostTags | None = None) -> ForwardingState:
    """Return the forwarding state for unicasts and broadcasts of hosts.

    ``tags`` are the VLAN tags that hosts add; None: they send untagged. A frame to an unknown
    address uses the VLAN of the host's broadcasts and is flooded like them.

    Raises
    ------
    RuleError
        The number of a VLAN or port is out of range.

    """
    fabric = exported.fabric
    channels = channels_of(fabric)
    ends = channel_ends_of(fabric, channels)
    macs = [host.mac for host in fabric.hosts]
    try:
        state = core.of_dot1q(
            exported.switches,
            ends.leaves,
            ends.enters,
            ends.hosts,
            macs,
            None if tags is None else tag_table(fabric, tags, [*macs, BROADCAST]),
        )
    except (OverflowError, ValueError) as error:
        raise RuleError(f"a number is out of range: {error}") from None
    return ForwardingState(fabric, channels, (), state)


def states_of_dot1q(exported: L2Fabric) -> dict[str, ForwardingState]:
    """Return the states for ``untagged`` frames and, if hosts tag, for ``tagged`` ones.

    A host that does not tag must be served without harm to those that do. Frames of both kinds
    can wait for each other: the ``tagged`` state, which is first, has the dependencies of both.
    """
    untagged = state_of_dot1q(exported)
    if exported.tags is None:
        return {"untagged": untagged}
    tagged = replace(state_of_dot1q(exported, exported.tags), concurrent=(untagged,))
    return {"tagged": tagged, "untagged": untagged}
