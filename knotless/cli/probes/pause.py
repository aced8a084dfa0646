"""PAUSE and PFC frames of a misbehaving host: they stop its own link, are counted, not forwarded.

IEEE 802.3 annex 31B (PAUSE) and 802.1Qbb (priority-based flow control); both count in
quanta of 512 bit times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from scapy.contrib.mac_control import MACControlClassBasedFlowControl, MACControlPause
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from knotless.cli.probes import Finding
from knotless.cli.probes._target import Capture, Sender, Target, marked
from knotless.emulation.interface_names import host_interface
from knotless.emulation.names import Names
from knotless.topologies.fabric import Fabric, Host

MAC_CONTROL_ADDRESS = "01:80:c2:00:00:01"
MAC_CONTROL_TYPE = 0x8808
QUANTUM_BITS = 512
MOST_QUANTA = 65535
HOLD_S = 0.5
PRIORITIES = range(8)


def quanta_of(rate_mbps: float) -> int:
    """Return the quanta that stop a line of this rate for HOLD_S, or the maximum."""
    return min(MOST_QUANTA, math.ceil(HOLD_S * rate_mbps * 1e6 / QUANTUM_BITS))


def pause_frame(host: Host, quanta: int) -> Packet:
    """Return an 802.3x PAUSE frame of a host."""
    return Ether(src=host.mac, dst=MAC_CONTROL_ADDRESS) / MACControlPause(pause_time=quanta)


def pfc_frame(host: Host, quanta: int, priorities: Iterable[int]) -> Packet:
    """Return an 802.1Qbb PFC frame of a host for these priorities."""
    control = MACControlClassBasedFlowControl()
    for priority in priorities:
        control.setfieldval(f"c{priority}_enabled", 1)
        control.setfieldval(f"c{priority}_pause_time", quanta)
    return Ether(src=host.mac, dst=MAC_CONTROL_ADDRESS) / control


def pause_for(names: Names, fabric: Fabric, host: Host, wanted_ms: float) -> float:
    """Let a host ask its switch once to stop, by PAUSE and PFC; returns the time asked for, in ms.

    A frame can ask for at most 65,535 quanta of 512 bit times. 0 resumes.
    """
    quantum_ms = QUANTUM_BITS / (host.rate_mbps * 1e3)
    quanta = min(MOST_QUANTA, math.ceil(wanted_ms / quantum_ms))
    with Sender(names, host.name, host_interface(fabric, host.name)) as sender:
        for frame in (pause_frame(host, quanta), pfc_frame(host, quanta, PRIORITIES)):
            sender.send(frame)
    return quanta * quantum_ms


def _forwarded(capture: Capture, host: Host) -> list[str]:
    """Return the other links on which the host's MAC control frames were seen."""
    return sorted(
        {
            seen.link
            for seen in capture.seen
            if seen.link != host.name
            and seen.packet.type == MAC_CONTROL_TYPE
            and seen.packet.src == host.mac
        }
    )


def probe(target: Target) -> Iterator[Finding]:
    """Let the first pair's destination pause its switch while data is sent to it."""
    source, host = target.pairs[0]
    link = target.flow_control(host)
    quanta = quanta_of(host.rate_mbps)
    outputs = target.outputs(source, host)
    used = target.first_priority + outputs[-2][2] if len(outputs) > 1 else 0
    others = [priority for priority in PRIORITIES if priority != used]
    yield _stop(target, "PAUSE", pause_frame(host, quanta), link.by_channel, True)
    pfc = link.by_priority and not link.by_credits
    yield _stop(target, f"PFC of priority {used}", pfc_frame(host, quanta, [used]), pfc, True)
    yield _stop(target, f"PFC of all but {used}", pfc_frame(host, quanta, others), pfc, False)


def _stop(target: Target, what: str, frame: Packet, obeyed: bool, stops: bool) -> Finding:
    """Send a control frame, then data; ``obeyed``: by the link; ``stops``: this data."""
    source, host = target.pairs[0]
    hold_s = quanta_of(host.rate_mbps) * QUANTUM_BITS / (host.rate_mbps * 1e6)
    data, marker = marked(source.mac, host.mac)
    count = "pauses_obeyed" if obeyed else "pauses_ignored"
    with (
        target.captured() as capture,
        target.sender(host) as misbehaving,
        target.sender(source) as sender,
    ):
        before = int(target.daemon.status()[count])
        misbehaving.send(frame)
        sender.send(data)
        arrived = capture.await_marker(host.name, marker, hold_s + 5.0)
        counted = int(target.daemon.status()[count]) - before
        for resume in (pause_frame(host, 0), pfc_frame(host, 0, PRIORITIES)):
            misbehaving.send(resume)
    subject = f"{host.name}: {what}"
    asked = [
        seen.at_s
        for seen in capture.seen
        if seen.link == host.name
        and seen.packet.type == MAC_CONTROL_TYPE
        and seen.packet.src == host.mac
    ]
    if not arrived or not asked:
        lost = "the data never arrived" if asked else "the control frame never left the host"
        return Finding("pause", subject, False, lost)
    at_s = next(seen.at_s for seen in capture.marked_frames(marker) if seen.link == host.name)
    held_s = at_s - min(asked)
    held = held_s >= hold_s if obeyed and stops else held_s < hold_s
    beyond = _forwarded(capture, host)
    word = "obeyed" if obeyed else "ignored (the link is set so)"
    times = "counted" if counted == 1 else f"COUNTED {counted} times"
    waited = f"data to it waited {1000 * held_s:.0f} ms of {1000 * hold_s:.0f}"
    passed_on = f"FORWARDED over {' '.join(beyond)}" if beyond else "never forwarded"
    text = f"{word} and {times}; {waited}; {passed_on}"
    return Finding("pause", subject, counted == 1 and held and not beyond, text)
