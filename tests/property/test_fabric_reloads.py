"""Reloads with other fabrics, on the model of switches of :mod:`tests.support.model_switch`.

All cables and switches exist all the time; the configuration has some of them. Whatever the
switches hold at any moment has no loop and no cycle of channels, on everything that exists.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.controller import runtime
from knotless.controller.config import Config
from knotless.controller.desired import DesiredState
from knotless.controller.status import Status
from knotless.controller.switches import Switches
from knotless.controller.updates.fabric_state import FabricState
from knotless.controller.updates.journal import BegunUpdate, UpdateJournal
from knotless.controller.updates.planning import plan_update
from knotless.controller.updates.report import routes_as_json
from knotless.forwarding.openflow.rules import SwitchRules
from knotless.topologies.fabric import Fabric
from knotless.verification.check import check
from tests.support.model_controllers import _simulated_time, running
from tests.support.model_switch import DOWN, TIMING, UP, ModelSession, ModelSwitch, Reports
from tests.support.random_fabrics import part_of, seeded, small_fabric
from tests.support.service_alone import nothing_requested

__all__ = ["_simulated_time"]
CASES = 72
BLOCKS = 4
TURNS = 4000


class Case:
    """One controller, some fabrics that it may be given, and all switches of all of them.

    ``file`` is where a change is kept that is not complete. With ``active``, this is a standby of
    that controller: it has the same switches and shares the file.
    """

    def __init__(
        self, rng: random.Random, file: Path | None = None, active: Case | None = None
    ) -> None:
        self.rng, self.file = rng, file
        self.connections: dict[str, Any] = {}
        self.is_calm = True
        """True if nothing has failed since all switches held their first rules."""
        self.held: dict[str, SwitchRules] = {}
        """What the switches held at the last check."""
        self.checked: set[tuple[SwitchRules, ...]] = set()
        if active is not None:
            self.whole: Fabric = active.whole
            self.fabrics: list[Fabric] = active.fabrics
            self.switches: dict[str, ModelSwitch] = active.switches
            self.start(active.state.desired, standby=True)
            return
        self.whole = small_fabric(rng, most_switches=5, most_hosts=5)
        parts = [part for part in (part_of(self.whole, rng) for _ in range(30)) if part]
        self.fabrics = (parts or [self.whole])[:4]
        self.start(self.desired(self.fabrics[0]))
        self.switches = {
            active.name: ModelSwitch(
                active.dpid,
                [*self.whole.hosts_at[active.name], *self.whole.neighbours[active.name]],
            )
            for active in self.whole.switches
        }

    def start(self, desired: DesiredState, *, standby: bool = False) -> None:
        """Begin with a controller that knows what is configured, and what it finds."""
        self.state = FabricState(desired)
        self.unfinished = UpdateJournal(self.file, shared=standby)
        begun = self.unfinished.read()
        if begun is not None:
            self.state.resume(begun)
            if standby:
                self.state.lead()
        session: Any = ModelSession
        self.controller = Switches(
            state=self.state,
            reporter=Reports(),
            threads=runtime.Threads(),
            state_file=nothing_requested(self.state),
            make_session=session,
            timing=TIMING,
            journal=self.unfinished,
        )
        running.callback(self.controller.close)
        if standby:
            self.controller.stand_by()

    def close(self) -> None:
        """End the controller."""
        self.controller.close()

    def kill(self) -> None:
        """End the controller: nothing that it has begun goes on."""
        self.close()
        for connection in self.connections.values():
            connection.is_open = False
        self.connections.clear()

    def desired(self, fabric: Fabric) -> DesiredState:
        return DesiredState.compute(
            Config(settle_s=0.0, engine="updown", root=self.rng.choice(fabric.switches).name),
            fabric,
        )

    def connect(self, name: str) -> None:
        self.disconnect(name)
        switch = self.switches[name]
        connection: Any = SimpleNamespace(
            dpid=switch.dpid,
            is_open=True,
            switch=switch,
            rng=self.rng,
            ports=switch.ports,
        )
        connection.close = lambda: setattr(connection, "is_open", False)
        self.connections[name] = connection
        self.controller.connected(connection)

    def disconnect(self, name: str) -> None:
        connection = self.connections.pop(name, None)
        if connection is not None:
            connection.is_open = False
            self.controller.disconnected(connection)

    def set_ports(self, name: str, state: Any) -> None:
        switch = self.switches[name]
        switch.ports[self.rng.choice(list(switch.ports))] = state
        if name in self.connections:
            self.controller.ports_changed(self.connections[name])

    def reload(self) -> str:
        """Reload as :class:`knotless.controller.service.Service` does; return why not."""
        new = self.desired(self.rng.choice(self.fabrics))
        try:
            task = self.state.update.task_to(new)
            if task is None:
                return "a change goes on"
            plan_update(task)
        except KnotlessError as error:
            return str(error)
        existing = self.state.update.union.extended(new.fabric)
        self.unfinished.begin(BegunUpdate(existing, self.state.update.flow_control))
        self.controller.change_to(new)
        return ""

    def turn(self) -> None:
        runtime.sleep(0)
        before = self.held
        held = self.held = {name: switch.held for name, switch in self.switches.items()}
        state = tuple(held.values())
        if held == before or state in self.checked:
            return
        self.checked.add(state)
        verdict = check(self.whole, held, flow_control="pause")
        assert verdict.acyclic
        assert not [line for line in verdict.problems if "for ever" in line]
        transition = self.state.update
        staying = transition.union.staying
        plan = transition.progress.plan
        if self.is_calm and plan is not None and plan.change.tier < 3 and staying is not None:
            hosts = tuple(host for host in self.whole.hosts if host.name in staying)
            checked = check(replace(self.whole, hosts=hosts), held, flow_control="pause")
            assert checked.undelivered == 0

    def settle(self) -> None:
        """Let everything work, until nothing happens any more."""
        for name, switch in self.switches.items():
            switch.ports.update(dict.fromkeys(switch.ports, UP))
            if name not in self.connections or not self.connections[name].is_open:
                self.connect(name)
            else:
                self.controller.ports_changed(self.connections[name])
        for _ in range(TURNS):
            self.turn()
            for name, connection in list(self.connections.items()):
                if not connection.is_open:
                    self.connect(name)
            routes = self.state.update
            done = (
                routes.is_there and not routes.progress.in_flight and routes.union.staying is None
            )
            aimed = routes.goal.desired is self.state.desired and not routes.goal.failures
            ready = self.state.leads and self.state.observed.ready
            if done and aimed and ready and self.unfinished.read() is None:
                return
        raise AssertionError(
            f"not ready: {Status(self.state).problems(1e9)} {routes_as_json(routes)}"
        )

    def left_behind(self) -> list[str]:
        """Return the switches that are not in the fabric, and hold rules or groups."""
        names = self.state.desired.fabric.switch_index
        gone = {name: switch for name, switch in self.switches.items() if name not in names}
        return [name for name, switch in gone.items() if switch.rules or switch.groups]

    def assert_done(self) -> None:
        fabric = self.state.desired.fabric
        assert self.state.observed.fabric == fabric
        assert set(self.state.observed.by_name) == set(fabric.switch_index)
        held = {
            name: switch.held
            for name, switch in self.switches.items()
            if name in fabric.switch_index
        }
        verdict = check(fabric, held)
        assert verdict.ok
        assert verdict.problems == []


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_hosts_that_stay_reach_each_other_all_the_time(block: int) -> None:
    reloads = 0
    for seed, rng in seeded(range(block, CASES, BLOCKS)):
        case = Case(rng)
        case.settle()
        for _ in range(2):
            if case.reload():
                continue
            reloads += 1
            late = [name for name in case.state.observed.by_name if rng.random() < 0.5]
            for name in late:
                if case.state.observed.by_name[name].is_new:
                    case.disconnect(name)  # it connects when the others may be done
            for _ in range(rng.randrange(100)):
                case.turn()
            case.settle()
            case.assert_done()
            assert case.left_behind() == [], f"seed {seed}"
        case.close()
    assert reloads > CASES / BLOCKS


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_failures_during_reloads_make_no_loop(block: int) -> None:
    reasons = Counter[str]()
    for _, rng in seeded(range(CASES + block, 2 * CASES, BLOCKS)):
        case = Case(rng)
        case.is_calm = False
        if rng.random() < 0.8:
            case.settle()
        for _ in range(rng.randrange(2, 20)):
            name = rng.choice(list(case.switches))
            match rng.randrange(5):
                case 0:
                    case.connect(name)
                case 1:
                    case.disconnect(name)
                case 2:
                    reasons[case.reload().split(",")[0][:30]] += 1
                case 3:
                    case.set_ports(name, rng.choice((UP, DOWN)))
            for _ in range(rng.randrange(12)):
                case.turn()
        case.settle()
        case.assert_done()
        case.close()
    assert reasons[""] > CASES / BLOCKS / 4, reasons
