"""The interface to Mininet: its classes, from which ours are derived.

Mininet 2.3 imports distutils, which warns on Python 3.11, and has no types.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from knotless.base.errors import EmulationError
from knotless.emulation.names import SHELL_MARK

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from mininet.cli import CLI
        from mininet.link import Intf, Link
        from mininet.log import setLogLevel
        from mininet.net import Mininet
        from mininet.node import Host, OVSSwitch
    except ImportError as error:
        raise EmulationError(f"apt-get install mininet: it cannot be imported: {error}") from error

__all__ = ["CLI", "Host", "Intf", "Link", "Mininet", "OVSSwitch", "setLogLevel"]


def with_own_mark(command: Sequence[str]) -> list[str]:
    """Return the command of a node's shell with our mark instead of Mininet's.

    ``mn -c``, and every ``mn`` that crashes, ends all processes of the machine with ``mininet:`` in
    their arguments (``mininet/clean.py``).
    """
    return [
        SHELL_MARK + word.removeprefix("mininet:") if word.startswith("mininet:") else word
        for word in command
    ]
