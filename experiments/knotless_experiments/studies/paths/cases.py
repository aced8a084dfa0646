"""The routes: paper 004's seven topologies, paper 000's four with every engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from knotless.base.engine_name import AUTO_ENGINE
from knotless.base.name_lists import choice, names_in
from knotless.routing.graphs.task import SELECTIONS
from knotless.routing.request import PlanRequest
from knotless.routing.vlans.assignment import ASSIGNMENTS
from knotless_experiments.framework.experiment import Common
from knotless_experiments.framework.fabrics import ENGINES, GRIDS, IRREGULAR, TABLE_1
from knotless_experiments.framework.routed import Routed

RHINET = (*IRREGULAR, *GRIDS)


@dataclass(frozen=True)
class Case:
    """A fabric with its routes."""

    routed: Routed
    repeat: int = 1

    def __str__(self) -> str:
        """Describe the case for progress bars."""
        return f"{self.routed.name}, {self.routed.routes}"


def cases(common: Common, options: Mapping[str, Any]) -> list[Case]:
    """List the cases; all plans are made, so that none fails later. Raises KnotlessError."""
    own = [options.get(name) for name in ("fabric", "engine", "select", "vlans")]
    routes = _asked(options) if any(own) else _papers(quick=common.quick)
    for routed in routes:
        _ = routed.plan
    return [Case(routed, n) for routed in routes for n in range(1, common.repeats + 1)]


def _papers(*, quick: bool) -> list[Routed]:
    table_1 = [Routed(spec, request) for spec, request in TABLE_1.items()]
    if quick:
        return table_1
    return [
        *table_1,
        *(Routed(spec, PlanRequest.from_name(name)) for spec in RHINET for name in ENGINES),
    ]


def _asked(options: Mapping[str, Any]) -> list[Routed]:
    specs = options.get("fabric") or RHINET
    engines = names_in(options.get("engine"), (AUTO_ENGINE,))
    selects = choice(options.get("select"), SELECTIONS, "--select", SELECTIONS[:1])
    vlans = choice(options.get("vlans"), ASSIGNMENTS, "--vlans", ASSIGNMENTS[:1])
    return [
        Routed(spec, PlanRequest.from_name(engine, select=select, vlans=assignment))
        for spec in specs
        for engine in engines
        for select in selects
        for assignment in vlans
    ]
