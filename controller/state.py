"""What the controller knows of its fabric: plan, rules, verdict, and how far each switch is.

Pure: the event handlers tell it what happened, the REST interface asks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from controller.config import Config
from controller.reconcile import FoundRule
from forwarding.openflow.rules import FabricRules, SwitchRules
from routing.plan import Plan, make_plan
from topologies import Fabric
from verification.check import Verdict
from verification.checked_plan import CheckedPlan, refuse_deadlock

TWIN_MEMORY_S = 30.0
"""A switch that was turned away tries again within seconds: after this time it is gone."""
_SHOWN = 3


@dataclass
class SwitchState:
    """How far one switch is; ``problems`` are one-line texts without the switch's name."""

    name: str
    dpid: int
    wanted: SwitchRules
    needs: dict[int, str]
    """Port number -> what is at its other end, for the ports that the fabric declares."""
    connected: bool = False
    installed: bool = False
    missing_ports: tuple[int, ...] = ()
    refused: tuple[str, ...] = ()
    foreign: tuple[FoundRule, ...] = ()

    def connect(self, ports: set[int]) -> None:
        """The switch is there, with ``ports``; what it holds is not known yet."""
        self.connected, self.installed, self.refused, self.foreign = True, False, (), ()
        self.see_ports(ports)

    def see_ports(self, ports: set[int]) -> None:
        """Note which ports the switch has now."""
        self.missing_ports = tuple(sorted(self.needs.keys() - ports))

    def disconnect(self) -> None:
        """The switch is gone; it keeps its rules, but nobody can tell which."""
        self.connected = self.installed = False

    def __str__(self) -> str:
        return f"{self.name} (dpid {self.dpid})"

    def problems(self) -> list[str]:
        """Return what is wrong with a connected switch, one line each."""
        lines = [
            f"{self} has no port {port}, which the fabric declares to {self.needs[port]}"
            for port in self.missing_ports
        ]
        lines += [f"{self} refused {text}" for text in self.refused[:_SHOWN]]
        if len(self.refused) > _SHOWN:
            lines.append(f"{self} refused {len(self.refused) - _SHOWN} more such changes")
        if self.foreign:
            first = self.foreign[0]
            lines.append(
                f"{self} holds {len(self.foreign)} rules that are not Knotless's (cookie"
                f" {first.cookie:#x} in table {first.table}): frames that they match are outside"
                " of what was checked; delete them with ovs-ofctl del-flows"
            )
        return lines


@dataclass
class FabricState:
    """The declared fabric and all of its switches.

    ``started_s``, on the caller's clock, is when switches could first connect.
    """

    config: Config
    fabric: Fabric
    plan: Plan
    rules: FabricRules
    summary: dict[str, object]
    verdict: Verdict
    started_s: float = 0.0
    switches: dict[int, SwitchState] = field(default_factory=dict)
    """By dpid."""
    unknown: set[int] = field(default_factory=set)
    """Dpids of connected switches that the fabric does not declare."""
    twins: dict[int, float] = field(default_factory=dict)
    """Dpid with which a second switch has come -> when it last did."""

    @classmethod
    def compute(cls, config: Config, fabric: Fabric) -> FabricState:
        """Plan, compile and check, once and for all.

        Raises KnotlessError if the fabric cannot be routed so, or can deadlock and must not.
        """
        checked = CheckedPlan(make_plan(fabric, config))
        if not config.allow_deadlock:
            checked.refuse_deadlock()
        plan, rules, verdict = checked.plan, checked.rules, checked.rules_verdict
        if not config.allow_deadlock:
            refuse_deadlock(plan, verdict.cycle)
        state = cls(config, fabric, plan, rules, checked.summary(), verdict)
        for switch in fabric.switches:
            needs = {p: f"host {h.name}" for p, h in fabric.hosts_at[switch.name].items()}
            needs |= {
                port: f"{far} port {far_port}"
                for port, (far, far_port) in fabric.neighbours[switch.name].items()
            }
            wanted = rules.get(switch.name, SwitchRules(()))
            state.switches[switch.dpid] = SwitchState(switch.name, switch.dpid, wanted, needs)
        return state

    @property
    def ready(self) -> bool:
        """Whether every switch has acknowledged exactly its rules."""
        return all(switch.installed for switch in self.switches.values())

    def missing_switches(self, now_s: float) -> list[SwitchState]:
        """Return the switches that should have been connected by now."""
        if now_s - self.started_s < self.config.connect_timeout_s:
            return []
        return [switch for switch in self.switches.values() if not switch.connected]

    def problems(self, now_s: float) -> list[str]:
        """Return everything that is wrong, one line each."""
        lines = [f"{switch} is not connected" for switch in self.missing_switches(now_s)]
        lines += [line for switch in self.switches.values() for line in switch.problems()]
        lines += [self.unknown_dpid(dpid) for dpid in sorted(self.unknown)]
        recent = now_s - TWIN_MEMORY_S
        lines += [self.twin(dpid) for dpid, at_s in sorted(self.twins.items()) if at_s > recent]
        lines += self.verdict.problems
        return lines

    def unknown_dpid(self, dpid: int) -> str:
        """Return the line about a switch that the fabric does not declare."""
        dpids = sorted(self.switches)
        known = f"{dpids[0]} to {dpids[-1]}" if dpids else "none"
        return (
            f"a switch with dpid {dpid} is connected, but fabric {self.fabric.name} declares no"
            f" such dpid (it has {known}): nothing is installed on it"
        )

    def twin(self, dpid: int) -> str:
        """Return the line about two switches that claim one dpid."""
        return f"two switches say they are {self.switches[dpid]}: only the first is served"

    def status(self, now_s: float) -> dict[str, Any]:
        """Return what ``GET /status`` answers."""
        return {
            "fabric": self.fabric.name,
            "engine": self.plan.engine,
            "flow_control": self.plan.flow_control,
            "ready": self.ready,
            "switches": {
                switch.name: {
                    "dpid": switch.dpid,
                    "connected": switch.connected,
                    "installed": switch.installed,
                    "rules": len(switch.wanted.rules),
                    "missing_ports": list(switch.missing_ports),
                }
                for switch in self.switches.values()
            },
            "problems": self.problems(now_s),
            "plan": self.summary,
            "check": self.verdict.as_json(),
        }
