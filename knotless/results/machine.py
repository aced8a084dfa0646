"""The versions and the machine of a run, stored in ``run.json``."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import psutil

from knotless.base.package import commit, profile

PACKAGES = ("knotless", "ryu", "mininet", "numpy", "pyarrow", "matplotlib")
COMMANDS = {"ovs": ["ovs-vswitchd", "--version"], "iperf3": ["iperf3", "--version"]}


def _first_line(command: list[str]) -> str | None:
    """Return the first line that a command prints, or None if it fails or prints nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


def _package(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str | None]:
    """Return the version of each component; None if not installed or unknown."""
    by_component: dict[str, str | None] = {"python": platform.python_version()}
    by_component |= {name: _package(name) for name in PACKAGES}
    by_component |= {name: _first_line(command) for name, command in COMMANDS.items()}
    by_component["commit"] = commit()
    by_component["profile"] = profile()
    return by_component


def _cpu_model() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return None


def machine() -> dict[str, str | int | float | None]:
    """Describe the machine, without names of hosts or users, because results are published."""
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_mib": psutil.virtual_memory().total // 2**20,
        "load_1min": round(os.getloadavg()[0], 2),
    }
