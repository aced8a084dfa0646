"""Texts about lines: what users write about loss and delay, and what commands say of them.

Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from knotless.base.errors import KnotlessError

SHARES = {
    "loss": "loses",
    "corrupt": "corrupts",
    "duplicate": "duplicates",
    "reorder": "reorders",
}
"""What a line does to a share of frames at random, and the verb for it."""
_SHARE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e-?[0-9]+)?(%?)")


def share(text: str) -> float:
    """Return a share of frames, written ``1%`` or ``0.01``; raises KnotlessError.

    Examples
    --------
    >>> share("1%"), share("0.5"), share("100%")
    (0.01, 0.5, 1.0)

    """
    match = _SHARE.fullmatch(text)
    value = -1.0 if match is None else float(text.removesuffix("%"))
    if match is not None and match[2]:
        value /= 100
    if not 0 <= value <= 1:
        raise KnotlessError(f"{text[:40]!r} is no share of frames: write 1%, or 0.01")
    return value


def line_text(line: Mapping[str, Any]) -> str:
    """Return what a line is, of a channel in the emulator's answer.

    Examples
    --------
    >>> line = {"channel": "s1:2", "rate_mbps": 5.0, "delay_us": 500.0, "jitter_us": 0.0}
    >>> line_text({**line, "loss": 0.01, "corrupt": 0.0, "duplicate": 0.0, "reorder": 0.0})
    's1:2: 5 Mbit/s, 500 us; loses 1 %'

    """
    jitter = f" to {line['delay_us'] + line['jitter_us']:g}" if line["jitter_us"] else ""
    faults = [f"{verb} {100 * line[key]:g} %" for key, verb in SHARES.items() if line[key]]
    text = f"{line['channel']}: {line['rate_mbps']:g} Mbit/s, {line['delay_us']:g}{jitter} us"
    return "; ".join([text, ", ".join(faults)]) if faults else text


def fault_text(line: Mapping[str, Any]) -> str:
    """Return what a line has done to frames, of an entry of ``faulty_lines``.

    Examples
    --------
    >>> line = {"channel": "s1:2", "rate_mbps": 5.0, "delay_us": 500.0, "jitter_us": 0.0}
    >>> shares = {"loss": 0.01, "corrupt": 0.0, "duplicate": 0.0, "reorder": 0.0}
    >>> fault_text({**line, **shares, "lost_frames": 7, "corrupted_frames": 0})
    's1:2: 5 Mbit/s, 500 us; loses 1 %; 7 frames lost so far'

    """
    counted = {"lost": line["lost_frames"], "corrupted": line["corrupted_frames"]}
    happened = ", ".join(f"{count} frames {what}" for what, count in counted.items() if count)
    return line_text(line) + (f"; {happened} so far" if happened else "")
