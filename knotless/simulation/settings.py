"""The settings of a simulation, in five groups: routes, demand, switching, endpoints and run.

Each checks itself when it is made, and raises SimulationError for a value that is not possible.
Times are virtual microseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from knotless._core.simulator import BROADCAST_BURST_BYTES, BROADCAST_SHARE
from knotless.base.broadcasts import check_limit
from knotless.base.errors import KnotlessError, SimulationError
from knotless.base.flow_control import FLOW_CONTROLS, FlowControl, refuse_bubbles
from knotless.base.model_limits import MAX_BYTES, MAX_PACKET_BYTES
from knotless.base.suggestions import is_not_one_of
from knotless.forwarding.from_plan import state_of_plan
from knotless.forwarding.state import ForwardingState
from knotless.routing.choices.choice import Binding
from knotless.routing.plan import Plan
from knotless.simulation.message_classes import refuse_several_answers
from knotless.simulation.traffic import Load
from knotless.simulation.transport import Transport
from knotless.simulation.workload import Flows, Workload
from knotless.traffic.patterns import Pattern, pattern_named
from knotless.verification.bubbles import AS_PROVEN, Bubbles

if TYPE_CHECKING:
    from knotless.base.switch_settings import SwitchFile
    from knotless.traffic.endpoints import EndpointModel


MAX_TIME_US = 1e13
"""115 days: virtual time is a 64-bit number of picoseconds."""
MAX_COMPUTING = 1000.0
MAX_CREDIT_UNIT_BYTES = 65_536
MAX_LINE_ERRORS, MAX_IN_A_ROW, MAX_RETRY = 0.01, 1_000_000, 255
MIN_RATE_MBPS, MAX_RATE_MBPS = 0.001, 1e9
BROADCAST = 0
"""In place of the number of a multicast group, which count from 1: frames to all hosts."""


def _check_time(name: str, time_us: float | None, least_us: float = 0.0) -> None:
    """Raise SimulationError for a time that is not in least_us..MAX_TIME_US."""
    if time_us is not None and not (math.isfinite(time_us) and least_us <= time_us <= MAX_TIME_US):
        raise SimulationError(f"{name}: {time_us:g} us is not in {least_us:g}..{MAX_TIME_US:g}")


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
class Buffers:
    """Limits of every port, in bytes of frames; None is the default for the link.

    ``queue`` limits an egress queue without flow control. ``xoff`` and ``xon`` are the ingress
    occupancies at which the sender is paused and resumed; ``headroom`` is the room above ``xoff``.
    Under credits, ``credit`` is the room of each virtual channel, by default as much as XOFF and
    headroom have together; ``credit_unit`` are the bytes of a unit in which it is counted, with
    bubbles by default a longest frame.
    """

    queue: int | None = None
    xoff: int | None = None
    xon: int | None = None
    headroom: int | None = None
    credit: int | None = None
    credit_unit: int | None = None

    def __post_init__(self) -> None:
        """Raise SimulationError for sizes that are not possible."""
        for name, value in vars(self).items():
            if value is not None and not 0 <= value < MAX_BYTES:
                raise SimulationError(f"{name}: {value} bytes are not in 0..2**40 - 1")
        if self.credit_unit is not None and not 1 <= self.credit_unit <= MAX_CREDIT_UNIT_BYTES:
            raise SimulationError(
                f"a unit of credit has 1 to {MAX_CREDIT_UNIT_BYTES} bytes, not {self.credit_unit}"
            )


@dataclass(frozen=True)
class PauseLimit:
    """The time for which a host may pause the channel to it (``docs/decisions/pause-limit.md``).

    A host that pauses for at most the fraction ``share`` of the time, and for ``longest_us`` at
    once, is always obeyed; beyond that it is ignored. A share of 1 is no limit.
    """

    share: float = 0.6
    longest_us: float = 500_000.0

    def __post_init__(self) -> None:
        """Raise SimulationError for a limit that is not possible."""
        _check_time("longest pause of a host", self.longest_us)
        if not 0 <= self.share <= 1:
            raise SimulationError(f"hosts may pause for a share of 0 to 1, not {self.share:g}")


NO_PAUSE_LIMIT = PauseLimit(share=1.0)


@dataclass(frozen=True)
class Routes:
    """A plan and how switches forward.

    ``state`` is the forwarding state, by default that of the plan. With the engine ``ugal``, a
    frame takes its direct path if the bytes in its queue, times its hops, are not more than
    ``ugal_threshold`` above those of the path over an intermediate.
    """

    plan: Plan
    state: ForwardingState | None = None
    ugal_threshold: int = 0

    def __post_init__(self) -> None:
        """Raise SimulationError for a state of another fabric and for an impossible threshold."""
        if not 0 <= self.ugal_threshold < MAX_BYTES:
            raise SimulationError(
                f"threshold of ugal: {self.ugal_threshold} bytes are not in 0..2**40 - 1"
            )
        if self.ugal_threshold and self.plan.choice.binding is not Binding.QUEUES:
            raise SimulationError(f"{self.plan.engine} has no threshold of ugal: use engine ugal")
        if self.state is not None and self.state.fabric != self.plan.fabric:
            raise SimulationError(f"the state is of {self.state.fabric.name}, another fabric")

    def forwarding_state(self) -> ForwardingState:
        """Return the forwarding state. Raises PlanError if switches cannot implement the plan."""
        return state_of_plan(self.plan) if self.state is None else self.state


@dataclass(frozen=True)
class Demand:
    """The traffic that hosts send.

    ``pattern`` is a pattern or its name; with ``trace`` (a file) or ``senders`` it is only a name
    for results. ``senders`` are (host, number of a multicast group of the plan) and replace the
    pattern; number :data:`BROADCAST` is all hosts. A ``workload`` replaces the load; the pattern
    is that of its random flows, or a name.
    Compute times of a program's trace are multiplied by ``computing``. With ``take_turns`` the
    messages of a host take turns, packet by packet; otherwise one follows the other.
    ``packet_bytes`` is the size of a packet without the 18 bytes of its Ethernet header and FCS.
    """

    pattern: str | Pattern
    load: Load = field(default_factory=Load)
    trace: str | None = None
    senders: tuple[tuple[str, int], ...] = ()
    workload: Workload | None = None
    computing: float = 1.0
    take_turns: bool = False
    packet_bytes: int = 1500

    def __post_init__(self) -> None:
        """Raise SimulationError for packets or a factor that are not possible."""
        if not 1 <= self.packet_bytes <= MAX_PACKET_BYTES:
            raise SimulationError(
                f"packets must have 1 to {MAX_PACKET_BYTES} bytes, not {self.packet_bytes}"
            )
        if not 0 <= self.computing <= MAX_COMPUTING:
            raise SimulationError(f"computing: {self.computing:g} is not in 0..{MAX_COMPUTING:g}")

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
    def chosen_pattern(self) -> Pattern:
        """The pattern. Raises PatternError if it does not exist."""
        return pattern_named(self.pattern) if isinstance(self.pattern, str) else self.pattern

    @property
    def name(self) -> str:
        """The pattern's name in results, or that of the workload."""
        workload = self.workload
        if workload is not None and not (isinstance(workload, Flows) and workload.random):
            return workload.name
        return self.pattern if isinstance(self.pattern, str) else self.pattern.name


