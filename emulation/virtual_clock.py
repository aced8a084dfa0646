"""Programs in virtual time: the library that shows it to them, and the page where it is read."""

from __future__ import annotations

from emulation.names import REPOSITORY, Names

LIBRARY = REPOSITORY / "core" / "target" / "release" / "libknotless_virtual_time.so"


def virtual_clock_environment(names: Names) -> dict[str, str]:
    """Return the environment variables with which programs see the virtual time of a fabric.

    The programs must be linked dynamically; see docs/virtual-clock.md.
    """
    return {"LD_PRELOAD": str(LIBRARY), "KNOTLESS_CLOCK": str(names.clock_page)}
