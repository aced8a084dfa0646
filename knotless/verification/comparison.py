"""Comparison of several engines on one fabric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from knotless.base.errors import PlanError
from knotless.routing.engine import Engine, engine_named, engines
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies.fabric import Fabric
from knotless.verification.checked_plan import CheckedPlan

ALL = "all"


@dataclass(frozen=True)
class Compared:
    """An engine with the metrics of its plan, or the reason why it has none."""

    engine: str
    summary: dict[str, object] | None
    reason: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the metrics as in ``knotless plan --json``, or the engine and the reason."""
        return self.summary or {"engine": self.engine, "reason": self.reason}


def chosen(names: str) -> list[Engine]:
    """Return the engines in ``names``: ``all``, or names separated by commas.

    Raises
    ------
    PlanError
        An engine does not exist.

    """
    selected = list(engines()) if names == ALL else names.split(",")
    return [engine_named(name) for name in dict.fromkeys(selected)]


def compare(fabric: Fabric, names: str, request: PlanRequest) -> Iterator[Compared]:
    """Plan ``fabric`` with each engine of ``names`` (see :func:`chosen`), in order.

    ``root`` applies to the engines that have one; all other options are those of ``request``. An
    engine that cannot route the fabric with them is listed with the reason.

    Raises
    ------
    PlanError
        An engine does not exist.

    """
    for engine in chosen(names):
        root = request.root if engine.has_root else None
        try:
            plan = make_plan(fabric, request.but(engine=engine.name, root=root))
            yield Compared(engine.name, CheckedPlan(plan).summary())
        except PlanError as error:
            yield Compared(engine.name, None, str(error))
