"""Proof files for ordinary 802.1Q switches, whose tables have VLANs and static addresses.

As in :mod:`knotless.verification.proof_file`, nothing in here is trusted. The files are those that
the switches get: the scripts for Linux bridges.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from knotless.base.errors import ProofError
from knotless.forwarding.dot1q.model import L2Fabric, L2Port, L2Switch
from knotless.forwarding.dot1q.state import BROADCAST
from knotless.forwarding.dot1q.targets.linux_bridge import LINUX_BRIDGE
from knotless.forwarding.state import ForwardingState
from knotless.routing.graphs.channels import channels_of
from knotless.routing.graphs.dependencies import waiting
from knotless.topologies.formats.switch_files import FABRIC
from knotless.topologies.numbering import mac_value
from knotless.verification.address_classes import EXACT, Cube, address_classes
from knotless.verification.check import Outcome
from knotless.verification.dependencies import edges_of
from knotless.verification.proof_file import class_line, head_lines, rank_lines, require_covered
from knotless.verification.verdict_parts import Witness


def bridge_proof(
    files: Mapping[str, str], exported: L2Fabric, state: ForwardingState, verdict: Outcome
) -> str:
    """Return the proof file of a verdict on 802.1Q switches.

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

    Raises
    ------
    ProofError
        Proofs do not cover the tables or the verdict; the message says what of it.

    """
    if exported.tags is not None:
        raise ProofError("proofs do not cover hosts that tag their frames")
    require_covered(state, verdict.flow_control)
    if verdict.safe and verdict.failed:
        raise ProofError("such a proof says that all is delivered, and not all is")
    judged = {
        name: text.encode()
        for name, text in files.items()
        if name == FABRIC or name.endswith(LINUX_BRIDGE.suffix)
    }
    lines = head_lines(verdict.flow_control, [judged])
    if verdict.safe:
        edges = waiting(edges_of(state), verdict.flow_control)
        lines += ["claim safe", *rank_lines(edges, state.channels), *_class_lines(exported)]
    else:
        lines += ["claim cycle", *_wait_lines(exported, verdict)]
    return "\n".join(lines) + "\n"


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
        start = _Frame(source.switch, source.port)
        channels = walker.channels_of(witness, start, destination)
        yield f"wait {witness.held} {witness.wanted} {source.name} {destination} {source.mac}"
        yield f"via {' '.join([source.name, *channels])}"


@dataclass(frozen=True)
class _Frame:
    """A frame that enters a switch by a port, with the tag of a VLAN (0: none), on a channel."""

    switch: str
    port: int
    tag: int = 0
    channel: str = ""
    before: _Frame | None = None

    @property
    def channels(self) -> list[str]:
        """The channels that it has passed, this one last."""
        before = self.before.channels if self.before else []
        return [*before, self.channel] if self.channel else before


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

    def channels_of(self, witness: Witness, start: _Frame, destination: str) -> list[str]:
        """Return the channels, ``SWITCH:PORT``, on which a frame comes to the wait of a witness.

        The last is the one that it waits for. Raises ProofError if the tables do not send it there.
        """
        wait = [name.rpartition("/")[0] for name in (witness.held, witness.wanted)]
        frames, seen = deque([start]), {(start.switch, start.port, start.tag)}
        while frames:
            frame = frames.popleft()
            for onward in self._next(frame, destination):
                if [frame.channel, onward.channel] == wait:
                    return onward.channels
                if (place := (onward.switch, onward.port, onward.tag)) not in seen:
                    seen.add(place)
                    frames.append(onward)
        raise ProofError(f"the tables do not send {witness.packet} from {witness.held} on")

    def _next(self, frame: _Frame, destination: str) -> Iterator[_Frame]:
        switch = self._switches[frame.switch]
        vlan = frame.tag or _port(switch, frame.port).pvid
        if vlan is None or vlan not in _port(switch, frame.port).vlans:
            return
        only = switch.macs.get(vlan, {}).get(destination)
        for port in switch.ports:
            end = frame.switch, port.port
            is_sent = vlan in port.vlans and port.port != frame.port and only in (None, port.port)
            if is_sent and end in self._enters:
                tag = vlan if vlan in port.tagged else 0
                yield _Frame(*self._enters[end], tag, f"{frame.switch}:{port.port}", frame)


def _port(switch: L2Switch, number: int) -> L2Port:
    return next(port for port in switch.ports if port.port == number)
