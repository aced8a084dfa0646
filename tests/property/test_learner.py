"""A controller that learns a fabric, against a model of switches with cables and hosts."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from knotless.controller import runtime
from knotless.controller.probes.cables import PortId
from knotless.controller.probes.discovery import Discovery
from knotless.controller.probes.frames import Frames
from knotless.controller.probes.learner import Learner
from knotless.controller.reconcile import PROBE_COOKIE
from knotless.forwarding.openflow.rules import CONTROLLER, Output, Rule
from knotless.topologies.fabric import Fabric
from knotless.topologies.numbering import mac_value
from knotless.topologies.union import removed
from tests.support.model_controllers import _simulated_time, running
from tests.support.model_switch import DOWN, UP, ModelSession, ModelSwitch
from tests.support.openflow_messages import packet_in
from tests.support.random_fabrics import seeded, small_fabric
from tests.unit.controller.probes.test_frames import sent

__all__ = ["_simulated_time"]
CASES = 40
TURNS = 4000


class Network:
    """Switches, cables and hosts; whatever a rule sends to the controller arrives there."""

    def __init__(self, rng: random.Random, fabric: Fabric) -> None:
        self.rng, self.fabric = rng, fabric
        dpid = {switch.name: switch.dpid for switch in fabric.switches}
        ends = [((dpid[part.a], part.a_port), (dpid[part.b], part.b_port)) for part in fabric.links]
        self.cables: dict[PortId, PortId] = dict(ends) | {b: a for a, b in ends}
        self.switches = {
            part.dpid: ModelSwitch(
                part.dpid, [*fabric.hosts_at[part.name], *fabric.neighbours[part.name]]
            )
            for part in fabric.switches
        }
        self.hosts = {(dpid[part.switch], part.port): part for part in fabric.hosts}
        self.odd: set[PortId] = set()
        self.connections: dict[int, Any] = {}
        self.fabrics: list[Fabric] = []
        session: Any = self.session
        self.learning = Discovery(0.0)
        self.learner = Learner(self.learning, "found", self.fabrics.append, session, interval_s=0)
        running.callback(self.learner.close)

    def session(self, connection: Any) -> Any:
        session = ModelSession(connection)
        session.send_probe = lambda message: self.send(connection.dpid, message)  # type: ignore[attr-defined]
        return session

    def connect(self, dpid: int) -> None:
        if (old := self.connections.get(dpid)) is not None:
            old.is_open = False
            self.learner.disconnected(old)
        switch = self.switches[dpid]
        connection: Any = SimpleNamespace(
            dpid=dpid, is_open=True, switch=switch, rng=self.rng, ports=switch.ports
        )
        connection.close = lambda: setattr(connection, "is_open", False)
        self.connections[dpid] = connection
        self.learner.connected(connection)

    def begin(self) -> None:
        """Start to learn, with all switches; ``quiet_s`` decides when that ends."""
        self.learning.quiet_s = 1e9
        self.learner.start()
        for dpid in self.switches:
            self.connect(dpid)

    def send(self, dpid: int, message: bytes) -> None:
        """Send probes from the ports of a switch; an odd host sends them back."""
        for port in sorted(self.learning.ports(dpid)):
            size = int.from_bytes(message[2:4], "big")
            frame, message = sent(message[:size], port), message[size:]
            peer = self.cables.get((dpid, port), (dpid, port))
            if peer in self.odd:
                # It also makes it that of another port.
                other = self.rng.randrange(1, 9).to_bytes(3, "big")
                self.arrive(peer, frame[:9] + other + frame[12:])
            if peer not in self.hosts or peer in self.odd:
                self.arrive(peer, frame)
        assert message == b""

    def arrive(self, port: PortId, frame: bytes) -> None:
        """Have a frame arrive at a port of a switch."""
        switch, connection = self.switches[port[0]], self.connections.get(port[0])
        if connection is None or switch.ports[port[1]] is not UP:
            return
        destination = int.from_bytes(frame[:6], "big")
        matching = [rule for rule in switch.rules.values() if matches(rule, port[1], destination)]
        rule = max(matching, key=lambda candidate: candidate.priority, default=None)
        if rule is not None and rule.actions == (Output(CONTROLLER),):
            self.learner.packet_in(port[0], packet_in(port[1], frame, rule.cookie))

    def talk(self) -> None:
        """Have each host send a frame, and some a probe that they have made themselves."""
        forged = Frames(None)
        for port, host in self.hosts.items():
            address = bytes(map(int, host.ip.split(".")))
            source = mac_value(host.mac).to_bytes(6, "big")
            arp = bytes.fromhex("08060001080006040001") + source + address
            self.arrive(port, b"\xff" * 6 + source + arp)
            probe = forged.packet_out(self.rng.choice(list(self.switches)), [1], reflected=False)
            self.arrive(port, sent(probe, 1))

    def talk_for(self, turns: int) -> None:
        """Have all hosts talk, and others act in between."""
        for _ in range(turns):
            self.talk()
            runtime.sleep(0)


def matches(rule: Rule, port: int, destination: int) -> bool:
    fields = {"in_port": port, "eth_dst": destination, "eth_type": 0x88B5}
    return all(fields[condition.name] == condition.value for condition in rule.match)


@pytest.mark.thin(1)
@pytest.mark.parametrize("block", range(2))
def test_a_fabric_is_learned_while_switches_come_and_go(block: int) -> None:
    for seed, rng in seeded(range(block, CASES, 2)):
        fabric = small_fabric(rng, most_switches=5, most_hosts=5)
        network = Network(rng, fabric)
        network.begin()
        for _ in range(rng.randrange(12)):
            dpid = rng.choice(list(network.switches))
            switch = network.switches[dpid]
            switch.ports[rng.choice(list(switch.ports))] = rng.choice((UP, DOWN))
            network.learner.ports_changed(network.connections[dpid])
            if rng.random() < 0.2:
                network.connect(dpid)
            for _ in range(rng.randrange(20)):
                runtime.sleep(0)
        for dpid, switch in network.switches.items():
            switch.ports.update(dict.fromkeys(switch.ports, UP))
            network.learner.ports_changed(network.connections[dpid])
        for _ in range(50):
            runtime.sleep(0)
        network.learning.quiet_s = 0.0
        for _ in range(TURNS):
            if network.fabrics:
                break
            network.talk()
            runtime.sleep(0)
        (learned,) = network.fabrics
        assert not removed(learned, fabric), f"seed {seed}: {network.learner.as_json()}"
        for switch in network.switches.values():
            assert all(rule.cookie == PROBE_COOKIE for rule in switch.rules.values())
        assert network.learner.as_json()["problems"] == []


def test_hosts_are_found_once_and_then_not_listened_to() -> None:
    for seed, rng in seeded(range(500, 504)):
        fabric = small_fabric(rng, most_switches=4, most_hosts=4)
        network = Network(rng, fabric)
        network.begin()
        network.talk_for(100)
        for dpid, switch in network.switches.items():
            heard = {
                rule.match[0].value
                for rule in switch.rules.values()
                if rule.actions == (Output(CONTROLLER),) and len(rule.match) == 1
            }
            assert heard == set(), f"seed {seed}: {dpid}"
        learned = network.learning.fabric("found")
        assert {host.mac for host in learned.hosts} == {host.mac for host in fabric.hosts}
        network.learning.quiet_s = 0.0
        while not network.fabrics:
            runtime.sleep(0)


def test_a_host_that_sends_probes_back_is_not_used_and_harms_nobody_else() -> None:
    for seed, rng in seeded(range(600, 605)):
        fabric = small_fabric(rng, most_switches=4, most_hosts=5)
        network = Network(rng, fabric)
        network.odd = {next(iter(network.hosts))}
        network.begin()
        network.talk_for(100)
        shown = network.learner.as_json()
        (dpid, port), *_ = network.odd
        line = f"s{dpid}:{port} is connected to s{dpid}:{port} of the same switch"
        assert line in str(shown["problems"]), f"seed {seed}"
        assert network.learning.as_json(0.0)["hosts"] == len(fabric.hosts) - 1, f"seed {seed}"
        network.learning.quiet_s = 0.0
        for _ in range(100):
            runtime.sleep(0)
        assert len(network.fabrics) == (len(fabric.hosts) > 2), f"seed {seed}"
