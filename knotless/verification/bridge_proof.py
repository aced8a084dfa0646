"""Proof files for ordinary 802.1Q switches, whose tables have VLANs and static addresses.

As in :mod:`knotless.verification.proof_file`, nothing in here is trusted. The files are those that
the switches get: the scripts for Linux bridges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from knotless.base.errors import ProofError
from knotless.base.flow_control import FlowControl
from knotless.base.model_limits import PRIORITIES
from knotless.forwarding.dot1q.model import L2Fabric, L2Port, L2Switch
from knotless.forwarding.dot1q.state import BROADCAST, state_of_dot1q
from knotless.forwarding.dot1q.targets.linux_bridge import LINUX_BRIDGE
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import VCS_PER_CHANNEL, channels_of
from knotless.routing.graphs.dependencies import Edges, find_cycle, waiting
from knotless.routing.vlans.host_tags import EVERYTHING_ELSE
from knotless.topologies.formats.switch_files import FABRIC
from knotless.topologies.numbering import mac_value
from knotless.verification.address_classes import EXACT, Cube, address_classes
from knotless.verification.check import Outcome
from knotless.verification.dependencies import edges_of
from knotless.verification.proof_file import class_line, head_lines, rank_lines, require_covered
from knotless.verification.proof_frames import SentFrames
from knotless.verification.proof_walk import Place, channels_to
from knotless.verification.verdict_parts import Witness


def bridge_proof(
    files: Mapping[str, str], exported: L2Fabric, state: ForwardingState, verdict: Outcome
) -> tuple[str, SentFrames | None]:
    """Return the proof file of a verdict on 802.1Q switches, and which frames it is about.

    Parameters
    ----------
    files : mapping of str to str
        The files of the folder with the switches' scripts, by name; others in it do not count.
    exported : L2Fabric
        The tables that they give the switches.
    state : ForwardingState
        The state of these for untagged frames.
    verdict : Outcome
        The verdict on the state.

    Returns
    -------
    str
        The proof.
    SentFrames or None
        If nothing can deadlock, it is about frames from any source, of which switches that learn
        nothing do not take notice, and about those with any tags, unless hosts could close a cycle
        by the VLANs that they choose, or a link has frames without their tags. None: it shows a
        cycle.

    Raises
    ------
    ProofError
        Proofs do not cover the tables or the verdict; the message says what of it.

    """
    edges, switch = _edges(exported, state, verdict.flow_control)
    if exported.tags is not None and switch:
        raise ProofError(
            "proofs do not cover hosts that tag their frames if they could close a cycle by other"
            f" VLANs than theirs, as through {switch}"
        )
    require_covered(state, verdict.flow_control)
    if verdict.safe and verdict.failed:
        raise ProofError("such a proof says that all is delivered, and not all is")
    judged = {
        name: text.encode()
        for name, text in files.items()
        if name == FABRIC or name.endswith(LINUX_BRIDGE.suffix)
    }
    sent = SentFrames(tags=switch, sources="") if verdict.safe else None
    lines = head_lines(verdict.flow_control, [judged], sent)
    if verdict.safe:
        lines += ["claim safe", *rank_lines(edges, state.channels), *_class_lines(exported)]
    else:
        lines += ["claim cycle", *_wait_lines(exported, verdict)]
    return "\n".join(lines) + "\n", sent


def _edges(
    exported: L2Fabric, untagged: ForwardingState, control: FlowControl
) -> tuple[Edges, str]:
    """Return dependencies of all frames of hosts, with any tags, and an empty text.

    If these close a cycle, return those of untagged frames, and a switch in the cycle. The same
    with a switch that takes the tag off on a link: then the tag below counts, if there is one.
    """
    hosts = exported.fabric.hosts
    for bridge in exported.switches:
        links = exported.fabric.neighbours[bridge.name]
        if any(port.untagged and port.port in links for port in bridge.ports):
            return waiting(edges_of(untagged), control), bridge.name
    vlans = {vlan for switch in exported.switches for vlan in switch.vlans}
    states = [
        state_of_dot1q(exported, {host.name: {EVERYTHING_ELSE: vlan} for host in hosts})
        for vlan in sorted(vlans)
    ]
    in_priority_0 = np.unique(np.concatenate([*map(edges_of, [untagged, *states])]), axis=0)
    in_all = np.concatenate([in_priority_0 + priority for priority in range(PRIORITIES)])
    edges = waiting(in_all, control)
    if cycle := find_cycle(edges):
        channels = untagged.channels
        tail = int(channels.tail[cycle[0] // VCS_PER_CHANNEL])
        return waiting(edges_of(untagged), control), channels.names[tail]
    return edges, ""


def _class_lines(exported: L2Fabric) -> Iterator[str]:
    """Yield classes of addresses: each that a switch knows or a host has, and all others."""
    macs = {host.mac.lower() for host in exported.fabric.hosts}
    for switch in exported.switches:
        macs |= {mac for of_vlan in switch.macs.values() for mac in of_vlan}
    return map(class_line, address_classes(Cube(mac_value(mac), EXACT) for mac in macs))


def _wait_lines(exported: L2Fabric, verdict: Outcome) -> Iterator[str]:
    """Yield each wait of the cycle, with a frame and the channels on which it comes there."""
    walker = _Walker(exported)
    fabric = exported.fabric
    for witness in verdict.witnesses:
        source = fabric.hosts[fabric.host_index[witness.source]]
        number = fabric.host_index.get(witness.destination)
        destination = BROADCAST if number is None else fabric.hosts[number].mac.lower()
        start = Place(source.switch, source.port)
        channels = walker.channels_of(witness, start, destination)
        yield f"wait {witness.held} {witness.wanted} {source.name} {destination} {source.mac}"
        yield f"via {' '.join([source.name, *channels])}"


class _Walker:
    """Follows single frames through tables, from switch to switch."""

    def __init__(self, exported: L2Fabric) -> None:
        channels = channels_of(exported.fabric)
        self._enters = {
            (channels.names[tail], port): (channels.names[head], in_port)
            for tail, port, head, in_port in zip(
                *(each.tolist() for each in (channels.tail, channels.out_port)),
                *(each.tolist() for each in (channels.head, channels.in_port)),
                strict=True,
            )
        }
        self._switches = {switch.name: switch for switch in exported.switches}

    def channels_of(self, witness: Witness, start: Place, destination: str) -> list[str]:
        """Return the channels on which a frame comes to the wait of a witness."""
        return channels_to(
            witness, start, lambda place: self._next(place, destination), any_priority=True
        )

    def _next(self, place: Place, destination: str) -> Iterator[Place]:
        switch, entered, tag = place[:3]
        held = self._switches[switch]
        vlan = tag or _port(held, entered).pvid
        if vlan is None or vlan not in _port(held, entered).vlans:
            return
        only = held.macs.get(vlan, {}).get(destination)
        for port in held.ports:
            end = switch, port.port
            is_sent = vlan in port.vlans and port.port != entered and only in (None, port.port)
            if is_sent and end in self._enters:
                tag = vlan if vlan in port.tagged else 0
                yield Place(*self._enters[end], tag, f"{switch}:{port.port}/", place)


def _port(switch: L2Switch, number: int) -> L2Port:
    return next(port for port in switch.ports if port.port == number)
