"""Programs in virtual time: the library that shows it to them, and the page where it is read."""

from __future__ import annotations

from knotless.base.package import native
from knotless.emulation.names import MARK, SENDERS_MARK, Names

LIBRARY = native("libknotless_virtual_time.so")


def program_environment(
    names: Names, *, virtual_clock: bool, several_hosts: bool = False
) -> dict[str, str]:
    """Return the environment variables of a program on hosts of a fabric.

    They mark it as the fabric's, so that it ends with it. With ``virtual_clock`` it sees virtual
    time; it must be linked dynamically, see docs/virtual-clock.md. ``several_hosts`` is for a
    program with sockets in more than one host.
    """
    environment = {MARK: names.name}
    if several_hosts:
        environment[SENDERS_MARK] = names.name
    if virtual_clock:
        environment |= {"LD_PRELOAD": str(LIBRARY), "KNOTLESS_CLOCK": str(names.clock_page)}
    return environment
