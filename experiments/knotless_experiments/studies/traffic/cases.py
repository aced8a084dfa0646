"""The cases of the traffic experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.flow_control import FlowControl
from knotless.base.name_lists import choice, names_in
from knotless.base.switch_settings import SwitchFile
from knotless.routing.graphs.task import SELECTIONS
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.traffic.flows import Flow, flows_of
from knotless.traffic.patterns import PatternError, pattern_named
from knotless_experiments.framework.experiment import EMULATION, Common, ExperimentError
from knotless_experiments.framework.fabrics import ENGINES, FLAT, GRIDS, IRREGULAR, ONE_WAY, TABLE_1
from knotless_experiments.framework.routed import Routed, with_options
from knotless_experiments.framework.switches import with_switches
from knotless_experiments.workloads.messages.size import message_size

ACKNOWLEDGED, OPEN_LOOP = "acknowledged", "open-loop"
PARTS = (ACKNOWLEDGED, OPEN_LOOP)
PATTERNS = ("bit-reversal", "transpose", "butterfly", "complement")
SIZES = (64, 256, 512, 1024, 1472, 1792)
"""Message sizes in bytes, up to 1,792, the longest packet of RHiNET-2."""

BOTH_WAYS = ("dl:2", "sbp", "dor")
"""Engines that the full experiment also runs with low-port."""


@dataclass(frozen=True)
class Case:
    """A run of the traffic experiment."""

    part: str
    routed: Routed
    pattern: str
    protocol: str
    message_bytes: int | None
    repeat: int

    def __str__(self) -> str:
        """Describe the case for progress bars."""
        size = f" {self.message_bytes} B" if self.message_bytes else ""
        return f"{self.routed.name} {self.routed.routes}: {self.pattern} {self.protocol}{size}"

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Source and destination of each flow. Raises PatternError if the pattern does not fit."""
        hosts = self.routed.fabric.hosts
        if self.part == OPEN_LOOP:
            flows = pattern_named(self.pattern).flows(self.routed.fabric)
            return [(hosts[a].name, hosts[b].name) for a, b in flows]
        return switch_pairs(self.routed.fabric, self.pattern)

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The flows, with their channels."""
        return flows_of(self.routed.plan, self.pairs)


def switch_pairs(fabric: Fabric, pattern: str) -> list[tuple[str, str]]:
    """Return the flows of a pattern of switches.

    On each switch with hosts, one host sends and another receives. Their ranks rotate over the
    switches, so that hosts of all ranks take part. A switch that would send to itself is idle.

    Raises
    ------
    ExperimentError
        A switch with hosts has only one.
    PatternError
        The pattern does not fit the number of switches.

    """
    by_switch = [list(by_port.values()) for by_port in fabric.hosts_at.values() if by_port]
    if min(map(len, by_switch)) < 2:
        raise ExperimentError(
            f"{fabric.name}: one host of each switch sends and another receives: "
            "it needs hosts=2 or more"
        )
    flows = pattern_named(pattern).flows(_as_grid(fabric, len(by_switch)))
    senders = [hosts[i % len(hosts)] for i, hosts in enumerate(by_switch)]
    receivers = [hosts[(i + len(hosts) // 2) % len(hosts)] for i, hosts in enumerate(by_switch)]
    return [(senders[a].name, receivers[b].name) for a, b in flows]


@cache
def _as_grid(fabric: Fabric, switches: int) -> Fabric:
    """Return a fabric with one host per switch, on which patterns number the switches."""
    if fabric.grid is None:
        return load(f"flat,{switches}")
    return load(f"torus,{','.join(map(str, fabric.grid.dims))}")


def cases(
    common: Common,
    options: Mapping[str, Any],
    delay_us: float,
    switches: SwitchFile | None = None,
) -> list[Case]:
    """List the cases, grouped by fabric and routes.

    Raises KnotlessError for a choice that is unknown or does not fit.
    """
    parts = choice(options.get("part"), PARTS, "--part")
    runs: list[Case] = []
    if ACKNOWLEDGED in parts:
        runs += _acknowledged(common, options, delay_us)
    if OPEN_LOOP in parts:
        runs += _open_loop(common, options, delay_us)
    if switches is not None:
        runs = _with_switches(runs, switches)
    for case in runs:
        if not case.flows:
            raise ExperimentError(f"{case}: it has no flows")
    return runs


def _with_switches(runs: Sequence[Case], switches: SwitchFile) -> list[Case]:
    """Return the cases with switches that have these settings, under PFC."""
    routed = {
        each: with_switches(each, switches, FlowControl.PFC)
        for each in dict.fromkeys(case.routed for case in runs)
    }
    return [replace(case, routed=routed[case.routed]) for case in runs]


def _routed(
    specs: Sequence[str],
    engines: Sequence[str] | None,
    options: Mapping[str, Any],
    links: Mapping[str, float],
) -> list[Routed]:
    """Return the fabrics with their routes; all plans are made, so that none fails later."""
    selects = choice(options.get("select"), SELECTIONS, "--select", SELECTIONS[:1])
    fabrics = []
    for spec in specs:
        default = [*ENGINES, *(["dor"] if spec in GRIDS else [])]
        for engine in engines or default:
            request = PlanRequest.from_name(engine)
            if request.engine == "dor" and request.vcs is None and spec.startswith("torus"):
                request = request.but(vcs=2)
            # The full experiment compares both selections as the paper does.
            both = engines is None and not options.get("select") and engine in BOTH_WAYS
            for select in SELECTIONS if both else selects:
                routed = Routed(with_options(spec, **links), request.but(select=select))
                _ = routed.plan
                fabrics.append(routed)
    return fabrics


def _of_paper_004(specs: Sequence[str], links: Mapping[str, float]) -> list[Routed]:
    """Return the fabrics with the routes of paper 004, of which those of its tori can deadlock."""
    fabrics = []
    for spec in specs:
        request = TABLE_1.get(spec, PlanRequest())
        settings = (("allow_deadlock", True),) if request == ONE_WAY else ()
        fabrics.append(Routed(with_options(spec, **links), request, settings))
    return fabrics


def _patterns(options: Mapping[str, Any], default: Sequence[str]) -> tuple[str, ...]:
    names = names_in(options.get("pattern"), default)
    for name in names:
        if pattern_named(name).in_phases or name == "uniform":
            raise PatternError(f"pattern {name} has no fixed pairs: use {', '.join(PATTERNS)}")
    return names


def _acknowledged(common: Common, options: Mapping[str, Any], delay_us: float) -> list[Case]:
    quick = common.quick
    specs = options.get("fabric") or (IRREGULAR[:1] if quick else (*IRREGULAR, *GRIDS))
    asked = options.get("engine")
    engines: Sequence[str] | None = ("updown", "dl:2") if quick else None
    if asked is not None:
        engines = names_in(asked, ())
    patterns = _patterns(options, PATTERNS[:1] if quick else PATTERNS)
    sizes = _sizes(options.get("size"), SIZES[-1:] if quick else SIZES)
    links = {"rate": common.rate_mbps or 2.0, "delay": delay_us}
    return [
        Case(ACKNOWLEDGED, routed, pattern, "message", size, repeat)
        for routed in _routed(specs, engines, options, links)
        for pattern in patterns
        for size in sizes
        for repeat in range(1, common.repeats + 1)
    ]


def _open_loop(common: Common, options: Mapping[str, Any], delay_us: float) -> list[Case]:
    quick = common.quick
    given, engines = options.get("fabric"), names_in(options.get("engine"), (AUTO_ENGINE,))
    specs = given or (("mesh,4,4",) if quick else (*TABLE_1, FLAT))
    patterns = _patterns(options, PATTERNS[:1] if quick else PATTERNS)
    default = ("udp",) if quick or common.on != EMULATION else ("udp", "tcp")
    protocols = choice(options.get("protocol"), ("udp", "tcp"), "--protocol", default)
    if "tcp" in protocols and common.on != EMULATION:
        raise ExperimentError("--protocol: tcp is only emulated: the simulator has no TCP")
    links = {"rate": common.rate_mbps or 5.0, "delay": delay_us}
    chosen = given or options.get("engine") or options.get("select")
    routes = _routed(specs, engines, options, links) if chosen else _of_paper_004(specs, links)
    return [
        Case(OPEN_LOOP, routed, pattern, protocol, None, repeat)
        for routed in routes
        for pattern in patterns
        for protocol in protocols
        for repeat in range(1, common.repeats + 1)
    ]


def _sizes(text: str | None, default: Sequence[int]) -> tuple[int, ...]:
    sizes = []
    for part in names_in(text, [str(size) for size in default]):
        sizes.append(message_size(part))
    return tuple(sizes)
