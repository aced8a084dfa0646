"""The forwarding state of a fabric as its switches' OpenFlow rules say it.

It reads any rules, ours or not. Rules that match what cannot be followed are left out and named;
so is whatever else is found wrong with the rules that packets meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from common.errors import RuleError
from forwarding.openflow.compiled import CompiledRules
from forwarding.openflow.rules import FabricRules, SwitchRules
from forwarding.state import ForwardingState, links_of, members_of
from knotless_core import forwarding as core
from routing.graphs.channels import channels_of
from routing.multicast import MulticastGroup
from routing.vlans.host_tags import HostTags, tag_table
from topologies.fabric import Fabric
from topologies.numbering import mac_text, mac_value

BROADCAST = 0xFFFFFFFFFFFF
IPV4, ARP = 0x0800, 0x0806


def state_of_rules(
    fabric: Fabric,
    rules: FabricRules,
    groups: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
) -> ForwardingState:
    """Return what the switches do by ``rules``. One without rules drops everything.

    ``groups`` are the multicast groups that hosts send to. ``tags`` are the VLANs that hosts put
    on their frames; None: they send untagged.

    Raises
    ------
    RuleError
        A rule has a number that fits no field, there are rules for a switch that the fabric does
        not have, or a switch tells too many kinds of packets apart.

    """
    for name in rules:
        if name not in fabric.switch_index:
            raise RuleError(f"there are rules for {name!r}, a switch that {fabric.name} has not")
    channels = channels_of(fabric)
    links = links_of(fabric, channels)
    members = members_of(fabric, groups)
    addresses = [(BROADCAST, ARP), *((group.address, IPV4) for group in groups)]
    to = [*(host.mac for host in fabric.hosts), *(mac_text(address) for address, _ in addresses)]
    nothing = SwitchRules(())
    in_order = (rules.get(switch.name, nothing) for switch in fabric.switches)
    try:
        found = core.of_rules(
            rules.core if isinstance(rules, CompiledRules) else in_order,
            links.leaves,
            links.enters,
            links.hosts,
            [mac_value(host.mac) for host in fabric.hosts],
            [(*address, of) for address, of in zip(addresses, members, strict=True)],
            None if tags is None else tag_table(fabric, tags, to),
        )
    except OverflowError as error:
        raise RuleError(f"a number of a rule fits no field: {error}") from None
    except ValueError as error:
        raise RuleError(str(error)) from None
    silent = tuple(switch.name for switch in fabric.switches if switch.name not in rules)
    return ForwardingState(fabric, channels, tuple(groups), found, silent)
