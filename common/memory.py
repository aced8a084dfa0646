"""How much memory is free, and whether that is enough."""

from __future__ import annotations

import resource
from pathlib import Path

from common.errors import KnotlessError

_GROUP = Path("/sys/fs/cgroup")
SMALL_BYTES = 64 << 20
"""Allowed without a look at what is free, which takes longer than planning a small fabric."""


def free_bytes() -> int:
    """Return how many bytes this process may still use: of the machine, its cgroup and its limits.

    The limits are those of ``ulimit -v`` and ``-d``.
    """
    there = [_left_of_machine()]
    # Mininet's Python, which reads fabrics too, has no psutil.
    pages = [int(word) for word in Path("/proc/self/statm").read_text(encoding="ascii").split()]
    size, data = (resource.getpagesize() * pages[field] for field in (0, 5))
    for limit, taken in ((resource.RLIMIT_AS, size), (resource.RLIMIT_DATA, data)):
        soft, _ = resource.getrlimit(limit)
        if soft != resource.RLIM_INFINITY:
            there.append(soft - taken)
    there += _left_of_group()
    return max(0, min(there))


def _left_of_machine() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    kib = dict(line.split(":", 1) for line in lines)["MemAvailable"]
    return 1024 * int(kib.split()[0])


def _left_of_group() -> list[int]:
    """Return what a container with a limit may still use; an empty list without one."""
    try:
        most = (_GROUP / "memory.max").read_text(encoding="ascii").strip()
        taken = (_GROUP / "memory.current").read_text(encoding="ascii")
        cached = (_GROUP / "memory.stat").read_text(encoding="ascii").split()
        if most == "max":
            return []
        given_back = int(cached[cached.index("inactive_file") + 1])
        return [int(most) - int(taken) + given_back]
    except (OSError, ValueError):
        return []


def refuse_beyond(what: str, needed: float, error: type[KnotlessError]) -> None:
    """Raise ``error`` if ``what`` needs more bytes than are free."""
    if needed > SMALL_BYTES and needed > (there := free_bytes()):
        raise error(f"{what} takes about {gib(needed)}, {gib(there)} are free")


def gib(count: float) -> str:
    """Return a number of bytes as text in GiB."""
    return f"{count / 2**30:.1f} GiB"
