"""The description of a simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from knotless._core.simulator import BROADCAST_BURST_BYTES, BROADCAST_SHARE
from knotless.base.broadcasts import check_limit
from knotless.base.errors import KnotlessError, SimulationError
from knotless.base.flow_control import AUTO, FLOW_CONTROLS
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.state import ForwardingState
from knotless.routing.plan import Plan
from knotless.simulation.channels import Buffers
from knotless.simulation.traffic import Load
from knotless.traffic.patterns import Pattern, pattern_named

MAX_PACKET_BYTES = 65_000
MAX_TIME_US = 1e13
"""115 days: virtual time is a 64-bit number of picoseconds."""
MAX_COMPUTING = 1000.0
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
class Scenario:
    """A plan, its traffic, and the settings of the switches.

    Times are virtual microseconds. Nothing is counted before ``warm_up_us``. With ``duration_us``
    None the simulation runs until no event is left, which requires traffic that ends. ``pattern``
    is a pattern or its name; with ``trace`` (a file) or ``senders`` it is only a name for
    results. If the trace is of a program, its compute times are multiplied by ``computing``.
    ``flow_control`` ``auto`` means the plan's. ``packet_bytes`` is the size of a packet without
    the 18 bytes of its Ethernet header and FCS. ``cut_through`` is the number of bytes after
    which a frame is forwarded; 0 is store-and-forward. ``watchdog_us`` is the detection time of
    the switches' watchdogs; their restoration time is twice that by default. ``broadcast_share``
    and ``broadcast_burst_bytes`` limit the broadcasts of each host (0: no limit). ``senders`` are
    (host, number of a multicast group of the plan) and replace the pattern; number
    :data:`BROADCAST` is all hosts. ``state`` is the forwarding state, by default that of the plan.
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
    watchdog_action: Literal["drop", "forward"] = "drop"
    broadcast_share: float = BROADCAST_SHARE
    broadcast_burst_bytes: int = BROADCAST_BURST_BYTES
    link_changes: tuple[LinkChange, ...] = ()
    warm_up_us: float = 0.0
    duration_us: float | None = None
    seed: int = 1
    senders: tuple[tuple[str, int], ...] = ()
    state: ForwardingState | None = None

    def __post_init__(self) -> None:
        """Resolve ``auto`` flow control."""
        if self.flow_control == AUTO:
            object.__setattr__(self, "flow_control", self.plan.flow_control)

    def validate(self) -> None:
        """Raise SimulationError for invalid parameters."""
        if self.flow_control not in FLOW_CONTROLS:
            raise SimulationError(f"flow control must be one of {', '.join(FLOW_CONTROLS)}")
        if not 1 <= self.packet_bytes <= MAX_PACKET_BYTES:
            raise SimulationError(
                f"packets must have 1 to {MAX_PACKET_BYTES} bytes, not {self.packet_bytes}"
            )
        if not 0 <= self.cut_through <= MAX_PACKET_BYTES:
            raise SimulationError(f"cut-through after {self.cut_through} bytes is not possible")
        if not 0 <= self.seed < 2**64:
            raise SimulationError(f"the seed must be 0 to 2**64 - 1, not {self.seed}")
        if not 0 <= self.computing <= MAX_COMPUTING:
            raise SimulationError(f"computing: {self.computing:g} is not in 0..{MAX_COMPUTING:g}")
        times = [("warm-up", self.warm_up_us, 0.0), ("watchdog", self.watchdog_us, 1e-6)]
        times += [("watchdog restoration", self.watchdog_restore_us, 0.0)]
        times += [("duration", self.duration_us, 1e-6)]
        times += [
            (f"change of {change.channel}", change.at_us, 0.0) for change in self.link_changes
        ]
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
        if self.state is not None and self.state.fabric != self.plan.fabric:
            raise SimulationError(f"the state is of {self.state.fabric.name}, another fabric")
        if self.duration_us is None and not self.ends:
            raise SimulationError(f"{self.load.arrivals} traffic never ends: give a duration")

    @cached_property
    def forwarding(self) -> ForwardingState:
        """The forwarding state. Raises PlanError if switches cannot implement the plan."""
        return state_of_plan(self.plan) if self.state is None else self.state

    @property
    def ends(self) -> bool:
        """Return whether the traffic ends by itself."""
        if self.trace is not None or self.load.arrivals == "acknowledged":
            return True
        return self.in_phases

    @property
    def in_phases(self) -> bool:
        """Return whether hosts send in phases, about as many as there are hosts."""
        return self.trace is None and not self.senders and self.chosen_pattern.in_phases

    @property
    def chosen_pattern(self) -> Pattern:
        """The pattern. Raises PatternError if it does not exist."""
        return pattern_named(self.pattern) if isinstance(self.pattern, str) else self.pattern

    @property
    def pattern_name(self) -> str:
        """The pattern's name in results."""
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
