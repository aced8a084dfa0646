"""Fabrics with routes, for experiments."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from knotless.base.switch_settings import SwitchFile
from knotless.results.validity import silent_flows
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from knotless.verification.checked_plan import CheckedPlan
from knotless_experiments.framework.columns import EMULATED

if TYPE_CHECKING:
    from knotless.emulation.network import EmulatedFabric

slow_down: ContextVar[float] = ContextVar("slow_down", default=1.0)
"""Seconds that a second of virtual time takes at least, on every fabric that is started."""


@dataclass(frozen=True)
class Routed:
    """A fabric and its routes; ``spec`` includes rates and delays.

    ``settings`` are further arguments of :class:`knotless.emulation.network.EmulatedFabric`, such
    as ``allow_deadlock`` if the routes are meant to deadlock. ``switch`` are the settings of the
    switches as JSON of a :class:`SwitchFile`.
    """

    spec: str
    request: PlanRequest = field(default_factory=PlanRequest)
    settings: tuple[tuple[str, Any], ...] = ()
    switch: str | None = None

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric. Raises SpecError or FabricError."""
        return load(self.spec)

    @cached_property
    def plan(self) -> Plan:
        """The plan. Raises PlanError if the engine cannot route the fabric as requested."""
        return make_plan(self.fabric, self.request)

    @cached_property
    def switch_settings(self) -> SwitchFile | None:
        """The settings of the switches, if there are any."""
        return None if self.switch is None else SwitchFile.model_validate_json(self.switch)

    @property
    def name(self) -> str:
        """The spec without rate and delay, for tables."""
        parts = self.spec.split(",")
        return ",".join(p for p in parts if p.partition("=")[0] not in ("rate", "delay"))

    @property
    def routes(self) -> str:
        """The name of the routes in tables and plots: engine, virtual channels, selection."""
        several = f", {self.plan.vcs} VCs" if self.plan.vcs > 1 else ""
        low_port = ", low port" if self.request.select == "low-port" else ""
        return f"{self.plan.engine}{several}{low_port}{self.plan.choice.mark}"

    def running(self) -> EmulatedFabric:
        """Return the fabric for emulation, a context manager; raises PlanError."""
        settings = {"static_arp": True, **dict(self.settings)}
        if self.switch_settings is not None:
            settings["switch_settings"] = self.switch_settings.for_model()
        return emulated(self.plan, **settings)


def emulated(plan: Plan, **settings: Any) -> EmulatedFabric:
    """Return the fabric of a plan for emulation, with a unique name and programs in virtual time.

    Raises
    ------
    PlanError
        The plan can deadlock, and ``settings`` do not allow it.
    EmulationError
        The limits of this process are too low for the fabric.

    """
    from knotless.emulation.limits import require_limits
    from knotless.emulation.network import EmulatedFabric

    require_limits(plan.fabric)
    if not settings.get("allow_deadlock"):
        CheckedPlan(plan).refuse_deadlock()
    name = f"run-{secrets.token_hex(2)}"
    common: dict[str, Any] = {"openflow_port": 0, "rest_port": 0, "virtual_clock": True}
    # Probes would take a share of the lines.
    common["controller_settings"] = {"discovery": "none"}
    return EmulatedFabric.from_plan(
        plan, name=name, slow_down=slow_down.get(), **common, **settings
    )


def with_options(spec: str, **options: float) -> str:
    """Return a spec with these options added unless it already has them."""
    if "/" in spec or "." in spec.partition(",")[0]:
        return spec
    given = {part.partition("=")[0] for part in spec.split(",")}
    added = [f"{key}={value:g}" for key, value in options.items() if key not in given]
    return ",".join([spec, *added])


Row = dict[str, Any]
Measured = tuple[Row, list[dict[str, Any]]]


def with_validity(row: Mapping[str, Any], status: Mapping[str, Any], problems: list[str]) -> Row:
    """Add to a row whether it is valid: by the emulator's ``status``, and by its own figures.

    The campaign, which watches hosts during the case, replaces ``real_time_programs``.
    """
    all_problems = [*problems, *silent_flows(row), *status["problems"]]
    return {
        **row,
        "stretch": status["stretch"],
        "slow_down": status["slow_down"],
        "host_wait_us": status["host_wait_us"],
        "datapath": status["datapath"],
        "real_time_programs": [],
        "valid": status["valid"] and not all_problems,
        "problems": all_problems,
    }


def in_simulation(row: Mapping[str, Any], problems: Sequence[str] = ()) -> Row:
    """Add the same keys to a row of a simulation, whose time is not stretched."""
    nothing: Row = dict.fromkeys(EMULATED)
    all_problems = [*problems, *silent_flows(row)]
    return {**row, **nothing, "valid": not all_problems, "problems": all_problems}
