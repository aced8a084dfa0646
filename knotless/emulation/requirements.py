"""Rights, programs and modules that this machine and this user lack to run fabrics.

Whether something works is found by trying it in a child process, in namespaces that end with it:
neither the name of the user nor a version tells what a container, a chroot or a kernel allows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from knotless.base.errors import EmulationError
from knotless.base.printable import listed

PACKAGES = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "setpriv": "util-linux",
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

WITHOUT = "plan, check, simulate and 'run NAME --on simulation' need none of it"
"""What works where no fabric can run."""

_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}
"""Bits of the rights that root may lack in a container: linux/capability.h."""
_TRIAL = """
try() { echo "$1"; shift; "$@"; }
try 'write to /run' test -w /run
try 'mount file systems' mount -t tmpfs tmpfs /run
mkdir /run/netns
try 'make network namespaces' ip netns add trial
try 'make pairs of interfaces (module veth)' ip link add left type veth peer name right netns trial
try 'enter network namespaces' nsenter --net=/run/netns/trial true
try 'hold packets of hosts (module nfnetlink_queue)' \
    iptables -w -A OUTPUT -j NFQUEUE --queue-num 0
"""
"""Each step prints what it tries. All of it vanishes with the namespaces that it runs in."""
_LIMIT_S = 20.0


def why_not() -> str | None:
    """Return what is missing to run fabrics here, as ``needs root``; None if nothing is.

    The rights are named first, then the packages, then what the kernel refuses.
    """
    refusal = _refusal()
    lacking = _lacking_capabilities()
    if refusal and lacking:
        if os.geteuid() != 0:
            return "needs root: put sudo before the command"
        return f"needs {listed(lacking)}, which root lacks here: a container needs --privileged"
    missing = sorted({package for tool, package in PACKAGES.items() if shutil.which(tool) is None})
    if missing:
        return f"needs packages: apt-get install {' '.join(missing)}"
    return refusal


def require_fabrics() -> None:
    """Raise :class:`EmulationError`, with what is missing and what works without, if anything is.

    What is missing is said in one line: see :func:`why_not`.
    """
    if reason := why_not():
        raise EmulationError(f"running fabrics {reason}; {WITHOUT}")


def _refusal() -> str | None:
    """Make what fabrics consist of in a child; return what cannot be made, and why."""
    try:
        done = subprocess.run(
            ["unshare", "--net", "--mount", "sh", "-ec", _TRIAL],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except OSError as error:
        # Where a child lacks files or memory, the start says which limit is too low.
        return f"needs {error.filename}" if isinstance(error, FileNotFoundError) else None
    except subprocess.TimeoutExpired as error:
        return f"cannot be tried here: {' '.join(str(error).split())[:200]}"
    if done.returncode == 0:
        return None
    tried = (done.stdout.strip() or "make namespaces").splitlines()[-1]
    reason = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    return f"cannot {tried}: {reason[:200]}"


def _lacking_capabilities() -> list[str]:
    """Return the names of the needed rights that this process lacks."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    held = next(int(line[8:], 16) for line in status.splitlines() if line.startswith("CapEff:"))
    return [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]


if __name__ == "__main__":  # for tools/demo.sh
    raise SystemExit(why_not())
