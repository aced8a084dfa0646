"""Frames that hosts must not send: their switch must drop and count them."""

from __future__ import annotations

from collections.abc import Iterator

from scapy.layers.l2 import Dot1AD, Dot1Q
from scapy.packet import Packet

from knotless.cli.probes import Finding
from knotless.cli.probes._target import Target, marked, wait_for
from knotless.cli.probes.path import planned

COUNT_LIMIT_S = 1.5
"""Time until a drop is counted; Open vSwitch needs 200 ms."""
UNPLANNED = 4000
UNKNOWN_MAC = "02:ff:ff:ff:ff:fe"
RESERVED = "01:80:c2:00:00:0e"


def forgeries(target: Target) -> Iterator[tuple[str, Packet, bytes]]:
    """Yield (description, frame, marker), all from the first pair's source."""
    source, destination = target.pairs[0]
    vlans = [tag[0] for _, tag in planned(target, source, destination) if tag is not None]
    vlan = vlans[0] if vlans else target.plan.vlan_of(source.name)
    # If hosts tag, the planned tag is required, and a second one is not allowed.
    wrong = UNPLANNED if target.settings["tagging"] == "host" else vlan
    kinds: list[tuple[str, str, str, list[Packet]]] = [
        ("another host's MAC", destination.mac, destination.mac, []),
        ("an unknown MAC", UNKNOWN_MAC, destination.mac, []),
        (f"tagged with VLAN {wrong}", source.mac, destination.mac, [Dot1Q(vlan=wrong)]),
        (
            "another host's MAC, tagged with priority 7",
            *(destination.mac, destination.mac),
            [Dot1Q(vlan=0, prio=7)],
        ),
        (
            f"tagged twice, VLANs {vlan} and {vlan}",
            *(source.mac, destination.mac),
            [Dot1Q(vlan=vlan), Dot1Q(vlan=vlan)],
        ),
        (
            f"tagged twice, VLAN {vlan} and in it one of a provider (802.1ad)",
            *(source.mac, destination.mac),
            [Dot1Q(vlan=vlan), Dot1AD(vlan=vlan)],
        ),
        (f"to the reserved address {RESERVED}", source.mac, RESERVED, []),
    ]
    for what, sender, receiver, tags in kinds:
        yield (what, *marked(sender, receiver, *tags))


def probe(target: Target) -> Iterator[Finding]:
    """Send each forgery; it must appear on no link but the sender's, and be counted."""
    source, _ = target.pairs[0]
    sent = []
    with target.captured() as capture, target.sender(source) as sender:
        for what, frame, marker in forgeries(target):
            before = target.unforwarded(source)
            sender.send(frame)

            def counted(before: int = before) -> bool:
                return target.unforwarded(source) > before

            sent.append((what, marker, wait_for(counted, COUNT_LIMIT_S)))
    for what, marker, counted_drop in sent:
        links = {seen.link for seen in capture.marked_frames(marker)}
        beyond = sorted(links - {source.name})
        if beyond:
            text = f"was forwarded over {' '.join(beyond)}"
        elif not links:
            text = "never left the host: not tested"
        else:
            text = "dropped by the switch" + (" and counted" if counted_drop else ", NOT counted")
        good = not beyond and bool(links) and counted_drop
        yield Finding("forgery", f"{source.name}: {what}", good, text)
