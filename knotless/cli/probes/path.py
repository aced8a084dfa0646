"""The path of a frame, hop by hop, and its VLAN tag on each link, compared with the plan."""

from __future__ import annotations

from collections.abc import Iterator

from scapy.layers.l2 import Dot1Q
from scapy.packet import Packet

from knotless.cli.probes import Finding
from knotless.cli.probes._target import Seen, Target, marked
from knotless.topologies.fabric import Host

Tag = tuple[int, int] | None
"""(VLAN, priority) of a frame's only tag; None without a tag."""


def tag_of(packet: Packet) -> Tag:
    """Return the tag; for two tags return VLAN -1, which no plan has."""
    tags = [layer for layer in packet.iterpayloads() if isinstance(layer, Dot1Q)]
    if len(tags) > 1:
        return (-1, len(tags))
    return (int(tags[0].vlan), int(tags[0].prio)) if tags else None


def planned(target: Target, source: Host, destination: Host) -> list[tuple[str, Tag]]:
    """Return the links that a frame takes, and its tag on each."""
    plan, fabric = target.plan, target.fabric
    row = plan.routes.rows[fabric.host_index[source.name]]
    vlan = target.first_vlan + int(plan.pair_vlans[row, fabric.switch_index[destination.switch]])
    between = [
        (target.link_of(switch, port), (vlan, target.first_priority + priority))
        for switch, port, priority in target.outputs(source, destination)[:-1]
    ]
    return [(source.name, None), *between, (destination.name, None)]


def shown(steps: list[tuple[str, Tag]]) -> str:
    """Format a path: ``h1 s1:2-s2:3[7/0] h2``."""
    return " ".join(link if tag is None else f"{link}[{tag[0]}/{tag[1]}]" for link, tag in steps)


def _steps(seen: list[Seen]) -> list[tuple[str, Tag]]:
    return [(each.link, tag_of(each.packet)) for each in seen]


def probe(target: Target) -> Iterator[Finding]:
    """Send a frame for each pair and follow it through the captures of all links."""
    sent = []
    with target.captured() as capture:
        for source, destination in target.pairs:
            frame, marker = marked(source.mac, destination.mac)
            with target.sender(source) as sender:
                sender.send(frame)
            sent.append((source, destination, marker))
            capture.await_marker(destination.name, marker)
    for source, destination, marker in sent:
        seen = capture.marked_frames(marker)
        steps, right = _steps(seen), planned(target, source, destination)
        if target.settings["tagging"] == "host" and steps:
            # The host's interface has put the tag on: the plan says which, and no priority.
            (first, tag), vlan = steps[0], right[1][1] if len(right) > 2 else None
            if tag is not None and (vlan is None or tag[0] == vlan[0]):
                steps[0] = (first, None)
        subject = f"{source.name} > {destination.name}"
        if steps == right:
            took_ms = 1000 * (seen[-1].at_s - seen[0].at_s)
            yield Finding("path", subject, True, f"{shown(steps)}, as planned ({took_ms:.2f} ms)")
        else:
            got = shown(steps) if steps else "nothing"
            yield Finding("path", subject, False, f"planned {shown(right)}, seen {got}")
