"""Knotless in a notebook: the functions behind the commands, with results that display themselves.

    import knotless as kn

    fabric = kn.load("torus,4,4")
    plan = kn.plan(fabric, engine="dor", vcs=1, select="low-port")
    kn.draw(plan)

Wherever a fabric is expected, its spec or file may be given instead, and wherever a plan is
expected, a fabric with the options of a plan (the fields of
:class:`knotless.routing.request.PlanRequest`). Wrong input raises a
:class:`knotless.base.errors.KnotlessError`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from knotless.arguments import checked
from knotless.base.errors import KnotlessError, PlanError
from knotless.base.flow_control import AUTO
from knotless.forwarding.openflow.compiled import CompiledRules
from knotless.forwarding.openflow.directory import write_dir
from knotless.routing.plan import Hop, make_plan
from knotless.routing.plan import Plan as RoutedPlan
from knotless.routing.request import PlanRequest
from knotless.shown import Comparison, Drawing, Figures
from knotless.simulation.result import OPTIONAL_KEYS
from knotless.simulation.run import simulate as run_scenario
from knotless.simulation.scenario import Scenario
from knotless.simulation.traffic import Load
from knotless.topologies import load as load_fabric
from knotless.topologies.fabric import Fabric, with_lines
from knotless.traffic.analysis import analyse as analyse_plan
from knotless.traffic.patterns import pattern_named
from knotless.verification.advice import advise as advice_of
from knotless.verification.check import check as check_rules
from knotless.verification.checked_plan import CheckedPlan
from knotless.verification.comparison import ALL, compare
from knotless.verification.explanation import explain

__all__ = ["Plan", "Rules", "Verdict", "advise", "analyse", "check", "compile", "draw", "load"]
__all__ += ["plan", "simulate"]
COMPARED = {
    "load": "max_channel_load",
    "bound": "load_bound",
    "mean": "mean_switches",
    "most": "max_switches",
    "VCs": "vcs",
    "VLANs": "vlans",
    "rules": "rules",
}
"""The figures of a plan that :func:`advise` shows of each engine: heading -> key."""


@dataclass(frozen=True, repr=False)
class Plan:
    """The routes of a fabric, checked; displays its figures and its verdict.

    Attributes
    ----------
    checked : CheckedPlan
        The plan with its forwarding state, its rules and its verdict.
    request : PlanRequest
        The options that were given.

    """

    checked: CheckedPlan
    request: PlanRequest

    @property
    def plan(self) -> RoutedPlan:
        """The plan itself."""
        return self.checked.plan

    @property
    def fabric(self) -> Fabric:
        """The fabric."""
        return self.plan.fabric

    @property
    def acyclic(self) -> bool:
        """Whether the dependencies have no cycle under the plan's flow control; then it is safe."""
        return self.checked.verdict.acyclic

    @property
    def safe(self) -> bool:
        """Whether the plan cannot deadlock under its flow control."""
        return self.checked.verdict.safe

    @property
    def cycle(self) -> list[str]:
        """A cycle of virtual channels that can wait for each other, or an empty list."""
        return self.checked.cycle

    @cached_property
    def figures(self) -> Figures:
        """The figures of ``knotless plan``, without those that differ between runs."""
        hidden = {"routing_ms", "compile_ms"}
        values = {key: v for key, v in self.checked.summary().items() if key not in hidden}
        title = f"{self.plan.engine} on {self.fabric.name}"
        return Figures(title, values, self.checked.verdict.text, self.checked)

    @property
    def explanation(self) -> Figures:
        """The decisions of the engine with reasons, as ``knotless plan --explain`` prints them."""
        topics = explain(self.checked, self.request)
        return Figures(f"why {self.plan.engine} on {self.fabric.name}", topics)

    def path(self, source: str, destination: str) -> list[Hop]:
        """Return the switches on the path between two hosts.

        Raises
        ------
        PlanError
            There is no such host.

        Examples
        --------
        >>> [hop.switch for hop in plan("torus,4,4").path("h1", "h6")]
        ['s1', 's2', 's6']

        """
        return self.plan.path(source, destination)

    def __repr__(self) -> str:
        """Return the figures as text."""
        return repr(self.figures)

    def _repr_html_(self) -> str:
        return self.figures._repr_html_()


