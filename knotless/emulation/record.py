"""Recording what all channels of a running fabric do."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import Any

from knotless.emulation.daemon import Daemon
from knotless.emulation.frames import Frames
from knotless.results.recording import MAX_FRAMES, Recording
from knotless.topologies.fabric import Fabric
from knotless.topologies.formats import files


def record(
    daemon: Daemon,
    fabric: Fabric,
    duration_s: float,
    every_s: float,
    progress: Callable[[float], None] = lambda _: None,
    ended: Event | None = None,
) -> Recording:
    """Sample the emulator every ``every_s`` of real time, for ``duration_s`` or until Ctrl-C.

    Another thread may end it earlier with ``ended``. ``progress`` receives the seconds so
    far. Raises :class:`EmulationError` if the emulator does not answer at the beginning, or ends.
    """
    counters = daemon.counters()
    channels = [channel["channel"] for channel in counters["channels"]]
    index = {name: i for i, name in enumerate(channels)}
    making = Frames(index, {host.mac: host.name for host in fabric.hosts})
    making.next(counters, None)
    frames: list[dict[str, Any]] = []
    began = time.monotonic()
    ended = ended or Event()
    try:
        while (passed_s := time.monotonic() - began) < duration_s and len(frames) < MAX_FRAMES:
            progress(passed_s)
            if ended.wait(min(every_s, duration_s - passed_s)):
                break
            knot = daemon.status()["deadlock"]
            frame = making.next(daemon.counters(), knot)
            if frame is not None:
                frames.append(frame)
    except KeyboardInterrupt:
        pass
    title = f"emulation of {fabric.name}"
    return Recording(title, files.to_json(fabric), channels, frames)
