"""What one point of a grid may set, with its defaults: those of the commands of the same name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from routing.native import native_engine
from routing.plan import Plan, make_plan
from routing.vlan import MOST_VLANS
from simulation import Buffers, Load, Scenario
from sweeps.errors import SweepError
from topologies import load
from topologies.fabric import Fabric

NATIVE = "native"
FLOW_CONTROL = Literal["none", "host", "switch", "all", "pfc"]
ARRIVALS = Literal["poisson", "constant", "saturate", "acknowledged"]

Bytes = Annotated[int, Field(ge=0, lt=2**40)]
Count = Annotated[int, Field(ge=1, lt=2**63)]
Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Analysis(BaseModel):
    """A plan and a pattern, path by path; the keys are those of ``knotless analyse``.

    ``engine`` may be ``native``, the one made for the fabric's family.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    fabric: str
    engine: str = NATIVE
    vcs: Annotated[int, Field(ge=1, le=8)] | None = None
    select: Literal["spread", "low-port"] = "spread"
    tagging: Literal["switch", "host"] = "switch"
    vlans: Literal["default", "tree"] = "default"
    max_vlans: Annotated[int, Field(ge=1, le=MOST_VLANS)] = MOST_VLANS
    root: str | None = None
    pattern: str
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1

    def plan(self) -> Plan:
        """Return the plan. Raises KnotlessError where it cannot be had."""
        return self.plan_of(load(self.fabric))

    def plan_of(self, fabric: Fabric) -> Plan:
        """Return the plan of that fabric."""
        engine = native_engine(fabric) if self.engine == NATIVE else self.engine
        keys = ("vcs", "select", "tagging", "vlans", "max_vlans", "root")
        return make_plan(fabric, engine, **{key: getattr(self, key) for key in keys})

    @property
    def routes(self) -> tuple[Any, ...]:
        """All that decides the plan: points that have these in common may share one."""
        mine = self.model_dump(exclude=set(type(self).model_fields) - set(_PLAN_KEYS))
        return tuple(mine[key] for key in _PLAN_KEYS)


_PLAN_KEYS = ("fabric", "engine", "vcs", "select", "tagging", "vlans", "max_vlans", "root")


class Simulation(Analysis):
    """A simulation; see :class:`simulation.Scenario` and :class:`simulation.Load`.

    Without ``arrivals`` they are ``poisson`` where there is a ``load``, ``acknowledged`` where
    there are ``message_bytes``, else ``saturate``, as in ``knotless simulate``.
    """

    arrivals: ARRIVALS | None = None
    load: Annotated[float, Field(gt=0, le=1)] | None = None
    message_bytes: Annotated[int, Field(ge=1, lt=2**40)] | None = None
    messages: Count = 1
    barrier: bool = True
    packet_bytes: Annotated[int, Field(ge=1, le=65_000)] = 1500
    flow_control: FLOW_CONTROL = "all"
    queue_bytes: Bytes | None = None
    xoff_bytes: Bytes | None = None
    xon_bytes: Bytes | None = None
    headroom_bytes: Bytes | None = None
    watchdog_us: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    cut_through_bytes: Annotated[int, Field(ge=0, le=65_000)] = 0
    warm_up_us: Time = 0.0
    duration_us: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None

    def scenario(self, plan: Plan) -> Scenario:
        """Return what is simulated on ``plan``. Raises SweepError for what cannot go together."""
        if self.load is not None and self.arrivals in ("saturate", "acknowledged"):
            raise SweepError(f"load: {self.arrivals} arrivals have none; leave one of them out")
        usual = "saturate" if self.message_bytes is None else "acknowledged"
        arrivals = self.arrivals or (usual if self.load is None else "poisson")
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
            flow_control=self.flow_control,
            buffers=Buffers(self.queue_bytes, self.xoff_bytes, self.xon_bytes, self.headroom_bytes),
            packet_bytes=self.packet_bytes,
            cut_through=self.cut_through_bytes,
            watchdog_us=self.watchdog_us,
            warm_up_us=self.warm_up_us,
            duration_us=self.duration_us,
            seed=self.seed,
        )


Settings = Analysis | Simulation
KINDS: dict[str, type[Analysis]] = {"simulate": Simulation, "analyse": Analysis}
"""What a file may ask to ``do`` with its grid."""
