"""Running programs whose computing must not delay the fabric on which they run."""

from __future__ import annotations

WHEN_IDLE = ("chrt", "--idle", "0")
"""Prefix of a command that may run only on otherwise idle cores. Computing, and waiting by
spinning, must not keep switches and emulator waiting, as even a process of the lowest niceness does
for milliseconds."""