@dataclass(frozen=True, repr=False)
class Rules:
    """The OpenFlow 1.3 rules of a plan.

    Attributes
    ----------
    plan : knotless.routing.plan.Plan
        The plan.
    rules : CompiledRules
        The rules of each switch.

    """

    plan: RoutedPlan
    rules: CompiledRules

    def write(self, directory: str | Path) -> None:
        """Write the files of ``knotless flows --out``.

        Parameters
        ----------
        directory : str or Path
            A directory, which is made if there is none.

        Raises
        ------
        RuleError
            A file cannot be written.

        """
        plan = self.plan
        write_dir(plan.fabric, self.rules, directory, plan.multicast, plan.host_tags())

    def __repr__(self) -> str:
        """Return the number of rules."""
        return f"{self.rules.total} rules of {self.plan.engine} on {self.plan.fabric.name}"

    def _repr_html_(self) -> str:
        values = {"switches": len(self.rules), "rules": self.rules.total}
        values |= {"groups": self.rules.groups, "VLANs": self.plan.vlan_count}
        title = f"rules of {self.plan.engine} on {self.plan.fabric.name}"
        return Figures(title, values)._repr_html_()


class Verdict(Figures):
    """The figures of a check: whether rules deliver all and can deadlock."""

    @property
    def safe(self) -> bool | None:
        """Whether the rules cannot deadlock; None if that is unknown."""
        safe: bool | None = self["safe"]
        return safe

    @property
    def acyclic(self) -> bool | None:
        """Whether the dependencies have no cycle; None if that is unknown."""
        acyclic: bool | None = self["acyclic"]
        return acyclic

    @property
    def cycle(self) -> list[str]:
        """A cycle of virtual channels that can wait for each other, or an empty list."""
        return list(self["cycle"])


def _fabric(given: Fabric | str) -> Fabric:
    return load_fabric(given) if isinstance(given, str) else given


def _planned(given: Plan | Fabric | str, options: Mapping[str, Any]) -> Plan:
    """Return a plan, made first if a fabric is given."""
    if not isinstance(given, Plan):
        return plan(given, **options)
    if options:
        raise PlanError(f"{next(iter(options))}: a plan has its options already; give a fabric")
    return given


@checked
def load(spec: Fabric | str) -> Fabric:
    """Return the fabric of a spec or a file.

    Parameters
    ----------
    spec : str, path or Fabric
        A spec such as ``torus,4,4``, or the name of a file.

    Returns
    -------
    Fabric
        The fabric.

    Raises
    ------
    SpecError, FabricError
        There is no such fabric.

    Examples
    --------
    >>> load("ring,4").name
    'ring,4'

    """
    return _fabric(spec)


@checked
def plan(fabric: Fabric | str, **options: Any) -> Plan:
    """Plan the routes of a fabric.

    Parameters
    ----------
    fabric : Fabric or str
        The fabric, or its spec or file.
    **options
        Fields of :class:`knotless.routing.request.PlanRequest`, such as ``engine="dor", vcs=1``.

    Returns
    -------
    Plan
        The plan, which may be one that can deadlock: see its ``acyclic`` and ``cycle``.

    Raises
    ------
    PlanError
        An option does not exist, or the engine cannot route the fabric.
    SpecError, FabricError
        There is no such fabric.

    Examples
    --------
    >>> plan("torus,5,5").figures["vcs"]
    2

    """
    request = PlanRequest.from_options(**options)
    return Plan(CheckedPlan(make_plan(_fabric(fabric), request)), request)


@checked
def compile(fabric: Plan | Fabric | str, **options: Any) -> Rules:
    """Compile the OpenFlow rules of a plan.

    Parameters
    ----------
    fabric : Plan, Fabric or str
        The plan, or a fabric to be planned.
    **options
        The options of a plan, if a fabric is given.

    Returns
    -------
    Rules
        The rules of all switches.

    Raises
    ------
    PlanError
        As for :func:`plan`, or a plan is given with options.

    Examples
    --------
    >>> compile("torus,4,4", engine="dor", vcs=1, select="low-port")
    468 rules of dor on torus,4,4

    """
    planned = _planned(fabric, options)
    return Rules(planned.plan, planned.checked.rules)


