"""The interface to Mininet: its classes, from which ours are derived.

Mininet 2.3 imports distutils, which warns on Python 3.11, and has no types.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from typing import Any

from knotless.base.errors import EmulationError
from knotless.emulation.names import SHELL_MARK

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    try:
        from mininet.cli import CLI
        from mininet.link import Intf, Link, OVSLink, TCIntf, TCLink, TCULink
        from mininet.log import LEVELS, error, info, lg, output, setLogLevel
        from mininet.net import Mininet
        from mininet.node import (
            Controller,
            DefaultController,
            Host,
            Node,
            NullController,
            OVSController,
            OVSKernelSwitch,
            OVSSwitch,
            RemoteController,
        )
        from mininet.topo import (
            LinearTopo,
            MinimalTopo,
            SingleSwitchReversedTopo,
            SingleSwitchTopo,
            Topo,
        )
        from mininet.topolib import TorusTopo, TreeTopo
        from mininet.util import ipAdd, macColonHex, splitArgs
    except ImportError as problem:
        raise EmulationError(
            f"apt-get install mininet: it cannot be imported: {problem}"
        ) from problem


def _plain_record(*args: Any, **_more: Any) -> logging.LogRecord:
    """Return what Mininet prints as it is: a terminal's text, with its line ends, and no log."""
    return logging.LogRecord(*args[:7])


lg.makeRecord = _plain_record
# Mininet makes its own class that of all loggers to come: they would print below no warning, and
# without line ends.
logging.setLoggerClass(logging.Logger)

__all__ = [
    "CLI",
    "LEVELS",
    "Controller",
    "DefaultController",
    "Host",
    "Intf",
    "LinearTopo",
    "Link",
    "MinimalTopo",
    "Mininet",
    "Node",
    "NullController",
    "OVSController",
    "OVSKernelSwitch",
    "OVSLink",
    "OVSSwitch",
    "RemoteController",
    "SingleSwitchReversedTopo",
    "SingleSwitchTopo",
    "TCIntf",
    "TCLink",
    "TCULink",
    "Topo",
    "TorusTopo",
    "TreeTopo",
    "error",
    "info",
    "ipAdd",
    "lg",
    "macColonHex",
    "output",
    "setLogLevel",
    "splitArgs",
    "with_own_mark",
]


def with_own_mark(command: Sequence[str]) -> list[str]:
    """Return the command of a node's shell with our mark instead of Mininet's.

    ``mn -c``, and every ``mn`` that crashes, ends all processes of the machine with ``mininet:`` in
    their arguments (``mininet/clean.py``).
    """
    return [
        SHELL_MARK + word.removeprefix("mininet:") if word.startswith("mininet:") else word
        for word in command
    ]
