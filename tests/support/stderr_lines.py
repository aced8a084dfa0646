"""Lines on standard error that are ours, not Mininet's."""

from __future__ import annotations

MININETS = "*** Error setting resource limits."
"""Mininet says so where the kernel's limits can't be raised, as in a container."""


def our_lines(stderr: str) -> list[str]:
    """Return the lines without Mininet's own about resource limits."""
    return [line for line in stderr.splitlines() if not line.startswith(MININETS)]