@checked
def check(fabric: Rules | Plan | Fabric | str, flow_control: str = AUTO, **options: Any) -> Verdict:
    """Read the rules back as switches would, and return the verdict on them.

    Parameters
    ----------
    fabric : Rules, Plan, Fabric or str
        The rules, or what they are to be compiled from.
    flow_control : str
        The flow control for which to judge; ``auto``: that of the plan.
    **options
        The options of a plan, if a fabric is given.

    Returns
    -------
    Verdict
        The keys of ``knotless check --json``; ``source`` is the
        :class:`knotless.verification.check.Verdict`.

    Raises
    ------
    PlanError
        As for :func:`compile`, or there is no such flow control.

    Examples
    --------
    >>> verdict = check("torus,5,5", "pause", engine="dor")
    >>> verdict["undelivered"], verdict["acyclic"]
    (0, False)
    >>> print(verdict.text)
    CAN DEADLOCK under PAUSE: s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0 -> s5:2/0 -> s1:2/0

    """
    rules = fabric if isinstance(fabric, Rules) else compile(fabric, **options)
    plan = rules.plan
    chosen = plan.flow_control if flow_control == AUTO else flow_control
    verdict = check_rules(
        plan.fabric,
        rules.rules,
        flow_control=chosen,
        multicast=plan.multicast,
        tags=plan.host_tags(),
    )
    hidden = {"fabric", "problems", "witnesses", "assumes"}
    values = {key: value for key, value in verdict.as_json().items() if key not in hidden}
    return Verdict(f"check of {plan.fabric.name}", values, verdict.text, verdict)


@checked
def analyse(
    fabric: Plan | Fabric | str, pattern: str = "shift", *, seed: int = 1, **options: Any
) -> Figures:
    """Count how many flows of a pattern share each channel.

    Parameters
    ----------
    fabric : Plan, Fabric or str
        The plan, or a fabric to be planned.
    pattern : str
        The name of a traffic pattern, such as ``transpose`` or ``shift:2``.
    seed : int
        The seed of patterns that are random.
    **options
        The options of a plan, if a fabric is given.

    Returns
    -------
    Figures
        The keys of ``knotless analyse --json``; ``source`` is the analysis.

    Raises
    ------
    PatternError
        The pattern does not exist or does not fit the fabric.
    PlanError
        As for :func:`plan`.

    Examples
    --------
    >>> analyse("torus,4,4", "transpose")["max_channel_load"]
    2

    """
    planned = _planned(fabric, options)
    chosen = pattern_named(pattern)
    analysis = analyse_plan(planned.plan, chosen, seed)
    title = f"{chosen.name} on {planned.fabric.name}, {planned.plan.engine}"
    return Figures(title, analysis.metrics(), source=analysis)


