"""Several engines on one fabric, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from common.errors import PlanError
from routing.engine import Engine, engine_named, engines
from routing.plan import make_plan
from routing.request import PlanRequest
from topologies.fabric import Fabric
from verification.checked_plan import CheckedPlan

ALL = "all"


@dataclass(frozen=True)
class Compared:
    """One engine: the figures of its plan, or the reason why there is none."""

    engine: str
    summary: dict[str, object] | None
    reason: str = ""

    def as_json(self) -> dict[str, object]:
        """Return the figures as ``knotless plan --json`` has them, or engine and reason."""
        return self.summary or {"engine": self.engine, "reason": self.reason}


def chosen(names: str) -> list[Engine]:
    """Return the engines that ``names`` says: ``all``, or names with commas between.

    Raises
    ------
    PlanError
        There is no engine of that name.

    """
    wanted = list(engines()) if names == ALL else names.split(",")
    return [engine_named(name) for name in dict.fromkeys(wanted)]


def compare(fabric: Fabric, names: str, request: PlanRequest) -> Iterator[Compared]:
    """Plan ``fabric`` with each engine of ``names`` (see :func:`chosen`), one after the other.

    ``root`` goes to the engines that have one. The other choices are those of ``request``; an
    engine that cannot route the fabric under them is listed with the reason.

    Raises
    ------
    PlanError
        There is no engine of that name.

    """
    for engine in chosen(names):
        root = request.root if engine.has_root else None
        try:
            plan = make_plan(fabric, request.but(engine=engine.name, root=root))
            yield Compared(engine.name, CheckedPlan(plan).summary())
        except PlanError as error:
            yield Compared(engine.name, None, str(error))
