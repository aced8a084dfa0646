"""The sizes of messages that can be sent."""

from __future__ import annotations

from knotless.traffic import theory
from knotless_experiments.framework.experiment import ExperimentError

LEAST_BYTES, MOST_BYTES = 16, 8192


def message_size(text: str) -> int:
    """Parse the size of a message in bytes; raises ExperimentError if it is not possible.

    Every datagram of a message has a header, including the last one.
    """
    if not (text.isascii() and text.isdigit() and LEAST_BYTES <= int(text[:6]) <= MOST_BYTES):
        raise ExperimentError(
            f"--size: {text[:20]!r} is not a number of bytes from {LEAST_BYTES} to {MOST_BYTES}"
        )
    if 0 < int(text) % theory.UDP_PAYLOAD_BYTES < LEAST_BYTES:
        raise ExperimentError(
            f"--size: the last of the {theory.UDP_PAYLOAD_BYTES}-byte datagrams of {text} bytes "
            f"would have under {LEAST_BYTES}"
        )
    return int(text)
