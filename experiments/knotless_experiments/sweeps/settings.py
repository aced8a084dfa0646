"""The settings of a point; defaults are those of the commands of the same name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from knotless.base.errors import SweepError
from knotless.base.model_limits import MAX_BYTES, MAX_PACKET_BYTES
from knotless.routing.plan import Plan, make_plan
from knotless.routing.request import PlanRequest
from knotless.simulation import Buffers, Load, Scenario
from knotless.simulation.settings import MAX_CREDIT_UNIT_BYTES
from knotless.topologies import load

ARRIVALS = Literal["poisson", "constant", "saturate", "acknowledged"]

Bytes = Annotated[int, Field(ge=0, lt=MAX_BYTES)]
Count = Annotated[int, Field(ge=1, lt=2**63)]
Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Analysis(BaseModel, PlanRequest, extra="forbid", frozen=True, strict=True):
    """A path-level analysis of a plan and a pattern; keys as in ``knotless analyse``."""

    fabric: str
    pattern: str
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1

    def plan(self) -> Plan:
        """Return the plan. Raises KnotlessError if there is none."""
        return make_plan(load(self.fabric), self)

    @property
    def routes(self) -> tuple[str, PlanRequest]:
        """The settings that determine the plan; points that are equal in them may share one."""
        return self.fabric, self.plan_request


class Simulation(Analysis, frozen=True):
    """A simulation; see :class:`simulation.Scenario` and :class:`simulation.Load`.

    The default of ``arrivals`` is ``poisson`` with a ``load``, ``acknowledged`` with
    ``message_bytes``, else ``saturate``, as in ``knotless simulate``.
    """

    arrivals: ARRIVALS | None = None
    load: Annotated[float, Field(gt=0, le=1)] | None = None
    message_bytes: Annotated[int, Field(ge=1, lt=MAX_BYTES)] | None = None
    messages: Count = 1
    barrier: bool = True
    packet_bytes: Annotated[int, Field(ge=1, le=MAX_PACKET_BYTES)] = 1500
    queue_bytes: Bytes | None = None
    xoff_bytes: Bytes | None = None
    xon_bytes: Bytes | None = None
    headroom_bytes: Bytes | None = None
    credit_bytes: Bytes | None = None
    credit_unit_bytes: Annotated[int, Field(ge=1, le=MAX_CREDIT_UNIT_BYTES)] | None = None
    watchdog_us: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    cut_through_bytes: Annotated[int, Field(ge=0, le=MAX_PACKET_BYTES)] = 0
    warm_up_us: Time = 0.0
    duration_us: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    def scenario(self, plan: Plan) -> Scenario:
        """Return the scenario on ``plan``. Raises SweepError for conflicting settings."""
        if self.load is not None and self.arrivals in ("saturate", "acknowledged"):
            raise SweepError(f"load: {self.arrivals} arrivals have none; omit one of them")
        default = "saturate" if self.message_bytes is None else "acknowledged"
        arrivals = self.arrivals or (default if self.load is None else "poisson")
        return Scenario(
            plan,
            self.pattern,
            Load(
                arrivals=arrivals,
                load=1.0 if self.load is None else self.load,
                message_bytes=self.message_bytes,
                messages=self.messages,
                barrier=self.barrier,
            ),
            buffers=Buffers(
                queue=self.queue_bytes,
                xoff=self.xoff_bytes,
                xon=self.xon_bytes,
                headroom=self.headroom_bytes,
                credit=self.credit_bytes,
                credit_unit=self.credit_unit_bytes,
            ),
            packet_bytes=self.packet_bytes,
            cut_through=self.cut_through_bytes,
            watchdog_us=self.watchdog_us,
            warm_up_us=self.warm_up_us,
            duration_us=self.duration_us,
            seed=self.seed,
        )


Settings = Analysis | Simulation
KINDS: dict[str, type[Analysis]] = {"simulate": Simulation, "analyse": Analysis}
"""The tasks that a file may ask for with ``do``."""
_UNUSED = {"simulate": ("multicast",), "analyse": ("multicast", "flow_control")}
"""Fields of a request without effect on the figures: patterns send to hosts, not to groups."""


def keys(do: str) -> list[str]:
    """Return the names of the settings of a point."""
    return [key for key in KINDS[do].model_fields if key not in _UNUSED[do]]


def settings_of(do: str, point: Settings) -> dict[str, Any]:
    """Return the settings of a point as a dictionary."""
    return point.model_dump(include=set(keys(do)))