@dataclass(frozen=True)
class Switching:
    """Flow control, and what switches are like inside.

    ``switch_settings`` come from a file; where they say nothing, ``buffers`` hold.
    ``cut_through`` is the number of bytes after which a frame is forwarded; 0 is
    store-and-forward. ``watchdog_us`` is the detection time of the watchdogs; their restoration
    time is twice that by default. ``broadcast_share`` and ``broadcast_burst_bytes`` limit the
    broadcasts of each host (0: no limit). ``line_errors`` is the bit error rate of every line, and
    ``errors_in_a_row`` how many frames in a row have errors on average. With ``retry`` links repeat
    frames (``docs/retry.md``), and give up after that many replays without progress (0: never).
    ``bubbles`` say how frames enter rings, if the flow control has bubbles; the unit of credit is
    that of the ``buffers``.
    """

    flow_control: FlowControl
    buffers: Buffers = field(default_factory=Buffers)
    switch_settings: SwitchFile | None = None
    cut_through: int = 0
    watchdog_us: float | None = None
    watchdog_restore_us: float | None = None
    watchdog_action: Literal["drop", "drop-egress", "forward"] = "drop"
    broadcast_share: float = BROADCAST_SHARE
    broadcast_burst_bytes: int = BROADCAST_BURST_BYTES
    line_errors: float = 0.0
    errors_in_a_row: int = 1
    retry: int | None = None
    bubbles: Bubbles = AS_PROVEN

    def __post_init__(self) -> None:
        """Take the flow control by its name; raise SimulationError for what is not possible."""
        if self.flow_control not in FLOW_CONTROLS:
            reason = is_not_one_of(FLOW_CONTROLS)
            raise SimulationError(f"flow control {self.flow_control!r} {reason}")
        object.__setattr__(self, "flow_control", FlowControl(self.flow_control))
        if self.switch_settings is not None:
            refuse_bubbles(self.flow_control, "settings of switches")
        if not 0 <= self.cut_through <= MAX_PACKET_BYTES:
            raise SimulationError(f"cut-through after {self.cut_through} bytes is not possible")
        if not 0 <= self.line_errors <= MAX_LINE_ERRORS:
            raise SimulationError(
                f"line errors: {self.line_errors:g} for each bit are not in 0..{MAX_LINE_ERRORS:g}"
            )
        if not 1 <= self.errors_in_a_row <= MAX_IN_A_ROW:
            raise SimulationError(
                f"1 to {MAX_IN_A_ROW} frames in a row may have errors, not {self.errors_in_a_row}"
            )
        if self.retry is not None and not 0 <= self.retry <= MAX_RETRY:
            raise SimulationError(f"retry: {self.retry} replays are not in 0..{MAX_RETRY}")
        _check_time("watchdog", self.watchdog_us, 1e-6)
        _check_time("watchdog restoration", self.watchdog_restore_us)
        try:
            check_limit(self.broadcast_share, self.broadcast_burst_bytes)
        except KnotlessError as error:
            raise SimulationError(str(error)) from None


