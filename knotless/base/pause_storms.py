"""Hosts that pause their links too long, and storms, as text for people. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from knotless.base.printable import listed
from knotless.base.probe_source import of_hosts

PAUSED_TOO_LONG = 0.7
"""Share of the last second from which on a host is a problem, even if nothing waits for it."""
_SHOWN = 4


def name_flows(hosts: Sequence[dict[str, Any]], names: Mapping[str, str]) -> None:
    """Replace MAC addresses in the flows of pausing hosts by host names, where known.

    Probes of the controller are no flows of hosts: they are left out. ``hosts`` is
    ``pausing_hosts`` of the emulator's status; ``names`` maps MAC addresses to hosts.
    """
    for host in hosts:
        host["flows"] = of_hosts(host["flows"])
        for flow in host["flows"]:
            flow["from"] = names.get(flow["from"], flow["from"])
            flow["to"] = names.get(flow["to"], flow["to"])


def too_long(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of ``pausing_hosts`` that are a problem: see :func:`problems`."""
    return [
        host
        for host in status.get("pausing_hosts", ())
        if host["standing"]
        or host["limited_now"]
        or host["storm"]
        or host["share"] >= PAUSED_TOO_LONG
    ]


def problems(status: Mapping[str, Any]) -> list[str]:
    """Return the problems that pauses of hosts and storms cause, one line each.

    ``status`` is the emulator's. A host is a problem while channels stand still behind it, while
    its pauses exceed its limit or cause a storm, or while it pauses its link most of the time.
    """
    lines = []
    for host in too_long(status):
        text = f"host {host['host']} asked {host['channel']} to pause for {host['share']:.0%} of"
        text += " the last second"
        if host["limited_now"]:
            text += f" and exceeds its limit ({host['ignored_us'] / 1e6:.1f} s ignored)"
        if host["standing"]:
            text += f": {listed(host['standing'], _SHOWN)} stand still behind it"
        if flows := [f"{flow['from']} to {flow['to']}" for flow in host["flows"]]:
            text += f"; flows that wait: {listed(flows, _SHOWN)}"
        lines.append(text)
    for storm in status.get("storms", ()):
        if storm["storming"]:
            dropped = f", {storm['dropped_frames']} frames dropped"
            lines.append(
                f"watchdog: storm on {storm['channel']}: {storm['detected']} detected"
                f"{dropped if storm['dropped_frames'] else ''}"
            )
    return lines
