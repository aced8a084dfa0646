"""Texts about lines: what users write about loss and delay, and what commands say of them.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SHARES = {
    "loss": "loses",
    "corrupt": "corrupts",
    "duplicate": "duplicates",
    "reorder": "reorders",
}
"""What a line does to a share of frames at random, and the verb for it."""


def line_text(line: Mapping[str, Any]) -> str:
    """Return what a line is, of a channel in the emulator's answer.

    Examples
    --------
    >>> line = {"channel": "s1:2", "rate_mbps": 5.0, "delay_us": 500.0, "jitter_us": 0.0}
    >>> line |= {"corrupt": 0.0, "duplicate": 0.0, "reorder": 0.0, "line_errors": 1e-6}
    >>> line_text({**line, "loss": 0.01})
    's1:2: 5 Mbit/s, 500 us; loses 1 %, bit error rate 1e-06'

    """
    jitter = f" to {line['delay_us'] + line['jitter_us']:g}" if line["jitter_us"] else ""
    faults = [f"{verb} {100 * line[key]:g} %" for key, verb in SHARES.items() if line[key]]
    if line["line_errors"]:
        faults.append(f"bit error rate {line['line_errors']:g}")
    text = f"{line['channel']}: {line['rate_mbps']:g} Mbit/s, {line['delay_us']:g}{jitter} us"
    return "; ".join([text, ", ".join(faults)]) if faults else text


def fault_text(line: Mapping[str, Any]) -> str:
    """Return what a line has done to frames, of an entry of ``faulty_lines``.

    Examples
    --------
    >>> line = {"channel": "s1:2", "rate_mbps": 5.0, "delay_us": 500.0, "jitter_us": 0.0}
    >>> line |= {"loss": 0.01, "corrupt": 0.0, "duplicate": 0.0, "reorder": 0.0, "line_errors": 0.0}
    >>> fault_text({**line, "lost_frames": 7, "corrupted_frames": 0})
    's1:2: 5 Mbit/s, 500 us; loses 1 %; 7 frames lost so far'

    """
    counted = {"lost": line["lost_frames"], "corrupted": line["corrupted_frames"]}
    happened = ", ".join(f"{count} frames {what}" for what, count in counted.items() if count)
    return line_text(line) + (f"; {happened} so far" if happened else "")