@checked
def simulate(
    fabric: Plan | Fabric | str,
    pattern: str = "permutation",
    *,
    traffic: Load | None = None,
    rate_mbps: float | None = None,
    delay_us: float | None = None,
    seed: int = 1,
    duration_us: float | None = None,
    settings: Mapping[str, Any] | None = None,
    **options: Any,
) -> Figures:
    """Simulate a pattern packet by packet; one seed gives one result.

    Parameters
    ----------
    fabric : Plan, Fabric or str
        The plan, or a fabric to be planned.
    pattern : str
        The name of a traffic pattern.
    traffic : knotless.simulation.traffic.Load, optional
        The amount of traffic. By default every flow always has a packet to send.
    rate_mbps, delay_us : float, optional
        Rate and one-way delay of all links, which needs a fabric, not a plan.
    seed : int
        The seed of everything random.
    duration_us : float, optional
        Virtual time. By default the time in which a host sends 2,000 packets, or until traffic that
        ends has arrived.
    settings : mapping, optional
        Further settings of :class:`knotless.simulation.scenario.Scenario`.
    **options
        The options of a plan, if a fabric is given.

    Returns
    -------
    Figures
        The keys of ``knotless simulate --json``, without those that differ between runs; ``source``
        is the :class:`knotless.simulation.result.Result`.

    Raises
    ------
    SimulationError
        The scenario is invalid, or does not fit into memory.
    PatternError
        The pattern does not exist or does not fit the fabric.
    PlanError
        As for :func:`plan`, or lines are given with a plan.

    Examples
    --------
    >>> simulate("ring,4", "shift:2", engine="dor", vcs=1, select="low-port").text
    'DEADLOCK: s1:2/0 -> s2:2/0 -> s3:2/0 -> s4:2/0'
    >>> simulate("ring,4", "shift:2", engine="updown")["lost_frames"]
    0

    """
    if rate_mbps is not None or delay_us is not None:
        if isinstance(fabric, Plan):
            raise PlanError("rate_mbps, delay_us: the links of a plan have theirs; give a fabric")
        fabric = with_lines(_fabric(fabric), rate_mbps, delay_us)
    planned = _planned(fabric, options)
    more = {"seed": seed, "duration_us": duration_us, **(settings or {})}
    result = run_scenario(Scenario(planned.plan, pattern, traffic or Load(), **more).that_ends())
    hidden = {"wall_s", "setup_s", "packet_hops_per_s", "verdict"}
    values = result.summary()
    hidden |= {key for key in OPTIONAL_KEYS if values[key] is None}
    shown = {key: value for key, value in values.items() if key not in hidden}
    knot = " -> ".join(result.knot) if result.knot else ""
    text = f"DEADLOCK: {knot}" if knot else "no deadlock formed"
    return Figures(f"{pattern} on {planned.fabric.name}", shown, text, result)


@checked
def advise(fabric: Fabric | str, engines: str = ALL, **options: Any) -> Comparison:
    """Compare engines, and say which to choose and why.

    Parameters
    ----------
    fabric : Fabric or str
        The fabric, or its spec or file.
    engines : str
        Names of engines with commas between them, or ``all``.
    **options
        The other options of a plan.

    Returns
    -------
    Comparison
        A row for each engine whose plan cannot deadlock; ``source`` is the advice.

    Raises
    ------
    PlanError
        An engine or option does not exist, or no engine can route the fabric.

    Examples
    --------
    >>> advise("ring,4", "updown,dor").source.engine
    'dor'

    """
    chosen = _fabric(fabric)
    advice = advice_of(chosen, list(compare(chosen, engines, PlanRequest.from_options(**options))))
    rows = [
        (
            row.engine,
            *(row.summary.get(key, "-") for key in COMPARED.values()),
            advice.reasons[row.engine],
        )
        for row in advice.rows
        if row.summary is not None
    ]
    columns = ("engine", *COMPARED, "compared")
    title = f"routing engines on {chosen.name}"
    return Comparison(title, columns, tuple(rows), advice.reason, advice)


@checked
def draw(fabric: Plan | Fabric | str, marked: Collection[tuple[str, int]] = ()) -> Drawing:
    """Draw a fabric; of a plan that can deadlock, also the cycle in red.

    Parameters
    ----------
    fabric : Plan, Fabric or str
        What to draw.
    marked : collection of (str, int)
        Channels, as switch and output port, to be drawn in red instead of the cycle.

    Returns
    -------
    Drawing
        The drawing, whose ``save`` writes an SVG file.

    Examples
    --------
    >>> draw("ring,4")
    Drawing of ring,4

    """
    from knotless.drawing import fabric_svg  # Matplotlib takes a second to load

    if isinstance(marked, str):
        raise KnotlessError(
            "marked: channels to be drawn in red, such as [('s1', 2)]; to write a file:"
            f" draw(..).save({marked!r})"
        )
    if isinstance(fabric, Plan):
        end_of = fabric.plan.channels.end_of
        marked = marked or [end_of(name) for name in fabric.cycle]
        return Drawing(fabric.fabric.name, fabric_svg(fabric.fabric, marked))
    chosen = _fabric(fabric)
    return Drawing(chosen.name, fabric_svg(chosen, marked))
