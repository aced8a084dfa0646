"""The commands that must be installed to run a fabric."""

from __future__ import annotations

import shutil

from knotless.base.errors import EmulationError

PACKAGES = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mnexec": "mininet",
    "ifconfig": "net-tools",
    "ethtool": "ethtool",
    "iptables": "iptables",
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
    "ovs-dpctl": "openvswitch-switch",
}
"""Command -> the Debian package that has it."""


def require_tools() -> None:
    """Raise :class:`EmulationError`, naming the packages of all missing commands."""
    missing = sorted({package for tool, package in PACKAGES.items() if shutil.which(tool) is None})
    if missing:
        raise EmulationError(f"not installed: apt-get install {' '.join(missing)}")
