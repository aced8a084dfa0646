"""How programs run whose computing must not delay the fabric that they run on."""

from __future__ import annotations

WHEN_IDLE = ("chrt", "--idle", "0")
"""Before a command: it runs only where a core has nothing else to do. Computing, and waiting by
spinning, must not keep switches and emulator waiting, as even a process of the lowest niceness does
for milliseconds."""
