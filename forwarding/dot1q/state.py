"""The forwarding state that the tables of 802.1Q switches make: what frames do by what was read.

What such a switch does with a frame is in ``core/forwarding/src/dot1q.rs``.
"""

from __future__ import annotations

from dataclasses import replace

from common.errors import RuleError
from forwarding.dot1q.model import L2Fabric
from forwarding.state import ForwardingState, links_of
from knotless_core import forwarding as core
from routing.graphs.channels import channels_of
from routing.vlans.host_tags import HostTags, tag_table
from topologies.numbering import mac_text

BROADCAST = mac_text(0xFFFFFFFFFFFF)


def state_of_dot1q(exported: L2Fabric, tags: HostTags | None = None) -> ForwardingState:
    """Return what the switches do with the unicasts and broadcasts of hosts.

    ``tags`` are the VLANs that hosts put on their frames; None: they send untagged. An address
    that nobody has told a host of goes where its broadcasts go, and is flooded as they are.

    Raises
    ------
    RuleError
        A VLAN or port has a number that fits no field.

    """
    fabric = exported.fabric
    channels = channels_of(fabric)
    links = links_of(fabric, channels)
    macs = [host.mac for host in fabric.hosts]
    try:
        found = core.of_dot1q(
            exported.switches,
            links.leaves,
            links.enters,
            links.hosts,
            macs,
            None if tags is None else tag_table(fabric, tags, [*macs, BROADCAST]),
        )
    except (OverflowError, ValueError) as error:
        raise RuleError(f"a number fits no field: {error}") from None
    return ForwardingState(fabric, channels, (), found)


def states_of_dot1q(exported: L2Fabric) -> dict[str, ForwardingState]:
    """Return what becomes of what hosts send ``untagged`` and, where they tag, ``tagged``.

    A host that does not tag where others do must not harm them, and is served as well. Frames of
    both kinds wait for each other: the ``tagged`` state, the first, has the dependencies of both.
    """
    untagged = state_of_dot1q(exported)
    if exported.tags is None:
        return {"untagged": untagged}
    tagged = replace(state_of_dot1q(exported, exported.tags), beside=(untagged,))
    return {"tagged": tagged, "untagged": untagged}
