"""Explanations of the figures of the deadlock experiment, for its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knotless.traffic import theory
from knotless_experiments.framework.excluded_runs import REPEATS
from knotless_experiments.framework.experiment import EMULATION, SIMULATION
from knotless_experiments.studies.deadlock.transfers import DEFAULT_RATE_MBPS


def notes(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain the figures."""
    rate = run["parameters"]["rate_mbps"] or DEFAULT_RATE_MBPS
    udp = theory.wire_bytes("udp", theory.UDP_PAYLOAD_BYTES, tagged=True)
    tcp = theory.wire_bytes("tcp", theory.TCP_PAYLOAD_BYTES, tagged=True)
    ack = theory.wire_bytes("tcp", 0, tagged=True)
    share = (
        "Fair share (theory)",
        f"Two flows on a channel of {rate:g} Mbit/s. A datagram of {theory.UDP_PAYLOAD_BYTES} "
        f"bytes takes {udp} bytes of line between switches: Ethernet header 14, VLAN tag 4, "
        "IPv4 20, UDP 8, payload 1472, FCS 4, preamble 8, gap 12. So "
        f"{rate:g} x 1472 / {udp} / 2 = {rate * 1472 / udp / 2:.3f} Mbit/s of payload. "
        f"TCP: segments of {theory.TCP_PAYLOAD_BYTES} bytes on {tcp}, and an acknowledgement "
        f"of {ack} bytes for every second segment on the way back; shares are max-min fair. "
        "An ideal scheduler would give this. Queues are FIFO: a flow that merges twice with "
        "others can wait behind frames that are blocked further on (head-of-line blocking). "
        "TCP's own dynamics are not included.",
    )
    if run["parameters"].get("on", EMULATION) == SIMULATION:
        return [share, *_OF_SIMULATIONS]
    return [
        share,
        (
            "Goodput",
            "From the emulator's counters of the channel that delivers to each receiving host: "
            "bytes without headers, over the measuring window. The window opens one second after "
            "all flows have started; in a deadlock it opens when the detector has reported it, so "
            "that it shows the deadlock and not the time before. Counters are used because in a "
            "deadlock iperf3 cannot report: its own connection is blocked by the same knot. If "
            "iperf3 ended normally, its receiver's figures (over the whole test, start included) "
            "are given beside ours in run.json.",
        ),
        (
            "Lost frames",
            "All drops of the emulated switches and links, counted exactly until the network is "
            "empty again (in a deadlock: until the window's end). Counters start at zero before "
            "the first sender starts. If some links have no flow control, iperf3's own connection "
            "could be lost: then the senders start with PAUSE on every link; once all send, the "
            "fabric is emptied, flow control is set as stated, and counters restart at zero. A "
            "host's own interface never drops: it blocks the sender.",
        ),
        (
            "Deadlock and knot",
            "Deadlock is what the emulator's detector reported: channels that are paused, and "
            "whose ingress buffer occupancy could not fall to XON even if all other frames left "
            "the fabric. The predicted cycle comes from the static check, which traces the "
            "OpenFlow rules before anything runs. It is a property of the routes and is given in "
            "every row; it can deadlock only if links between switches pause. Under 802.3x all "
            "priorities of a link stop together; under PFC each stops separately.",
        ),
        (
            "Stretch and validity",
            "Every queue is emulated in virtual time, which waits for frames that are still in "
            "Open vSwitch; the stretch is real over virtual time. A run in which anything failed "
            "is marked as not valid and excluded from the findings; its remarks say why. "
            f"{REPEATS}",
        ),
    ]


_OF_SIMULATIONS = (
    (
        "Goodput",
        "What the channel to each receiving host has delivered in the measuring window, without "
        "headers. The window opens after a warm-up in which all flows send; in a deadlock it opens "
        "when nothing moves any more, so that it shows the deadlock and not the time before.",
    ),
    (
        "Lost frames",
        "All drops of the simulated switches, counted exactly. A host's own interface never drops: "
        "it blocks the sender.",
    ),
    (
        "Deadlock and knot",
        "Deadlock is what the simulator's detector reported: channels that are paused, and whose "
        "ingress buffer occupancy could not fall to XON even if all other frames left the fabric. "
        "The predicted cycle comes from the static check of the forwarding state, before anything "
        "runs. It is given in every row; it can deadlock only if links between switches pause. "
        "Under 802.3x all priorities of a link stop together; under PFC each stops separately.",
    ),
    (
        "Sources",
        "A source always has a next packet. Runs with one seed are equal.",
    ),
)
