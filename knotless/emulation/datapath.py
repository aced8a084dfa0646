"""The datapath of Open vSwitch that forwards the frames of a fabric: userspace or the kernel's.

The kernel's forwards more frames per second (docs/decisions/datapath.md), but needs the module
``openvswitch``, which some kernels lack.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from knotless.base.errors import EmulationError

Choice = Literal["auto", "user", "kernel"]
Datapath = Literal["user", "kernel"]

TYPES: Mapping[Datapath, str] = {"user": "netdev", "kernel": "system"}
"""Open vSwitch's names (``datapath_type`` of a bridge)."""

TEXTS: Mapping[Datapath, str] = {"user": "userspace datapath", "kernel": "kernel datapath"}
"""As messages and pages call them."""

_MODULE = Path("/sys/module/openvswitch")
_TRY = """
ip link add port type veth peer name far
ovs-dpctl add-dp datapath
ovs-dpctl add-if datapath port
"""
"""Asking for the datapath loads the module. It vanishes with the namespace that this runs in."""
_LIMIT_S = 20.0


def chosen(choice: Choice, try_kernel: Callable[[], str | None] | None = None) -> Datapath:
    """Return the datapath to use; ``auto`` is the kernel's where it works.

    ``try_kernel`` returns why the kernel's does not work, or None; it is :func:`why_no_kernel`,
    which needs root. Raises :class:`EmulationError` if the kernel's is asked for and does not work.
    """
    if choice == "user":
        return "user"
    reason = (try_kernel or why_no_kernel)()
    if reason is None:
        return "kernel"
    if choice == "kernel":
        raise EmulationError(
            f"--datapath kernel: {reason}; omit the option to use the userspace datapath"
        )
    return "user"


def text_of(report: Mapping[str, Any]) -> str:
    """Return the datapath of a fabric, by its :func:`emulation.report.report`, for messages."""
    in_use = report.get("settings", {}).get("datapath")
    return TEXTS.get(in_use, "datapath unknown")


def why_no_kernel(module: Path = _MODULE) -> str | None:
    """Try the kernel's datapath in a network namespace of its own; return why it does not work."""
    try:
        done = subprocess.run(
            ["unshare", "--net", "sh", "-ec", _TRY],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the kernel's datapath cannot be tried: {' '.join(str(error).split())[:200]}"
    if done.returncode == 0:
        return None
    if not module.is_dir():
        return "this kernel has no module openvswitch ('modprobe openvswitch' would load it)"
    error_lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return f"the module openvswitch is loaded, but does not work: {error_lines[-1][:200]}"
