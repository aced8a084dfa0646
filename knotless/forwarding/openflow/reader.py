"""The forwarding state defined by the OpenFlow rules of the switches.

Rules of other programs can be read as well. Rules whose match cannot be followed are skipped and
reported, and so are other errors in the rules that packets meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knotless._core import forwarding as core
from knotless.base.errors import RuleError
from knotless.forwarding.openflow.compiled import CompiledRules
from knotless.forwarding.openflow.rules import FabricRules, SwitchRules
from knotless.forwarding.openflow.written import WrittenRules
from knotless.forwarding.state import ForwardingState, channel_ends_of, members_of
from knotless.routing.graphs.channels import channels_of
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans.host_tags import HostTags, tag_table
from knotless.topologies.fabric import Fabric, known_ips
from knotless.topologies.numbering import mac_text, mac_value

BROADCAST = 0xFFFFFFFFFFFF
IPV4, ARP = 0x0800, 0x0806
MAX_GENERATIONS = 255


@dataclass(frozen=True)
class Generation:
    """The rules of all switches, and the VLAN tags that hosts add; None: they send untagged.

    ``lag``: while some switch holds them, others may still hold any of so many generations before,
    but no older ones. It is 1 if all had confirmed the one before when these were sent.
    """

    rules: FabricRules
    tags: HostTags | None = None
    lag: int = 1


def state_of_rules(
    fabric: Fabric,
    rules: FabricRules,
    groups: Sequence[MulticastGroup] = (),
    tags: HostTags | None = None,
    *,
    any_address: bool = True,
) -> ForwardingState:
    """Return the forwarding state of ``rules``. A switch without rules drops everything.

    Hosts send to each other and to all. With ``any_address``, they also send to every class of
    addresses that rules tell apart and no host has: packets for these are expected nowhere, but
    wait on their way like others.
    Hosts send with their own addresses, also inside of ARP frames and IPv4 packets, or from
    0.0.0.0. ``groups`` are the multicast groups to which hosts send. ``tags`` are the VLAN tags
    that hosts add; None: they send untagged.

    Raises
    ------
    RuleError
        A rule has a number out of range, a switch with rules is not in the fabric, or rules
        distinguish too many kinds of packets.

    """
    flooding = _flooding(fabric, rules)
    return _state(fabric, [Generation(flooding, tags)], groups, any_address=any_address)


def state_of_generations(
    fabric: Fabric,
    generations: Sequence[Generation],
    groups: Sequence[MulticastGroup] = (),
) -> ForwardingState:
    """Return the forwarding state of all mixtures that occur while rules are changed.

    ``generations`` are installed one after the other, in this order. A switch takes all rules of
    a generation at once, at any time. Hosts change their tags in the same way. So a packet that has
    met the rules of a generation meets none that is older by more than its :attr:`Generation.lag`.
    In the state, a packet takes any one of the sets of hops that the rules of the possible
    generations give; it is delivered if every choice delivers it. Hosts also send to addresses that
    no host has, as in :func:`state_of_rules`. A packet that its first switch drops, or that is sent
    to a port behind which nothing is, does not count as lost (``core.lost``).

    Raises
    ------
    RuleError
        As :func:`state_of_rules`, or there are more than :data:`MAX_GENERATIONS`.

    """
    return _state(fabric, generations, groups, changing=True, any_address=True)


def state_to_replay(fabric: Fabric, generations: Sequence[Generation]) -> ForwardingState:
    """Return what switches do by each of some generations, for :class:`simulation.Replay`.

    A packet may meet any generation after any other. Raises RuleError as
    :func:`state_of_generations`.
    """
    return _state(fabric, generations, (), replayed=True)


def _state(
    fabric: Fabric,
    generations: Sequence[Generation],
    groups: Sequence[MulticastGroup],
    *,
    changing: bool = False,
    replayed: bool = False,
    any_address: bool = False,
) -> ForwardingState:
    for rules in (generation.rules for generation in generations):
        for name in rules:
            if name not in fabric.switch_index:
                raise RuleError(
                    f"there are rules for {name!r}, which is not a switch of {fabric.name}"
                )
    names = tuple(switch.name for switch in fabric.switches)
    channels = channels_of(fabric)
    ends = channel_ends_of(fabric, channels)
    members = members_of(fabric, groups)
    addresses = [(BROADCAST, ARP), *((group.address, IPV4) for group in groups)]
    try:
        state = core.of_rules(
            [_parsed(generation.rules, names) for generation in generations],
            ends.leaves,
            ends.enters,
            ends.hosts,
            [mac_value(host.mac) for host in fabric.hosts],
            known_ips(fabric),
            [(*address, receivers) for address, receivers in zip(addresses, members, strict=True)],
            _tag_tables(fabric, generations, [address for address, _ in addresses]),
            [min(generation.lag, MAX_GENERATIONS) for generation in generations],
            changing,
            replayed,
            any_address,
        )
    except OverflowError as error:
        raise RuleError(f"a number in a rule is out of range: {error}") from None
    except ValueError as error:
        raise RuleError(str(error)) from None
    silent = tuple(
        name for name in names if any(name not in generation.rules for generation in generations)
    )
    several = changing or replayed
    return ForwardingState(fabric, channels, tuple(groups), state, silent, changing=several)


def _flooding(fabric: Fabric, rules: FabricRules) -> FabricRules:
    """Return rules in which others' that send to all ports name the ports of the fabric."""
    may_flood = rules.others if isinstance(rules, WrittenRules) else rules
    if isinstance(rules, CompiledRules) or not any(held.floods for held in may_flood.values()):
        return rules
    return {
        name: held.flooding({*fabric.hosts_at[name], *fabric.neighbours[name]})
        if name in fabric.switch_index
        else held
        for name, held in rules.items()
    }


def _parsed(rules: FabricRules, names: tuple[str, ...]) -> list[core.Switch]:
    if isinstance(rules, CompiledRules) and rules.names == names:
        return rules.parsed
    nothing = SwitchRules(())
    if isinstance(rules, WrittenRules):
        return [rules.parsed.get(name) or rules.others.get(name, nothing).parsed for name in names]
    return [rules.get(name, nothing).parsed for name in names]


def _tag_tables(
    fabric: Fabric, generations: Sequence[Generation], addresses: Sequence[int]
) -> list[NDArray[np.uint16]]:
    """Return the VLAN of each host towards each host and address, 0 for none, by generation."""
    if all(generation.tags is None for generation in generations):
        return []
    to = [*(host.mac for host in fabric.hosts), *map(mac_text, addresses)]
    untagged = np.zeros((len(fabric.hosts), len(to)), dtype=np.uint16)
    return [
        untagged if generation.tags is None else tag_table(fabric, generation.tags, to)
        for generation in generations
    ]
