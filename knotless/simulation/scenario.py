"""The description of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from knotless.base.errors import SimulationError
from knotless.base.flow_control import AUTO, refuse_bubbles
from knotless.forwarding.state import ForwardingState
from knotless.routing.plan import Plan
from knotless.simulation.settings import Demand, Endpoints, Routes, Run, Switching
from knotless.simulation.traffic import Load
from knotless.traffic.patterns import Pattern

DEFAULT_PACKETS = 2000
"""Default duration of traffic without an end: the time in which a host sends this many packets."""
_GROUPS = {
    "routes": Routes,
    "demand": Demand,
    "switching": Switching,
    "endpoints": Endpoints,
    "run": Run,
}


@dataclass(frozen=True, init=False)
class Scenario:
    """A plan, its traffic, and the settings of switches, hosts and run.

    Parameters
    ----------
    plan : Plan
        The plan of the fabric.
    pattern : str or Pattern
        The pattern of the traffic.
    load : Load, optional
        The amount of traffic. By default every flow always has a packet to send.
    **settings
        Fields of the five groups in :mod:`knotless.simulation.settings`, by their names:
        ``flow_control="pfc"``, ``duration_us=1e6``. Without ``flow_control``, or with ``auto``, it
        is the plan's.

    Raises
    ------
    SimulationError
        A setting does not exist, is not possible, or does not fit the fabric.

    """

    routes: Routes
    demand: Demand
    switching: Switching
    endpoints: Endpoints
    run: Run

    def __init__(
        self, plan: Plan, pattern: str | Pattern, load: Load | None = None, **settings: Any
    ) -> None:
        settings |= {"plan": plan, "pattern": pattern, "load": Load() if load is None else load}
        if settings.setdefault("flow_control", AUTO) == AUTO:
            settings["flow_control"] = plan.flow_control
        for name, group in _GROUPS.items():
            own = {each.name for each in fields(group)} & settings.keys()
            object.__setattr__(self, name, group(**{key: settings.pop(key) for key in own}))
        if settings:
            raise SimulationError(f"a simulation has no setting {', '.join(sorted(settings))}")
        self._check_hosts()

    def _check_hosts(self) -> None:
        """Raise SimulationError for hosts that do not exist, and pauses that nobody obeys."""
        fabric, flow_control = self.plan.fabric, self.switching.flow_control
        if self.endpoints.messages is not None:
            refuse_bubbles(flow_control, "message classes of hosts")
        links = flow_control.host_links
        for pause in self.endpoints.host_pauses:
            if pause.host not in fabric.host_index:
                raise SimulationError(f"{fabric.name} has no host {pause.host[:40]!r}")
            if not links.pauses or links.by_credits or fabric.hub is not None:
                raise SimulationError(
                    f"{pause.host} cannot pause its link: under {flow_control.description} links to"
                    " hosts have no pauses; use --flow-control pause or pfc"
                )
        for host, _ in self.endpoints.receiver_rates:
            if host not in fabric.host_index:
                raise SimulationError(f"receiver rate: {fabric.name} has no host {host!r}")

    @property
    def plan(self) -> Plan:
        """The plan of the fabric."""
        return self.routes.plan

    @cached_property
    def forwarding(self) -> ForwardingState:
        """The forwarding state. Raises PlanError if switches cannot implement the plan."""
        return self.routes.forwarding_state()

    @property
    def records_completions(self) -> bool:
        """Return whether the completion of every message is recorded."""
        return self.run.completions or self.demand.workload is not None

    def check_end(self) -> None:
        """Raise SimulationError if the simulation would never end."""
        if self.run.duration_us is None and not self.demand.ends:
            arrivals = self.demand.load.arrivals
            raise SimulationError(f"{arrivals} traffic never ends: give a duration")

    def changed(self, **settings: Any) -> Scenario:
        """Return the same scenario with other settings; raises SimulationError as for a new one."""
        groups = [getattr(self, name) for name in _GROUPS]
        return Scenario(**{key: v for group in groups for key, v in vars(group).items()} | settings)

    def lasting(self, duration_us: float) -> Scenario:
        """Return the same scenario with another duration."""
        return self.changed(duration_us=duration_us)

    def that_ends(self) -> Scenario:
        """Return the same scenario; without an end, with the time of :data:`DEFAULT_PACKETS`."""
        if self.run.duration_us is not None or self.demand.ends:
            return self
        slowest_mbps = min(host.rate_mbps for host in self.plan.fabric.hosts)
        default_us = 8 * DEFAULT_PACKETS * self.demand.packet_bytes / slowest_mbps
        return self.lasting(self.run.warm_up_us + default_us)
