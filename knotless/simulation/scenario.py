"""The description of a simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from knotless._core.simulator import BROADCAST_BURST_BYTES, BROADCAST_SHARE
from knotless.base.broadcasts import check_limit
from knotless.base.errors import KnotlessError, SimulationError
from knotless.base.flow_control import AUTO, FLOW_CONTROLS, FlowControl
from knotless.base.packets import MAX_PACKET_BYTES
from knotless.base.switch_settings import SwitchFile
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.state import ForwardingState
from knotless.routing.choices.choice import Binding
from knotless.routing.plan import Plan
from knotless.simulation.channels import MAX_CREDIT_UNIT_BYTES, Buffers, PauseLimit
from knotless.simulation.traffic import Load
from knotless.simulation.transport import Transport
from knotless.simulation.workload import Flows, Workload
from knotless.traffic.patterns import Pattern, pattern_named

MAX_TIME_US = 1e13
"""115 days: virtual time is a 64-bit number of picoseconds."""
MAX_COMPUTING = 1000.0
MIN_RATE_MBPS, MAX_RATE_MBPS = 0.001, 1e9
BROADCAST = 0
"""In place of the number of a multicast group, which count from 1: frames to all hosts."""
DEFAULT_PACKETS = 2000
"""Default duration of traffic without an end: the time in which a host sends this many packets."""


@dataclass(frozen=True)
class LinkChange:
    """A link that fails (or with ``up`` is restored); ``channel`` is one of its ``SWITCH:PORT``."""

    at_us: float
    channel: str
    up: bool


@dataclass(frozen=True)
class HostPause:
    """A host that asks its switch to send nothing to it from a time on, until another or for ever.

    The request reaches the switch at ``at_us``, and replaces the host's earlier one.
    """

    at_us: float
    host: str
    until_us: float | None = None


@dataclass(frozen=True)
class Scenario:
    """A plan, its traffic, and the settings of the switches.

    Times are virtual microseconds. Nothing is counted before ``warm_up_us``. With ``duration_us``
    None the simulation runs until no event is left, which requires traffic that ends. ``pattern``
    is a pattern or its name; with ``trace`` (a file) or ``senders`` it is only a name for
    results. Compute times of a program's trace are multiplied by ``computing``.
    ``flow_control`` ``auto`` means the plan's. ``packet_bytes`` is the size of a packet without
    the 18 bytes of its Ethernet header and FCS. ``cut_through`` is the number of bytes after
    which a frame is forwarded; 0 is store-and-forward. ``watchdog_us`` is the detection time of
    the switches' watchdogs; their restoration time is twice that by default. ``host_pauses`` are
    pauses of hosts, which ``pause_limit`` limits. ``broadcast_share``
    and ``broadcast_burst_bytes`` limit the broadcasts of each host (0: no limit). ``senders`` are
    (host, number of a multicast group of the plan) and replace the pattern; number
    :data:`BROADCAST` is all hosts. ``state`` is the forwarding state, by default that of the plan.
    A ``workload`` replaces the load; the pattern is that of its random flows, or a name. With a
    workload, or ``completions``, the completion of every message is recorded. With ``take_turns``
    the messages of a host take turns, packet by packet; otherwise one follows the other.
    ``switch_settings`` say what switches are like inside; where they say nothing, ``buffers`` hold.
    With a ``transport``, hosts send in queue pairs, which take turns; otherwise as fast as their
    lines permit. ``receiver_rates`` are (host, Mbit/s) of hosts that take frames from their buffer
    at that rate, FCS included, and not as fast as they arrive. With the engine ``ugal``, a frame
    takes its direct path if the bytes in its queue, times its hops, are not more than
    ``ugal_threshold`` above those of the path over an intermediate.
    """

    plan: Plan
    pattern: str | Pattern
    load: Load = field(default_factory=Load)
    trace: str | None = None
    computing: float = 1.0
    flow_control: str = AUTO
    buffers: Buffers = field(default_factory=Buffers)
    packet_bytes: int = 1500
    cut_through: int = 0
    watchdog_us: float | None = None
    watchdog_restore_us: float | None = None
    watchdog_action: Literal["drop", "drop-egress", "forward"] = "drop"
    broadcast_share: float = BROADCAST_SHARE
    broadcast_burst_bytes: int = BROADCAST_BURST_BYTES
    link_changes: tuple[LinkChange, ...] = ()
    host_pauses: tuple[HostPause, ...] = ()
    pause_limit: PauseLimit = field(default_factory=PauseLimit)
    warm_up_us: float = 0.0
    duration_us: float | None = None
    seed: int = 1
    senders: tuple[tuple[str, int], ...] = ()
    state: ForwardingState | None = None
    switch_settings: SwitchFile | None = None
    workload: Workload | None = None
    take_turns: bool = False
    completions: bool = False
    transport: Transport | None = None
    receiver_rates: tuple[tuple[str, float], ...] = ()
    ugal_threshold: int = 0

    def __post_init__(self) -> None:
        """Resolve ``auto`` flow control."""
        if self.flow_control == AUTO:
            object.__setattr__(self, "flow_control", self.plan.flow_control)

    def validate(self) -> None:
        """Raise SimulationError for invalid parameters."""
        if self.flow_control not in FLOW_CONTROLS:
            raise SimulationError(f"flow control must be one of {', '.join(FLOW_CONTROLS)}")
        self._validate_host_pauses()
        if not 1 <= self.packet_bytes <= MAX_PACKET_BYTES:
            raise SimulationError(
                f"packets must have 1 to {MAX_PACKET_BYTES} bytes, not {self.packet_bytes}"
            )
        if not 0 <= self.cut_through <= MAX_PACKET_BYTES:
            raise SimulationError(f"cut-through after {self.cut_through} bytes is not possible")
        if not 0 <= self.seed < 2**64:
            raise SimulationError(f"the seed must be 0 to 2**64 - 1, not {self.seed}")
        if not 0 <= self.ugal_threshold < 2**40:
            raise SimulationError(
                f"threshold of ugal: {self.ugal_threshold} bytes are not in 0..2**40 - 1"
            )
        if self.ugal_threshold and self.plan.choice.binding is not Binding.QUEUES:
            raise SimulationError(f"{self.plan.engine} has no threshold of ugal: use engine ugal")
        if not 0 <= self.computing <= MAX_COMPUTING:
            raise SimulationError(f"computing: {self.computing:g} is not in 0..{MAX_COMPUTING:g}")
        times = [("warm-up", self.warm_up_us, 0.0), ("watchdog", self.watchdog_us, 1e-6)]
        times += [("watchdog restoration", self.watchdog_restore_us, 0.0)]
        times += [("duration", self.duration_us, 1e-6)]
        times += [
            (f"change of {change.channel}", change.at_us, 0.0) for change in self.link_changes
        ]
        for pause in self.host_pauses:
            what = f"pause of {pause.host}"
            times += [(what, pause.at_us, 0.0), (f"end of the {what}", pause.until_us, pause.at_us)]
        times += [("longest pause of a host", self.pause_limit.longest_us, 0.0)]
        if not 0 <= self.pause_limit.share <= 1:
            raise SimulationError(
                f"hosts may pause for a share of 0 to 1, not {self.pause_limit.share:g}"
            )
        for name, time_us, least_us in times:
            if time_us is not None and not (
                math.isfinite(time_us) and least_us <= time_us <= MAX_TIME_US
            ):
                raise SimulationError(
                    f"{name}: {time_us:g} us is not in {least_us:g}..{MAX_TIME_US:g}"
                )
        if self.duration_us is not None and self.warm_up_us >= self.duration_us:
            raise SimulationError("the warm-up must be shorter than the duration")
        try:
            check_limit(self.broadcast_share, self.broadcast_burst_bytes)
        except KnotlessError as error:
            raise SimulationError(str(error)) from None
        limits = self.buffers
        for name, value in vars(limits).items():
            if value is not None and not 0 <= value < 2**40:
                raise SimulationError(f"{name}: {value} bytes are not in 0..2**40 - 1")
        if limits.credit_unit is not None and not 1 <= limits.credit_unit <= MAX_CREDIT_UNIT_BYTES:
            raise SimulationError(
                f"a unit of credit has 1 to {MAX_CREDIT_UNIT_BYTES} bytes, not {limits.credit_unit}"
            )
        if self.transport is not None:
            self.transport.validate()
        known = self.plan.fabric.host_index
        for host, rate_mbps in self.receiver_rates:
            if host not in known:
                raise SimulationError(
                    f"receiver rate: {self.plan.fabric.name} has no host {host!r}"
                )
            if not MIN_RATE_MBPS <= rate_mbps <= MAX_RATE_MBPS:
                raise SimulationError(
                    f"receiver rate of {host}: {rate_mbps:g} Mbit/s is not in"
                    f" {MIN_RATE_MBPS:g}..{MAX_RATE_MBPS:g}"
                )
        if self.state is not None and self.state.fabric != self.plan.fabric:
            raise SimulationError(f"the state is of {self.state.fabric.name}, another fabric")
        if self.duration_us is None and not self.ends:
            raise SimulationError(f"{self.load.arrivals} traffic never ends: give a duration")

    def _validate_host_pauses(self) -> None:
        """Raise SimulationError for pauses of hosts that do not exist or that nobody obeys."""
        links = FlowControl(self.flow_control).host_links
        for pause in self.host_pauses:
            if pause.host not in self.plan.fabric.host_index:
                raise SimulationError(f"{self.plan.fabric.name} has no host {pause.host[:40]!r}")
            if not links.pauses or links.by_credits or self.plan.fabric.hub is not None:
                raise SimulationError(
                    f"{pause.host} cannot pause its link: under"
                    f" {FlowControl(self.flow_control).description} links to hosts have no pauses;"
                    " use --flow-control pause or pfc"
                )

    @cached_property
    def forwarding(self) -> ForwardingState:
        """The forwarding state. Raises PlanError if switches cannot implement the plan."""
        return state_of_plan(self.plan) if self.state is None else self.state

    @property
    def ends(self) -> bool:
        """Return whether the traffic ends by itself."""
        if self.trace is not None or self.workload is not None:
            return True
        return self.load.arrivals == "acknowledged" or self.in_phases

    @property
    def in_phases(self) -> bool:
        """Return whether hosts send in phases, about as many as there are hosts."""
        if self.trace is not None or self.workload is not None:
            return False
        return not self.senders and self.chosen_pattern.in_phases

    @property
    def records_completions(self) -> bool:
        """Return whether the completion of every message is recorded."""
        return self.completions or self.workload is not None

    @property
    def chosen_pattern(self) -> Pattern:
        """The pattern. Raises PatternError if it does not exist."""
        return pattern_named(self.pattern) if isinstance(self.pattern, str) else self.pattern

    @property
    def pattern_name(self) -> str:
        """The pattern's name in results, or that of the workload."""
        workload = self.workload
        if workload is not None and not (isinstance(workload, Flows) and workload.random):
            return workload.name
        return self.pattern if isinstance(self.pattern, str) else self.pattern.name

    def lasting(self, duration_us: float) -> Scenario:
        """Return the same scenario with another duration."""
        return replace(self, duration_us=duration_us)

    def that_ends(self) -> Scenario:
        """Return the same scenario; without an end, with the time of :data:`DEFAULT_PACKETS`."""
        if self.duration_us is not None or self.ends:
            return self
        slowest_mbps = min(host.rate_mbps for host in self.plan.fabric.hosts)
        usual_us = 8 * DEFAULT_PACKETS * self.packet_bytes / slowest_mbps
        return self.lasting(self.warm_up_us + usual_us)
