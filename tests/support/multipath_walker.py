"""A second, slow tracer of plans with multipath, which shares no code with the project's own.

It knows the cables of a fabric and the output ports that ``knotless plan --out`` lists, and follows
every choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

Port = tuple[str, int]
NextHops = Mapping[str, Mapping[str, Sequence[int]]]


class MultipathWalker:
    """Follows packets between switches by ``next_hops``: switch, destination switch, ports."""

    def __init__(self, fabric: Mapping[str, Any], next_hops: NextHops) -> None:
        self.next_hops = next_hops
        self.peer: dict[Port, str] = {}
        for link in fabric["links"]:
            self.peer[link["a"], link["a_port"]] = link["b"]
            self.peer[link["b"], link["b_port"]] = link["a"]

    def ports(self, switch: str, to: str) -> list[Port]:
        """Return the ports of which a packet at ``switch`` takes any one."""
        return [] if switch == to else [(switch, port) for port in self.next_hops[switch][to]]

    def order(self, source: str, to: str) -> list[str]:
        """Return the switches that packets can pass, each before those that follow it.

        Asserts that every choice arrives, and that none goes round.
        """
        done: list[str] = []
        open_switches: set[str] = set()

        def visit(switch: str) -> None:
            assert switch not in open_switches, f"{source} to {to} goes round at {switch}"
            if switch in done:
                return
            ports = self.ports(switch, to)
            assert ports or switch == to, f"{source} to {to} is lost at {switch}"
            open_switches.add(switch)
            for port in ports:
                visit(self.peer[port])
            open_switches.remove(switch)
            done.append(switch)

        visit(source)
        return done[::-1]

    def shares(self, source: str, to: str) -> dict[Port, Fraction]:
        """Return the share of packets that leaves each port, if all choices are equally likely."""
        at: dict[str, Fraction] = {source: Fraction(1)}
        shares: dict[Port, Fraction] = {}
        for switch in self.order(source, to):
            ports = self.ports(switch, to)
            for port in ports:
                shares[port] = at[switch] / len(ports)
                peer = self.peer[port]
                at[peer] = at.get(peer, Fraction(0)) + shares[port]
        assert at[to] == 1
        return shares

    def dependencies(self, source: str, to: str) -> set[tuple[Port, Port]]:
        """Return which port can be held while which other is waited for, by any choice."""
        return {
            (held, wanted)
            for switch in self.order(source, to)
            for held in self.ports(switch, to)
            for wanted in self.ports(self.peer[held], to)
        }

    def lengths(self, source: str, to: str) -> set[int]:
        """Return the numbers of channels that paths have."""
        found = {to: {0}}
        for switch in reversed(self.order(source, to)):
            for port in self.ports(switch, to):
                onward = {1 + length for length in found[self.peer[port]]}
                found[switch] = found.get(switch, set()) | onward
        return found[source]
