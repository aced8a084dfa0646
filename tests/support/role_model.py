"""A model of switches and controllers that lose connections, delay messages, hang and restart.

Messages of one connection arrive in order, with delays of their own in both directions, so those
of different connections overtake each other. What was sent on a connection that breaks arrives, or
not, and the switch notices the end later than the controller, or the other way round.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from random import Random

from knotless.controller.election.election import Election, Request, Role, Times

_TIMES = Times()


@dataclass
class Connection:
    """A connection; ``to_switch_s`` and ``back_s`` are when the last message arrives."""

    role: Role = "equal"
    open_at_switch: bool = True
    to_switch_s: float = 0.0
    back_s: float = 0.0


@dataclass
class Switch:
    """As Open vSwitch behaves: a restart forgets the generation id."""

    generation: int | None = None
    is_on: bool = True
    connections: list[Connection] = field(default_factory=list)

    def ask(self, connection: Connection, request: Request) -> bool:
        """Take a role request; False: it is stale."""
        if request.role is not None:
            if self.generation is not None and request.generation < self.generation:
                return False
            self.generation = request.generation
            if request.role == "master":
                for other in self.connections:
                    if other.role == "master":
                        other.role = "slave"
            connection.role = request.role
        return True


@dataclass
class Session:
    """A time during which a controller leads changes; ``writes_s``: when switches obeyed it."""

    number: int
    read_s: float
    writes_s: list[float] = field(default_factory=list)


@dataclass
class Controller:
    """One controller; it sends and reads nothing while it hangs."""

    election: Election
    connections: dict[int, Connection] = field(default_factory=dict)
    blocked: set[int] = field(default_factory=set)
    """Switches that it cannot reach."""
    hangs_until_s: float = 0.0
    session: Session | None = None
    inbox: list[Callable[[], None]] = field(default_factory=list)


class World:
    """Runs one case."""

    def __init__(self, seed: int, switches: int, controllers: int, faults_s: float) -> None:
        self.rng = Random(seed)  # noqa: S311 - repeatable, not secret
        self.switches = {dpid: Switch() for dpid in range(1, switches + 1)}
        dpids = frozenset(self.switches)
        self.controllers = [
            Controller(Election(number, controllers, dpids, _TIMES))
            for number in range(controllers)
        ]
        self.now_s, self.faults_s = 1000.0, 1000.0 + faults_s
        self.sessions: list[Session] = []
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        for controller in self.controllers:
            self._later(self.rng.uniform(0, 1), partial(self._tick, controller))
        self._later(1, self._fault)

    def run(self, until_s: float) -> None:
        """Run until this time after the beginning."""
        while self._queue and self._queue[0][0] < 1000 + until_s:
            self.now_s, _, action = heapq.heappop(self._queue)
            action()

    def _later(self, delay_s: float, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now_s + delay_s, self._number, action))

    def overlaps(self) -> list[tuple[Session, Session]]:
        """Return two sessions at a time of which one was obeyed after the other had read."""
        obeyed = [session for session in self.sessions if session.writes_s]
        return [(a, b) for a, b in pairwise(obeyed) if a.writes_s[-1] >= b.read_s]

    @property
    def _dead(self) -> set[int]:
        return {dpid for dpid, switch in self.switches.items() if not switch.is_on}

    # --- controllers -------------------------------------------------------------------------

    def _tick(self, controller: Controller) -> None:
        interval_s = controller.election.times.interval_s
        if self.now_s < controller.hangs_until_s:
            # It may wake up between any two instructions: what it decided before is sent after.
            self._later(controller.hangs_until_s - self.now_s, lambda: self._tick(controller))
            return
        inbox, controller.inbox = controller.inbox, []
        for action in inbox:
            action()
        for dpid, switch in self.switches.items():
            if (
                dpid not in controller.connections
                and dpid not in controller.blocked
                and switch.is_on
            ):
                controller.connections[dpid] = connection = Connection()
                switch.connections.append(connection)
                for request in controller.election.connected(dpid, self.now_s):
                    self._send(controller, request)
        for request in controller.election.tick(self.now_s, self._dead):
            self._send(controller, request)
        self._lead(controller)
        self._later(interval_s * self.rng.uniform(0.9, 1.1), lambda: self._tick(controller))

    def _lead(self, controller: Controller) -> None:
        """Read all rules when leading begins; then change some, as far as that is allowed."""
        election = controller.election
        if election.state != "active" or not election.is_complete:
            controller.session = None
            return
        if controller.session is None:
            controller.session = Session(election.number, self.now_s)
            self.sessions.append(controller.session)
        for dpid in controller.connections:
            if self.rng.random() < 0.5 and election.may_change(dpid, self.now_s):
                self._write(controller, dpid, controller.session)

    def _send(self, controller: Controller, request: Request) -> None:
        connection = controller.connections.get(request.dpid)
        if connection is not None:
            self._to_switch(
                connection, request.dpid, lambda: self._asked(controller, connection, request)
            )

    def _to_switch(self, connection: Connection, dpid: int, action: Callable[[], None]) -> None:
        connection.to_switch_s = max(connection.to_switch_s, self.now_s + self._delay_s())
        switch = self.switches[dpid]

        def arrive() -> None:
            if connection.open_at_switch and connection in switch.connections:
                action()

        self._later(connection.to_switch_s - self.now_s, arrive)

    def _write(self, controller: Controller, dpid: int, session: Session) -> None:
        connection = controller.connections[dpid]

        def change() -> None:
            if connection.role != "master":
                self._reply(
                    controller,
                    connection,
                    dpid,
                    lambda: controller.election.refused(dpid, self.now_s),
                )
                return
            session.writes_s.append(self.now_s)

        self._to_switch(connection, dpid, change)

    def _asked(self, controller: Controller, connection: Connection, request: Request) -> None:
        switch, dpid = self.switches[request.dpid], request.dpid
        if not switch.ask(connection, request):
            self._reply(
                controller, connection, dpid, lambda: controller.election.refused(dpid, self.now_s)
            )
            return
        role, generation = connection.role, switch.generation

        def answered() -> None:
            asked = controller.election.answered(dpid, role, generation, self.now_s)
            for request in (*asked, *controller.election.settle(self.now_s, self._dead)):
                self._send(controller, request)
            self._lead(controller)

        self._reply(controller, connection, dpid, answered)

    def _reply(
        self, controller: Controller, connection: Connection, dpid: int, action: Callable[[], None]
    ) -> None:
        connection.back_s = max(connection.back_s, self.now_s + self._delay_s())

        def arrive() -> None:
            if self.now_s < controller.hangs_until_s:
                controller.inbox.append(arrive)
            elif controller.connections.get(dpid) is connection:
                action()

        self._later(connection.back_s - self.now_s, arrive)

    def _delay_s(self) -> float:
        late = self.now_s < self.faults_s and self.rng.random() < 0.02
        return self.rng.uniform(0.5, 3) if late else self.rng.uniform(0.001, 0.02)

    # --- faults ------------------------------------------------------------------------------

    def _fault(self) -> None:
        if self.now_s > self.faults_s:
            for controller in self.controllers:
                controller.blocked.clear()
            for switch in self.switches.values():
                switch.is_on = True
            return
        controller = self.rng.choice(self.controllers)
        dpid = self.rng.choice(list(self.switches))
        match self.rng.choice(("cut", "cut", "block", "partition", "hang", "restart", "off")):
            case "cut":
                self._cut(controller, dpid)
            case "block":
                self._block(controller, {dpid})
            case "partition":
                size = self.rng.randint(1, len(self.switches))
                self._block(controller, set(self.rng.sample(list(self.switches), size)))
            case "hang":
                controller.hangs_until_s = self.now_s + self.rng.uniform(0.2, 6)
            case "restart":
                self._restart({dpid} if self.rng.random() < 0.5 else set(self.switches))
            case "off":
                self._restart({dpid})
                self.switches[dpid].is_on = False
                self._later(self.rng.uniform(0.5, 5), lambda: self._switch_on(dpid))
        self._later(self.rng.expovariate(1.0), self._fault)

    def _switch_on(self, dpid: int) -> None:
        self.switches[dpid].is_on = True

    def _block(self, controller: Controller, dpids: set[int]) -> None:
        controller.blocked |= dpids
        for dpid in dpids:
            self._cut(controller, dpid)
        self._later(self.rng.uniform(0.5, 6), lambda: controller.blocked.difference_update(dpids))

    def _cut(self, controller: Controller, dpid: int) -> None:
        """End a connection; each end notices in its own time."""
        connection = controller.connections.get(dpid)
        if connection is None:
            return

        def forget() -> None:
            if controller.connections.get(dpid) is connection:
                del controller.connections[dpid]
                controller.election.disconnected(dpid)

        def forget_at_switch() -> None:
            connection.open_at_switch = False
            if connection in self.switches[dpid].connections:
                self.switches[dpid].connections.remove(connection)

        self._later(self.rng.uniform(0, 2), forget)
        self._later(self.rng.uniform(0, 2), forget_at_switch)

    def _restart(self, dpids: set[int]) -> None:
        for dpid in dpids:
            switch = self.switches[dpid]
            switch.generation, switch.connections = None, []
            for controller in self.controllers:
                self._cut(controller, dpid)