@dataclass(frozen=True)
class Endpoints:
    """Transport, receiving rates and pauses of hosts.

    With a ``transport``, hosts send in queue pairs, which take turns; otherwise as fast as their
    lines permit. ``receiver_rates`` are (host, Mbit/s) of hosts that take frames from their buffer
    at that rate, FCS included, and not as fast as they arrive. ``host_pauses`` are pauses of
    hosts, which ``pause_limit`` limits. With ``messages``, hosts have their classes: each packet
    is a message of a class that no other requires, and hosts send what it requires.
    """

    transport: Transport | None = None
    receiver_rates: tuple[tuple[str, float], ...] = ()
    host_pauses: tuple[HostPause, ...] = ()
    pause_limit: PauseLimit = field(default_factory=PauseLimit)
    messages: EndpointModel | None = None

    def __post_init__(self) -> None:
        """Raise SimulationError for rates, times or a transport that are not possible."""
        if self.messages is not None:
            refuse_several_answers(self.messages)
        if self.transport is not None:
            self.transport.validate()
        for host, rate_mbps in self.receiver_rates:
            if not MIN_RATE_MBPS <= rate_mbps <= MAX_RATE_MBPS:
                raise SimulationError(
                    f"receiver rate of {host}: {rate_mbps:g} Mbit/s is not in"
                    f" {MIN_RATE_MBPS:g}..{MAX_RATE_MBPS:g}"
                )
        for pause in self.host_pauses:
            _check_time(f"pause of {pause.host}", pause.at_us)
            _check_time(f"end of the pause of {pause.host}", pause.until_us, pause.at_us)


@dataclass(frozen=True)
class Run:
    """Duration, warm-up, seed, records and failures of a simulation.

    Nothing is counted before ``warm_up_us``. With ``duration_us`` None the simulation runs until
    no event is left, which requires traffic that ends. With a workload, or ``completions``, the
    completion of every message is recorded. ``seed`` is that of everything random.
    """

    duration_us: float | None = None
    warm_up_us: float = 0.0
    seed: int = 1
    completions: bool = False
    link_changes: tuple[LinkChange, ...] = ()

    def __post_init__(self) -> None:
        """Raise SimulationError for times or a seed that are not possible."""
        if not 0 <= self.seed < 2**64:
            raise SimulationError(f"the seed must be 0 to 2**64 - 1, not {self.seed}")
        _check_time("warm-up", self.warm_up_us)
        _check_time("duration", self.duration_us, 1e-6)
        for change in self.link_changes:
            _check_time(f"change of {change.channel}", change.at_us)
        if self.duration_us is not None and self.warm_up_us >= self.duration_us:
            raise SimulationError("the warm-up must be shorter than the duration")
