"""Capturing the frames of a link of a running fabric to a pcap file."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from knotless.base.errors import EmulationError
from knotless.emulation import state
from knotless.emulation.cuts import Cables
from knotless.emulation.daemon import Daemon
from knotless.emulation.names import Names

MOST_BYTES = 64 << 20
"""The length of a file that the page has captured."""
MOST_BYTES_IN_ALL = 256 << 20
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Captured:
    """A capture that has ended, with its number of frames."""

    link: str
    file: Path
    frames: int


def capture(
    names: Names,
    link: str,
    file: Path,
    duration_s: float,
    progress: Callable[[float], None] = lambda _: None,
    most_bytes: int | None = None,
) -> Captured:
    """Capture both directions of a link, PAUSE included, for ``duration_s`` of real time.

    ``link`` is any name of it: ``s1:2`` or ``s1-s2``. Ctrl-C and ``most_bytes`` end it earlier;
    ``progress`` receives the seconds so far. Raises :class:`EmulationError`.
    """
    fabric = state.require_emulated(names)
    cable = Cables.of_running(names).of_channel(link).name
    daemon = Daemon(names.emulator_socket, fabric.switch_index)
    daemon.capture(cable, file)
    began = time.monotonic()
    try:
        while (passed_s := time.monotonic() - began) < duration_s:
            progress(passed_s)
            if most_bytes is not None and file.stat().st_size >= most_bytes:
                break
            time.sleep(min(_LOOK_EVERY_S, duration_s - passed_s))
    except KeyboardInterrupt:
        pass
    finally:
        frames = daemon.capture_stop(cable)
    return Captured(cable, file, frames)


def capture_in_our_directory(names: Names, link: str, duration_s: float) -> Captured:
    """Capture to a file of bounded length that is named after the link and ends with the fabric.

    Raises :class:`EmulationError`, also if there are too many captures.
    """
    cable = Cables.of_running(names).of_channel(link).name
    directory = names.captures_directory
    directory.mkdir(mode=0o700, exist_ok=True)
    file = directory / f"{re.sub('[^A-Za-z0-9]+', '-', cable)[:80].strip('-')}.pcap"
    others = sum(other.stat().st_size for other in directory.iterdir() if other != file)
    if others + MOST_BYTES > MOST_BYTES_IN_ALL:
        raise EmulationError(f"{directory} holds {others >> 20} MiB: remove some captures there")
    return capture(names, cable, file, duration_s, most_bytes=MOST_BYTES)
