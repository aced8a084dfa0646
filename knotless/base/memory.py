"""The amount of free memory, and whether it is enough."""

from __future__ import annotations

import resource
from pathlib import Path

from knotless.base.errors import KnotlessError

_GROUP = Path("/sys/fs/cgroup")
SMALL_BYTES = 64 << 20
"""Allowed without a look at what is free, which takes longer than planning a small fabric."""

_LIMITS = {0: resource.RLIMIT_AS, 5: resource.RLIMIT_DATA}
"""By the field of ``/proc/self/statm`` that counts towards the limit."""


def free_bytes() -> int:
    """Return how many bytes this process may still use: of the machine, its cgroup and its limits.

    The limits are those of ``ulimit -v`` and ``-d``.
    """
    return max(0, min([_left_of_machine(), *_left_of_limits(), *_left_of_group()]))


def _left_of_machine() -> int:
    # Mininet's Python, which reads fabrics too, has no psutil.
    with Path("/proc/meminfo").open(encoding="ascii") as lines:
        available = next(line for line in lines if line.startswith("MemAvailable:"))
    return 1024 * int(available.split()[1])


def _left_of_limits() -> list[int]:
    """Return what the limits of ``ulimit -v`` and ``-d`` leave; an empty list without them."""
    limits = {field: resource.getrlimit(limit)[0] for field, limit in _LIMITS.items()}
    limits = {field: soft for field, soft in limits.items() if soft != resource.RLIM_INFINITY}
    if not limits:
        return []
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return [soft - resource.getpagesize() * int(pages[field]) for field, soft in limits.items()]


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
