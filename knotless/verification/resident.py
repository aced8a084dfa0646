"""The verdict on a fabric that stays in memory while the routes of its routers change.

The core keeps what packets of each destination meet, and the dependencies between virtual channels
in topological order (``core/graph/src/dynamic_order.rs``), so that only packets are followed to the
destinations that a router now sends elsewhere. The verdict is that of a full check, with the same
cycle, packets and lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from knotless._core import forwarding as core
from knotless.base.errors import StateError
from knotless.base.memory import collector_paused
from knotless.importers.fabric import AnyFabric, TableFabric
from knotless.importers.routers.resident_routes import ChangedRoutes, ResidentRoutes
from knotless.importers.routers.router import Router
from knotless.routing.graphs.dependencies import cycle_names
from knotless.topologies.failures import NO_FAILURES, host_parts
from knotless.verification.check import problems_of
from knotless.verification.imported import causes_of, witness_of
from knotless.verification.imported_buffers import has_possible_pool_waits
from knotless.verification.imported_verdict import ImportedVerdict, SentWitness
from knotless.verification.pool_waits import Packet


class ResidentCheck:
    """A fabric of routers, and the verdict on it, of which routes can change.

    Raises
    ------
    StateError
        The verdict on such a fabric depends on more than what is kept, and why.

    """

    def __init__(self, imported: AnyFabric, verdict: ImportedVerdict) -> None:
        if not isinstance(imported, TableFabric) or imported.resident_routes is None:
            raise StateError("the fabric is not one of routers alone with routes in lists")
        traffics = imported.traffics
        if [traffic.counted for traffic in traffics].count(True) != 1 or any(
            traffic.first_labels is None for traffic in traffics
        ):
            raise StateError("the same packets are followed in several ways")
        if has_possible_pool_waits(imported):
            raise StateError("buffers without a reserve may wait for others")
        if any(traffic.state.core.problems for traffic in traffics):
            raise StateError("packets meet what is not known")
        if imported.findings.gaps:
            raise StateError("facts are missing")
        routes = imported.resident_routes()
        if not isinstance(routes, ResidentRoutes):
            raise StateError("the fabric has no routes")
        self._routes = routes
        self._imported = replace(imported, causes_at=self._routes.causes_at)
        self._verdict = verdict
        self._counted = next(n for n, traffic in enumerate(traffics) if traffic.counted)
        arrays: list[dict[str, Any]] = [
            {
                **imported.hops.arrays(traffic.vcs),
                "representative": np.arange(len(imported.hops.ends), dtype=np.uint32),
                "first_labels": traffic.first_labels,
                "counted": traffic.counted,
            }
            for traffic in traffics
        ]
        pausing = imported.pausing
        none = np.empty((0, 8, 16), dtype=bool)
        try:
            self._core = core.Resident(
                *imported.hops.core_ends,
                arrays,
                {"pausing": none if pausing is None else np.ascontiguousarray(pausing)},
            )
        except ValueError as error:
            raise StateError(str(error)) from None

    @property
    def verdict(self) -> ImportedVerdict:
        """The current verdict."""
        return self._verdict

    def differing(self, router: Router) -> ChangedRoutes:
        """Return which routes of a router differ; raises StateError if that is not known."""
        return self._routes.differing(router)

    def change(self, changed: ChangedRoutes) -> ImportedVerdict:
        """Return the verdict after the routes of a router have changed.

        Raises
        ------
        StateError
            All must be checked, and why. Nothing has changed here then.

        """
        with collector_paused():
            change = self._routes.change(*changed)
            actions = [(number, *action) for number, action in change.actions.items()]
            try:
                self._core.change(change.switch, actions)
            except ValueError as error:
                raise StateError(str(error)) from None
            change.commit()
            if actions:
                self._verdict = self._judged()
            return self._verdict

    def _judged(self) -> ImportedVerdict:
        imported, findings, before = self._imported, self._imported.findings, self._verdict
        state = replace(
            imported.traffics[self._counted].state, core=self._core.state(self._counted)
        )
        traffic = replace(imported.traffics[self._counted], state=state)
        traffics = [*imported.traffics]
        traffics[self._counted] = traffic
        now = replace(imported, traffics=tuple(traffics))
        cycle = self._core.cycle
        names = cycle_names(imported.channels, cycle)
        witnesses = tuple(self._witnesses(cycle, names))
        missing = [*(findings.doubts if names else findings.gaps)]
        lines = problems_of(state, part=self._part)
        problems = [*lines, *findings.problems, *self._losses_of_buffers()]
        load = float(state.loads.max(initial=0.0))
        return replace(
            before,
            undelivered=state.core.undelivered,
            max_channel_load=int(load) if load.is_integer() else load,
            acyclic=None if missing else not names,
            cycle=names,
            witnesses=witnesses,
            vcs={str(vc): acyclic for vc, acyclic in self._core.virtual_channels},
            missing=missing,
            problems=problems,
            causes=causes_of(now, [*missing, *findings.notes], problems, witnesses),
        )

    @cached_property
    def _part(self) -> list[int]:
        return host_parts(self._imported.fabric, NO_FAILURES)

    def _losses_of_buffers(self) -> list[str]:
        """Return the losses that tables of buffers show, which do not depend on routes."""
        return self._verdict.losses[len(self._imported.findings.losses) :]

    def _witnesses(self, cycle: Sequence[int], names: Sequence[str]) -> Sequence[SentWitness]:
        steps = []
        for place, node in enumerate(cycle):
            following = (place + 1) % len(cycle)
            packet = self._core.witness(node, cycle[following])
            if packet is None:
                raise AssertionError(f"no packet holds {names[place]}")
            steps.append(
                witness_of(self._imported, names[place], names[following], Packet(*packet))
            )
        return steps
