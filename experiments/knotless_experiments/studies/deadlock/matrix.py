"""The cases of the deadlock experiment: transfers, routes, tagging, flow control, protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knotless.base.flow_control import CHOICES, FLOW_CONTROLS, FlowControl, resolved
from knotless.base.name_lists import choice, names_in
from knotless.base.switch_settings import SwitchFile
from knotless.routing.request import PlanRequest
from knotless.routing.vlans.assignment import TAGGINGS
from knotless.traffic.theory import Protocol
from knotless_experiments.framework.experiment import EMULATION, Common, ExperimentError
from knotless_experiments.framework.routed import Routed, with_options
from knotless_experiments.framework.switches import with_switches
from knotless_experiments.studies.deadlock import transfers
from knotless_experiments.studies.deadlock.transfers import ACYCLIC, CYCLIC, DATELINE, RING_4

ROUTES = (CYCLIC, ACYCLIC, DATELINE)
DEFAULT_FLOW_CONTROLS = tuple(name for name in FLOW_CONTROLS if not name.switch_links.by_credits)
"""Those of the paper, and PFC."""
PROTOCOLS: tuple[Protocol, ...] = ("udp", "tcp")


@dataclass(frozen=True)
class Case:
    """A run: transfers, routes, tagging, flow control and protocol."""

    routes: str
    flow_control: FlowControl
    protocol: Protocol
    repeat: int = 1
    pattern: str = RING_4.name
    tagging: str = "switch"
    rate_mbps: float | None = None
    delay_us: float | None = None
    switches: SwitchFile | None = None

    @property
    def routed(self) -> Routed:
        """The fabric and its routes."""
        pattern = transfers.named(self.pattern)
        links = {"rate": self.rate_mbps or pattern.rate_mbps}
        delay_us = pattern.delay_us if self.delay_us is None else self.delay_us
        if delay_us is not None:
            links["delay"] = delay_us
        spec = with_options(pattern.spec, **links)
        request = PlanRequest.from_options(**pattern.routes[self.routes], tagging=self.tagging)
        routed = Routed(spec, request, settings=(("allow_deadlock", True),))
        if self.switches is None:
            return routed
        return with_switches(routed, self.switches, self.flow_control)

    @property
    def loses(self) -> bool:
        """True if some link has no flow control, so that frames can be lost."""
        return not self.flow_control.is_lossless

    def __str__(self) -> str:
        """Describe the case for progress bars and errors."""
        where = "" if self.pattern == RING_4.name else f"{self.pattern}, "
        tags = ", tagged by hosts" if self.tagging == "host" else ""
        ways = f"{where}{self.routes} routes{tags}"
        return f"{ways}, flow control {self.flow_control}, {self.protocol.upper()}"


QUICK = (
    Case(CYCLIC, FlowControl.NONE, "udp"),
    Case(CYCLIC, FlowControl.PAUSE, "udp"),
    Case(ACYCLIC, FlowControl.PAUSE, "udp"),
    Case(DATELINE, FlowControl.PFC, "udp"),
)
"""Enough to show the main results: loss, deadlock, and the two ways to avoid it."""


def sensible(routes: str, flow_control: FlowControl) -> bool:
    """Dateline virtual channels are priorities, so they need flow control by priority."""
    return routes != DATELINE or flow_control.switch_links.by_priority


def _resolved(names: Sequence[str], vcs: int) -> list[FlowControl]:
    """Return the flow controls for these names and routes, in the usual order."""
    wanted = {resolved(name, vcs) for name in names}
    return [flow_control for flow_control in FLOW_CONTROLS if flow_control in wanted]


def cases(
    common: Common, options: Mapping[str, Any], switches: SwitchFile | None = None
) -> list[Case]:
    """List the cases in running order: those of one fabric and its routes together.

    Raises ExperimentError for unknown names, and if no sensible case remains.
    """
    patterns = choice(options.get("pattern"), transfers.NAMES, "--pattern", (RING_4.name,))
    by_routes = choice(options.get("routes"), ROUTES, "--routes")
    by_tagging = choice(options.get("tagging"), TAGGINGS, "--tagging", TAGGINGS[:1])
    asked = names_in(options.get("flow_control"), DEFAULT_FLOW_CONTROLS)
    by_flow_control = choice(asked, CHOICES, "--flow-control")
    protocols = PROTOCOLS if common.on == EMULATION else PROTOCOLS[:1]
    by_protocol = choice(options.get("protocol"), protocols, "--protocol")
    quick = {(case.routes, case.flow_control, case.protocol) for case in QUICK}
    runs = [
        Case(
            *(r, f, p, repeat, pattern.name, tagging),
            rate_mbps=common.rate_mbps,
            delay_us=options.get("delay"),
            switches=switches,
        )
        for pattern, its_routes in transfers.chosen(patterns)
        for tagging in by_tagging
        for r in its_routes
        if r in by_routes
        for f in _resolved(by_flow_control, pattern.routes[r].get("vcs") or 1)
        for p in PROTOCOLS
        if p in by_protocol and sensible(r, f) and (not common.quick or (r, f, p) in quick)
        for repeat in range(1, common.repeats + 1)
    ]
    if not runs:
        _nothing_left(common, options)
    return runs


def _nothing_left(common: Common, options: Mapping[str, Any]) -> None:
    which = [
        f"--{name.replace('_', '-')} {value}"
        for name, value in options.items()
        if value is not None
    ]
    if common.quick:
        raise ExperimentError(
            f"{' '.join(['--quick', *which])}: no case is left; --quick has UDP with "
            + ", ".join(f"{case.routes}/{case.flow_control}" for case in QUICK)
        )
    raise ExperimentError(
        f"{' '.join(which)}: no case is left; dateline routes are those of rings, and need "
        "--flow-control pfc or credits"
    )
