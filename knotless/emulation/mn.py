"""The interface to Mininet: its classes, from which ours are derived.

Mininet 2.3 imports distutils, which warns on Python 3.11, and has no types.
"""

from __future__ import annotations

import warnings

from knotless.base.errors import EmulationError

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
