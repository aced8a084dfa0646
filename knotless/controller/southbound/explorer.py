"""Finds what is connected to ports that the fabric in use does not declare, and to new switches.

New hosts, links and switches become parts of the fabric by a reload with a file that has them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from ryu.lib import hub

from knotless.base.errors import FabricError, KnotlessError
from knotless.controller import probe_rules
from knotless.controller.learning import Learning
from knotless.controller.southbound.learner import hear, pause_s
from knotless.controller.southbound.probe_frames import Frames
from knotless.controller.southbound.session import Session, SwitchGoneError, ports_of
from knotless.controller.status import Status
from knotless.forwarding.openflow.rules import Rule
from knotless.topologies.fabric import Fabric

_INTERVAL_S = 1.0
_RETRY_S = 30.0
"""After a refused reload."""
_LOG = logging.getLogger("knotless.learning")


class Strangers(Protocol):
    """Who has the connections to switches; see :class:`.switches.Switches`."""

    def session_of(self, name: str) -> Session | None:
        """Return the session of a switch of the fabric, if it is connected."""

    def strangers(self) -> Mapping[int, Session]:
        """Return the sessions of switches that are not in the fabric, by dpid."""


class Explorer:
    """What one controller finds besides its fabric; ``grow`` reloads with a larger one."""

    def __init__(
        self, status: Status, learning: Learning, grow: Callable[[Fabric], object]
    ) -> None:
        self._status, self._learning, self._grow = status, learning, grow
        self._frames = Frames(None, per_port=True)
        self._held: dict[int, frozenset[Rule]] = {}
        """The rules for learning that a switch holds which is not in the fabric."""
        self._given: dict[str, frozenset[Rule]] = {}
        """The same for switches of the fabric, as they were last wanted."""
        self._busy: set[int] = set()
        self._is_growing = False
        self._next_s = 0.0
        self._error: str | None = None

    def rules(self, name: str) -> frozenset[Rule]:
        """Return the rules of a switch of the fabric for ports of which nothing is declared."""
        switch = self._status.observed.by_name.get(name)
        given = self._given.get(name, frozenset())
        return given if switch is None else probe_rules.without_ports(given, switch.needs)

    def problems(self) -> list[str]:
        """Return what is not used, one line each."""
        return [*([self._error] if self._error else []), *self._learning.problems()]

    def packet_in(self, dpid: int, in_port: int | None, frame: bytes) -> None:
        """Take a frame that a switch has sent to the controller."""
        if in_port is not None:
            hear(self._learning, self._frames, (dpid, in_port), frame)

    def tick(self, now_s: float, links: Strangers, rewrite: Callable[[str], None]) -> None:
        """Send probes, and note what they have found; ``rewrite`` renews rules of a switch."""
        if now_s < self._next_s:
            return
        self._next_s = now_s + pause_s(self._learning, _INTERVAL_S)
        self._frames.round += 1
        learning, observed = self._learning, self._status.observed
        strangers = links.strangers()
        self._see_ports(strangers)
        is_written = not self._busy
        for dpid in learning.dpids:
            ports = learning.ports(dpid)
            switch = observed.switches.get(dpid)
            hosts = learning.host_ports(dpid)
            rules = probe_rules.learning_rules(ports, hosts, learning.open_ports(dpid))
            session = strangers.get(dpid) if switch is None else links.session_of(switch.name)
            if session is None:
                continue
            if switch is None:
                if rules != self._held.get(dpid) and dpid not in self._busy:
                    is_written = False
                    self._busy.add(dpid)
                    hub.spawn(self._write, dpid, session, rules)
            elif rules != self._given.get(switch.name):
                is_written = False
                self._given[switch.name] = rules
                rewrite(switch.name)
            if ports:
                session.send_probe(self._frames.packet_out(dpid, sorted(ports), reflected=False))
        learning.look(now_s)
        if is_written and not learning.rest_s(now_s):
            self._try_to_grow(now_s)

    def _see_ports(self, strangers: Mapping[int, Session]) -> None:
        """Take the ports of all connected switches that the fabric does not declare."""
        observed, learning = self._status.observed, self._learning
        if learning.base is not observed.fabric:
            learning.use(observed.fabric)
        found = {dpid: ports_of(session.datapath) for dpid, session in strangers.items()}
        for switch in observed.switches.values():
            if switch.connected and switch.ports is not None:
                undeclared = switch.ports.keys() - switch.needs.keys()
                found[switch.dpid] = {port: switch.ports[port] for port in undeclared}
        for dpid in learning.dpids - found.keys():
            learning.disconnected(dpid)
        for dpid in self._held.keys() - strangers.keys():
            del self._held[dpid]
        for dpid, ports in found.items():
            learning.see_ports(dpid, ports)

    def _write(self, dpid: int, session: Session, wanted: frozenset[Rule]) -> None:
        """Bring a switch into line that is not in the fabric."""
        try:
            with session.lock:
                held = self._held.get(dpid)
                if held is None:
                    held = probe_rules.held_rules(session.rules())
                if dpid in self._status.observed.switches:
                    return  # it is in the fabric now
                session.change(probe_rules.changes(held, wanted))
                self._held[dpid] = wanted
        except SwitchGoneError:
            pass
        finally:
            self._busy.discard(dpid)

    def _try_to_grow(self, now_s: float) -> None:
        """Reload with what was found, if nothing else goes on."""
        status = self._status
        if self._is_growing or status.transition.idle_task is None:
            return
        base = status.desired.fabric
        try:
            grown = self._learning.grown(base)
        except FabricError as error:
            self._error = f"what was found cannot be used: {error}"
            return
        self._error = None
        if grown is not base:
            self._is_growing = True
            hub.spawn(self._reload, grown, now_s)

    def _reload(self, grown: Fabric, now_s: float) -> None:
        try:
            self._grow(grown)
        except KnotlessError as error:
            _LOG.error("what was found is not used: %s", error)
            self._next_s = now_s + _RETRY_S
        finally:
            self._is_growing = False
