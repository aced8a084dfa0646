"""Fabrics with routes, as experiments name and run them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from experiments.framework.experiment import ExperimentError
from routing.plan import Plan, make_plan
from routing.request import PlanRequest
from topologies import load
from topologies.fabric import Fabric
from verification.checked_plan import CheckedPlan

if TYPE_CHECKING:
    from emulation.network import EmulatedFabric

ATTEMPTS = 3


@dataclass(frozen=True)
class Routed:
    """A fabric, and how it is routed; ``spec`` has rates and delays.

    ``settings`` are more of :class:`emulation.network.EmulatedFabric`, such as
    ``allow_deadlock`` where routes are to deadlock.
    """

    spec: str
    request: PlanRequest = field(default_factory=PlanRequest)
    settings: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric. Raises SpecError or FabricFileError."""
        return load(self.spec)

    @cached_property
    def plan(self) -> Plan:
        """The plan. Raises PlanError where the engine cannot route the fabric so."""
        return make_plan(self.fabric, self.request)

    @property
    def name(self) -> str:
        """The spec without rate and delay: what tables call the fabric."""
        parts = self.spec.split(",")
        return ",".join(p for p in parts if p.partition("=")[0] not in ("rate", "delay"))

    @property
    def routes(self) -> str:
        """The routes' name in tables and plots: engine, virtual channels, selection."""
        several = f", {self.plan.vcs} VCs" if self.plan.vcs > 1 else ""
        low_port = ", low port" if self.request.select == "low-port" else ""
        return f"{self.plan.engine}{several}{low_port}"

    def running(self) -> EmulatedFabric:
        """Return it to be run on the emulator for a block; raises PlanError as :func:`emulated`."""
        return emulated(self.plan, **{"static_arp": True, **dict(self.settings)})


def emulated(plan: Plan, **settings: Any) -> EmulatedFabric:
    """Return the fabric of a plan, to be run on the emulator under a name of its own.

    Raises
    ------
    PlanError
        The plan can deadlock, and ``settings`` do not allow it.

    """
    from emulation.network import EmulatedFabric

    if not settings.get("allow_deadlock"):
        CheckedPlan(plan).refuse_deadlock()
    name = f"run-{secrets.token_hex(2)}"
    return EmulatedFabric.of(plan, name=name, openflow_port=0, rest_port=0, **settings)


def request_of(text: str, **choices: Any) -> PlanRequest:
    """Read ``updown`` or, with virtual channels, ``updown:2``. Raises KnotlessError."""
    name, colon, count = text.partition(":")
    if not colon:
        return PlanRequest.of(engine=name, **choices)
    if not (count.isascii() and count.isdigit() and 1 <= int(count[:3]) <= 8):
        raise ExperimentError(
            f"--engine {text[:40]!r}: with N virtual channels, 1 to 8, it is NAME:N, such as dl:2"
        )
    return PlanRequest.of(engine=name, vcs=int(count), **choices)


def with_options(spec: str, **options: float) -> str:
    """Return a spec with these options added, where it does not state them itself."""
    if "/" in spec or "." in spec.partition(",")[0]:
        return spec
    given = {part.partition("=")[0] for part in spec.split(",")}
    added = [f"{key}={value:g}" for key, value in options.items() if key not in given]
    return ",".join([spec, *added])


Row = dict[str, Any]
Measured = tuple[Row, list[dict[str, Any]]]


def judged(row: Mapping[str, Any], status: Mapping[str, Any], problems: list[str]) -> Row:
    """Add to a row whether it counts, from the emulator's ``status`` after it."""
    lateness = status["lateness_us"]
    late = not status["valid"]
    found = list(problems)
    if late:
        limit = lateness.get("limit")
        found.append(f"lateness p99 is {lateness['p99']} us, over its limit of {limit} us")
    return {
        **row,
        "lateness_us_p99": lateness["p99"],
        "late": late,
        "valid": not found,
        "problems": found,
        "earlier_attempts": [],
    }


def unjudged(row: Mapping[str, Any]) -> Row:
    """Add the same keys to a row of a simulation, which has no lateness."""
    timeless: Row = {"lateness_us_p99": None, "late": False, "valid": True}
    return {**row, **timeless, "problems": [], "earlier_attempts": []}


def in_time(measure: Callable[[], Measured]) -> Measured:
    """Measure; again when the machine was too late for it, at most :data:`ATTEMPTS` times.

    Only lateness is a reason to try again, never what was found. The row keeps those of the
    attempts before it.
    """
    earlier: list[Row] = []
    while True:
        row, samples = measure()
        if not row["late"] or len(earlier) + 1 == ATTEMPTS:
            return {**row, "earlier_attempts": earlier}, samples
        earlier.append(row)
