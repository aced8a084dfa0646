"""Open vSwitch accepts our rule files, dumps the same rules, and forwards as the check predicts.

It runs on dummy devices, joined by patch ports, in a directory of its own: no network device
of this machine is touched, and one ofproto/trace follows a frame through the whole fabric.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forwarding.openflow.compiler import compile_rules
from forwarding.openflow.directory import write_dir
from forwarding.openflow.ofctl_parser import parse
from forwarding.openflow.rules import FabricRules
from routing.plan import make_plan
from tests.one_switch import Frame, Pipeline
from topologies import Fabric, load
from topologies.numbering import mac_text, mac_value

DEADLINE_S = 60.0
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("torus,4,4,hosts=2", "dor", {}),
    ("ring,5,hosts=3", "minimal", {}),
    ("mtree,3,3", "updown", {}),
    ("ring,5", "updown", {"vcs": 2}),
    ("flat,4", "updown", {}),
]

pytestmark = pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch")


class DummyFabric:
    """A fabric's bridges in one ovs-vswitchd with dummy devices."""

    def __init__(self, fabric: Fabric, rules: FabricRules) -> None:
        self.fabric = fabric
        self.rules = rules
        self.folder = Path(tempfile.mkdtemp(prefix="kd-"))
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.host_of: dict[int, str] = {}
        """Port of the datapath -> host."""

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command,
            env={**os.environ, "OVS_RUNDIR": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def appctl(self, *command: str) -> str:
        return self.run("ovs-appctl", "-t", str(self.folder / "switch.ctl"), *command)

    def start(self) -> None:
        self.run("ovsdb-tool", "create", str(self.folder / "conf.db"), SCHEMA)
        database = f"unix:{self.folder / 'db.sock'}"
        self._daemon("ovsdb-server", "conf.db", "--remote=punix:db.sock", "--unixctl=db.ctl")
        self._wait_for(self.folder / "db.sock")
        self.run("ovs-vsctl", f"--db={database}", "--no-wait", "init")
        self._daemon("ovs-vswitchd", database, "--enable-dummy=override", "--unixctl=switch.ctl")
        self._wait_for(self.folder / "switch.ctl")
        self.run("ovs-vsctl", f"--db={database}", "--timeout=30", *self._bridges())
        write_dir(self.fabric, self.rules, self.folder / "rules")
        for switch in self.fabric.switches:
            file = self.folder / "rules" / switch.name
            self.ofctl("add-groups", switch.name, f"{file}.groups")
            self.ofctl("add-flows", switch.name, f"{file}.flows")
        for host, number in re.findall(r"^ +(h\d+) \d+/(\d+):", self.appctl("dpif/show"), re.M):
            self.host_of[int(number)] = host

    def ofctl(self, verb: str, switch: str, *words: str) -> str:
        return self.run("ovs-ofctl", "-O", "OpenFlow13", "--no-names", verb, switch, *words)

    def _bridges(self) -> list[str]:
        words: list[str] = []
        for switch in self.fabric.switches:
            words += ["--", "add-br", switch.name, "--", "set", "bridge", switch.name]
            words += ["datapath_type=dummy", "protocols=OpenFlow13", "fail_mode=secure"]
        for host in self.fabric.hosts:
            words += ["--", "add-port", host.switch, host.name, "--", "set", "interface", host.name]
            words += ["type=dummy", f"ofport_request={host.port}"]
        for link in self.fabric.links:
            ends = [(link.a, link.a_port), (link.b, link.b_port)]
            names = [f"{name}-{port}" for name, port in ends]
            for (bridge, port), name, peer in zip(ends, names, names[::-1], strict=True):
                words += ["--", "add-port", bridge, name, "--", "set", "interface", name]
                words += ["type=patch", f"options:peer={peer}", f"ofport_request={port}"]
        return words

    def _daemon(self, *command: str) -> None:
        with (self.folder / f"{command[0]}.log").open("wb") as log:
            self.daemons.append(
                subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env={**os.environ, "OVS_RUNDIR": str(self.folder)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def _wait_for(self, path: Path) -> None:
        end = time.monotonic() + DEADLINE_S
        while not path.exists():
            assert time.monotonic() < end, f"waited in vain for {path.name}"
            time.sleep(0.01)

    def stop(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            daemon.wait(timeout=DEADLINE_S)
        shutil.rmtree(self.folder)

    def trace(self, switch: str, in_port: int, frame: Frame) -> list[str]:
        """Return the hosts that get the frame by ofproto/trace; all copies are untagged."""
        flow = f"in_port={in_port},dl_src={mac_text(frame.eth_src)}"
        flow += f",dl_dst={mac_text(frame.eth_dst)},dl_type={frame.eth_type:#x}"
        if frame.tags:
            flow += f",dl_vlan={frame.tags[0] & 0xFFF},dl_vlan_pcp={frame.tags[0] >> 13}"
        text = self.appctl("ofproto/trace", switch, flow)
        actions = text.rsplit("Datapath actions: ", 1)[1].strip()
        if actions == "drop":
            return []
        numbers = [part for part in actions.split(",") if part != "pop_vlan"]
        assert all(part.isdigit() for part in numbers), actions
        return sorted(self.host_of[int(number)] for number in numbers)


def _follow(fabric: Fabric, rules: FabricRules, switch: str, port: int, frame: Frame) -> list[str]:
    """Return the hosts that get the frame according to our own interpreter."""
    pipelines = {name: Pipeline(name, of_switch) for name, of_switch in rules.items()}
    hosts = []
    going = [(switch, port, frame)]
    while going:
        switch, port, frame = going.pop()
        for out_port, copy in pipelines[switch].outputs(port, frame):
            if out_port in fabric.neighbours[switch]:
                going.append((*fabric.neighbours[switch][out_port], copy))
            else:
                assert copy.tags == ()
                hosts.append(fabric.hosts_at[switch][out_port].name)
    return sorted(hosts)


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def running(request: pytest.FixtureRequest) -> Iterator[DummyFabric]:
    spec, engine, options = request.param
    plan = make_plan(load(spec), engine, **options)
    fabric = DummyFabric(plan.fabric, compile_rules(plan))
    try:
        fabric.start()
        yield fabric
    finally:
        fabric.stop()


def test_open_vswitch_agrees(running: DummyFabric) -> None:
    fabric, rules = running.fabric, running.rules
    for name, of_switch in rules.items():
        flows, groups = running.ofctl("dump-flows", name), running.ofctl("dump-groups", name)
        assert parse(flows, groups) == of_switch
    chance = random.Random(1)  # noqa: S311 - no secret
    macs = [mac_value(host.mac) for host in fabric.hosts]
    strange = [0xFFFFFFFFFFFF, 0x01005E000001, 0x0180C2000001, 0x020000000199, 0x020000FFFF01]
    delivered = 0
    for _ in range(40):
        source = chance.choice(fabric.hosts)
        frame = Frame(
            chance.choice(macs + strange),
            mac_value(source.mac) if chance.random() < 0.9 else chance.choice(macs),
            chance.choice([0x0800, 0x0806]),
            () if chance.random() < 0.9 else (2,),
        )
        here = (source.switch, source.port, frame)
        assert running.trace(*here) == _follow(fabric, rules, *here), here
        delivered += bool(running.trace(*here))
    assert delivered >= 10
    for _ in range(40 if fabric.links else 0):
        link = chance.choice(fabric.links)
        tags = (chance.randrange(8) << 13 | chance.choice([1, 2, 2, 2, 3, 4]),)
        frame = Frame(chance.choice(macs + strange), chance.choice(macs), 0x0800, tags)
        here = (link.b, link.b_port, frame)
        assert running.trace(*here) == _follow(fabric, rules, *here), here
