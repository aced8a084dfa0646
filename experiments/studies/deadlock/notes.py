"""How the figures of the deadlock experiment came about, for its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.studies.deadlock.transfers import DEFAULT_RATE_MBPS
from traffic import theory


def notes(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain how each figure came about."""
    rate = run["parameters"]["rate_mbps"] or DEFAULT_RATE_MBPS
    udp = theory.wire_bytes("udp", theory.UDP_PAYLOAD_BYTES, tagged=True)
    tcp = theory.wire_bytes("tcp", theory.TCP_PAYLOAD_BYTES, tagged=True)
    ack = theory.wire_bytes("tcp", 0, tagged=True)
    return [
        (
            "Fair share (theory)",
            f"Two flows on a channel of {rate:g} Mbit/s. A datagram of {theory.UDP_PAYLOAD_BYTES} "
            f"bytes takes {udp} bytes of line between switches: Ethernet header 14, VLAN tag 4, "
            "IPv4 20, UDP 8, payload 1472, FCS 4, preamble 8, gap 12. So "
            f"{rate:g} x 1472 / {udp} / 2 = {rate * 1472 / udp / 2:.3f} Mbit/s of payload. "
            f"TCP: segments of {theory.TCP_PAYLOAD_BYTES} bytes on {tcp}, and an acknowledgement "
            f"of {ack} bytes for every second segment on the way back; shares are max-min fair. "
            "It is what an ideal scheduler would give. Queues are FIFO: where a flow merges with "
            "others twice it can wait behind frames that are held up further on (head-of-line "
            "blocking); and TCP's own dynamics are not in the sum.",
        ),
        (
            "Goodput",
            "From the emulator's counters of the channel that delivers to each receiving host: "
            "bytes less headers, over the measuring window. The window opens one second after all "
            "flows have started; in a deadlock it opens when the detector has reported it, so "
            "that it shows the freeze and not the moments before. Counters, because in a deadlock "
            "iperf3 cannot report: its own connection is stuck in the same knot. Where "
            "iperf3 came to its end, its receiver's figures (over the whole test, start included) "
            "stand beside ours in run.json.",
        ),
        (
            "Lost frames",
            "Every drop of the emulated switches and links, counted exactly until the network "
            "was empty again (in a deadlock: until the window's end). Counters begin at "
            "zero before the first sender starts. Where some links have no flow control, iperf3's "
            "own connection could be lost: there the senders start with PAUSE on every link, and "
            "once all send, the fabric is emptied, flow control is set as stated, and counters "
            "begin at zero. A host's own card never drops: it blocks the sender.",
        ),
        (
            "Deadlock and knot",
            "Deadlock is what the emulator's detector reported: channels paused by accounts that "
            "could not fall under XON even if all else left the fabric, with nothing moving. The "
            "predicted cycle comes from the static check, which walks the OpenFlow rules, before "
            "anything runs. It is a property of the routes, stated on every line; it can "
            "freeze only where links between switches are paused. Under 802.3x all priorities of a "
            "link stop together; under PFC each by itself.",
        ),
        (
            "Lateness and validity",
            "Every queue is emulated in virtual time; lateness is by how much real frames came "
            "back too late from Open vSwitch. A run whose 99th percentile is over the limit, or in "
            "which anything else went wrong, is marked not valid and left out of the findings. A "
            "run that was late, and only such a run, is tried again, at most twice; run.json keeps "
            "the late ones under earlier_attempts.",
        ),
    ]
