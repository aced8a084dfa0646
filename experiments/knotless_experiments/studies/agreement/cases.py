"""The cases that emulator and simulator both run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from knotless.base.flow_control import FlowControl
from knotless.base.name_lists import choice
from knotless.routing.request import PlanRequest
from knotless.simulation import Load, Scenario
from knotless.traffic import theory
from knotless.traffic.flows import Flow, flows_of
from knotless_experiments.framework.experiment import Common, ExperimentError
from knotless_experiments.framework.routed import Routed, with_options
from knotless_experiments.framework.switches import with_switches
from knotless_experiments.studies.agreement import switches

GROUPS = ("knot", "share-2", "share-3", "torus-updown", "torus-dor", "credits", "switches", "ecmp")


@dataclass(frozen=True)
class Case:
    """A case; ``scenario`` is what both run. ``settings`` name what switches are like inside."""

    group: str
    routed: Routed
    pattern: str
    flow_control: FlowControl
    seed: int = 1
    repeat: int = 1
    settings: str = ""

    def __str__(self) -> str:
        """Describe the case for progress bars."""
        text = f"{self.routed.name} {self.routed.routes}: {self.pattern}, {self.flow_control}"
        return f"{text}, {self.settings}" if self.settings else text

    @property
    def key(self) -> tuple[str, str, str, str, str, int]:
        """The key that distinguishes the case from others."""
        routed = self.routed
        names = (routed.name, routed.routes, self.pattern, self.flow_control, self.settings)
        return (*names, self.seed)

    @cached_property
    def scenario(self) -> Scenario:
        """The plan, traffic and flow control.

        Every flow always has a full packet to send.
        """
        return Scenario(
            self.routed.plan,
            self.pattern,
            Load("saturate", message_bytes=theory.MTU_BYTES),
            flow_control=self.flow_control,
            packet_bytes=theory.MTU_BYTES,
            duration_us=1.0,
            seed=self.seed,
            switch_settings=self.routed.switch_settings,
        )

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The scenario's flows, with their channels in the plan."""
        fabric = self.scenario.plan.fabric
        pairs = self.scenario.demand.chosen_pattern.flows(fabric, self.scenario.run.seed)
        hosts = fabric.hosts
        return flows_of(self.scenario.plan, [(hosts[a].name, hosts[b].name) for a, b in pairs])


def _all(quick: bool, rate_mbps: float | None) -> Iterator[Case]:
    """Yield every case, grouped by fabric and routes.

    Links are slow and long enough for virtual time to pass about as fast as real time on a small
    machine: see docs/decisions/emulated-capacity.md.
    """
    small = {"rate": rate_mbps or 10.0, "delay": 1000.0}
    large = {"rate": rate_mbps or 5.0, "delay": 5000.0}
    ring, both = with_options("ring,4", **small), (FlowControl.PAUSE, FlowControl.PFC)
    one_way = PlanRequest(engine="dor", vcs=1, select="low-port")
    cyclic = Routed(ring, one_way, settings=(("allow_deadlock", True),))
    for control in both:
        yield Case("knot", cyclic, "shift:2", control)
    if not quick:
        for control in both:
            yield Case("knot", Routed(ring, PlanRequest(engine="prefix")), "shift:2", control)
        yield Case("knot", Routed(ring, one_way.but(vcs=2)), "shift:2", FlowControl.PFC)
    for hosts in (3,) if quick else (2, 3):
        spec = with_options(f"mesh,2,1,hosts={hosts}", **small)
        for control in (FlowControl.PAUSE,) if quick else both:
            yield Case(
                f"share-{hosts}",
                Routed(spec, PlanRequest(engine="dor")),
                f"shift:{hosts}",
                control,
            )
    if quick:
        return
    torus = with_options("torus,4,4", **large)
    updown, dateline = PlanRequest(engine="updown"), PlanRequest(engine="dor", vcs=2)
    for request, controls in ((updown, both), (dateline, (FlowControl.PFC,))):
        for control in controls:
            for pattern, seed in (("shift:5", 1), ("permutation", 1), ("permutation", 2)):
                routed = Routed(torus, request)
                yield Case(f"torus-{request.engine}", routed, pattern, control, seed)
    for routed, pattern in (
        (cyclic, "shift:2"),
        (Routed(ring, one_way.but(vcs=2)), "shift:2"),
        (Routed(with_options("mesh,2,1,hosts=3", **small), PlanRequest(engine="dor")), "shift:3"),
        (Routed(torus, dateline), "permutation"),
    ):
        yield Case("credits", routed, pattern, FlowControl.CREDITS)
    ring_vcs = Routed(ring, one_way.but(vcs=2))
    shared = Routed(with_options("mesh,2,1,hosts=3", **small), PlanRequest(engine="dor"))
    for name, routed, pattern in (
        (switches.ALPHA, cyclic, "shift:2"),
        (switches.ALPHA, shared, "shift:3"),
        (switches.HEADROOM_POOL, shared, "shift:3"),
        (switches.DWRR, ring_vcs, "shift:2"),
        (switches.STRICT, Routed(torus, PlanRequest(engine="sbp")), "shift:5"),
        (switches.LOSSY, ring_vcs, "shift:2"),
        (switches.MARKING, shared, "shift:3"),
        (switches.PAUSE_FRAMES, cyclic, "shift:2"),
        (switches.PAUSE_FRAMES, shared, "shift:3"),
        (switches.ALERT, cyclic, "shift:2"),
        (switches.LATE_WATCHDOG, cyclic, "shift:2"),
        (switches.WATCHDOG, Routed(torus, updown), "shift:5"),
    ):
        inside = with_switches(routed, switches.settings_named(name), FlowControl.PFC)
        yield Case("switches", inside, pattern, FlowControl.PFC, settings=name)
    for spec, engine, pattern in (
        ("fattree2,4", "fattree", "shift:4"),
        ("hyperx,S=3x3,hosts=2", "updown", "permutation"),
    ):
        request = PlanRequest(engine=engine, multipath="ecmp")
        routed = Routed(with_options(spec, **large), request)
        yield Case("ecmp", routed, pattern, FlowControl.PAUSE)


def cases(common: Common, groups: str | None) -> list[Case]:
    """List the cases. Raises KnotlessError for an unknown or impossible choice."""
    wanted = choice(groups, GROUPS, "--case")
    runs = [
        replace(case, repeat=repeat)
        for case in _all(common.quick, common.rate_mbps)
        if case.group in wanted
        for repeat in range(1, common.repeats + 1)
    ]
    if not runs:
        raise ExperimentError(
            f"--quick --case {groups}: no case is left; --quick has knot, share-3"
        )
    for case in runs:
        _ = case.scenario  # Raises SimulationError if it is not possible.
    return runs
