"""Frames that hosts send with tags that their switch does not admit, while hosts change their tags.

A host and its switch may be of different generations. What a generation alone drops at the switch
of the source is not counted, for example because it is dropped there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from knotless._core import forwarding as core
from knotless.forwarding.openflow.reader import ARP, BROADCAST, IPV4, Generation
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.routing.multicast import MulticastGroup
from knotless.routing.vlans.host_tags import EVERYTHING_ELSE
from knotless.topologies.fabric import Fabric, Host
from knotless.topologies.numbering import mac_text, mac_value

_switch_of = attrgetter("switch")


def refused_frames(
    fabric: Fabric,
    generations: Sequence[Generation],
    groups: Sequence[MulticastGroup],
) -> int:
    """Return the (source, destination) that some mixture drops at the switch of the source.

    Destinations are hosts, all hosts and the groups; generations are installed one after the
    other, so a host may send with the tags of a generation to rules of those before it that
    switches may still hold (:attr:`Generation.lag`), or of any later one. The result is 0 if hosts
    do not change their tags.
    """
    if all(generation.tags == generations[0].tags for generation in generations):
        return 0
    to = [(mac_value(host.mac), IPV4) for host in fabric.hosts]
    to += [(BROADCAST, ARP), *((group.address, IPV4) for group in groups)]
    return sum(
        _is_refused(switches, host, address, eth_type, generations)
        for host, switches in _with_switches(fabric, generations)
        for address, eth_type in to
        if address != mac_value(host.mac)
    )


def _with_switches(
    fabric: Fabric, generations: Sequence[Generation]
) -> Iterator[tuple[Host, list[core.Switch]]]:
    """Yield each host, and the rules of its switch in each generation.

    The rules of a switch are decoded once for all its hosts: that takes longer than all else.
    """
    by_switch = groupby(sorted(fabric.hosts, key=_switch_of), key=_switch_of)
    for name, hosts in by_switch:
        switches = [rules.rules.get(name, SwitchRules(())).parsed for rules in generations]
        yield from ((host, switches) for host in hosts)


def _is_refused(
    switches: Sequence[core.Switch],
    host: Host,
    address: int,
    eth_type: int,
    generations: Sequence[Generation],
) -> bool:
    def dropped(switch: core.Switch, vlan: int | None) -> bool:
        tags = [] if vlan is None else [vlan]
        return not switch.outputs(host.port, address, mac_value(host.mac), eth_type, tags)[0]

    vlans = [_vlan(host, address, generation) for generation in generations]
    alone = [dropped(own, vlan) for own, vlan in zip(switches, vlans, strict=True)]
    for sent, vlan in enumerate(vlans):
        for installed in range(max(0, sent - generations[sent].lag), len(generations)):
            if not (alone[sent] or alone[installed]) and dropped(switches[installed], vlan):
                return True
    return False


def _vlan(host: Host, address: int, generation: Generation) -> int | None:
    if generation.tags is None:
        return None
    tags = generation.tags[host.name]
    return tags.get(mac_text(address), tags[EVERYTHING_ELSE])
