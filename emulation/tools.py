"""What must be installed for a fabric to run."""

from __future__ import annotations

import shutil

from common.errors import EmulationError

PACKAGES = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "mnexec": "mininet",
    "ifconfig": "net-tools",
    "ethtool": "ethtool",
    "iptables": "iptables",
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
}
"""Command -> the Debian package that has it."""


def require_tools() -> None:
    """Raise :class:`EmulationError` naming the packages of all commands that are missing."""
    missing = sorted({package for tool, package in PACKAGES.items() if shutil.which(tool) is None})
    if missing:
        raise EmulationError(f"not installed: apt-get install {' '.join(missing)}")
