"""Frames that hosts may not send: counted by the switch that drops them, and reported. Pure.

A switch admits from each host port only frames with the host's own address, untagged or with its
own tags, and drops all others. So a host that was moved, that uses another's address, that forges
addresses or floods with them is stopped at its port.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from knotless.topologies.fabric import Fabric

WINDOW_S = 15.0
"""Frames dropped in this time are reported together."""
LEAST = 10
"""Fewer in this time are counted, but are no problem: hosts send odd frames."""


@dataclass(frozen=True)
class Admission:
    """Counters of one switch: the frames that no rule admitted, and per port.

    ``received`` are the frames of each port, ``admitted`` those that a rule admitted. ``local``
    are frames that are for the link only (LLDP, for example), of any port. Switches count rules
    late (Open vSwitch: by up to some seconds), and ports at once.
    """

    dropped: int
    received: Mapping[int, int]
    admitted: Mapping[int, int]
    local: int = 0


class NotAdmitted:
    """Frames that were not admitted to a fabric; times are on the caller's clock, in seconds."""

    def __init__(self, fabric: Fabric) -> None:
        self._seen: dict[str, deque[tuple[float, Admission]]] = {}
        self.total = 0
        """Frames dropped since the controller started."""
        self.fit(fabric)

    def fit(self, fabric: Fabric) -> None:
        """Count the frames of another fabric from now on."""
        self._hosts = {
            name: {port: host.name for port, host in ports.items()}
            for name, ports in fabric.hosts_at.items()
        }
        self.forget()

    def see(self, switch: str, now: Admission, now_s: float) -> None:
        """Take the counters of a switch, which is asked every few seconds."""
        if switch not in self._hosts:
            return  # it has been removed meanwhile
        seen = self._seen.setdefault(switch, deque())
        if seen and now.dropped < seen[-1][1].dropped:
            seen.clear()  # it has new rules, or has started again
        if seen:
            self.total += now.dropped - seen[-1][1].dropped
        seen.append((now_s, now))
        while seen[0][0] < now_s - WINDOW_S:
            seen.popleft()

    def forget(self) -> None:
        """Count from the next counters on: what a change of routes drops is nobody's fault."""
        self._seen.clear()

    def problems(self, now_s: float) -> list[str]:
        """Return one line for each switch that drops such frames now, with the hosts at fault.

        A switch that has not been read for a while, because it is not connected, has none.
        """
        lines = []
        for switch, seen in sorted(self._seen.items()):
            if seen[-1][0] < now_s - WINDOW_S:
                continue
            count = seen[-1][1].dropped - seen[0][1].dropped
            if count >= LEAST:
                ports = self._at_fault(switch, [counters for _, counters in seen])
                hosts = ", ".join(f"{self._hosts[switch][port]} (port {port})" for port in ports)
                lines.append(
                    f"{switch} has dropped {count} frames with an address or a VLAN tag that their"
                    f" port may not use, within {WINDOW_S:g} s; of {hosts or 'an unknown port'}"
                )
        return lines

    def _at_fault(self, switch: str, seen: list[Admission]) -> list[int]:
        """Return the host ports that certainly sent some of the dropped frames.

        What a port had received when it was asked before the last time has been counted by the
        rules now, however late they count.
        """
        first, before, last = seen[0], seen[-2], seen[-1]
        explained = last.local - first.local
        return [
            port
            for port in sorted(self._hosts[switch])
            if before.received.get(port, 0) - first.received.get(port, 0)
            > last.admitted.get(port, 0) - first.admitted.get(port, 0) + explained
        ]
