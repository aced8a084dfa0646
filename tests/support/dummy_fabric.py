"""Bridges of Open vSwitch on dummy devices, joined by patch ports, in a directory of their own.

No network device of this machine is touched, and one ofproto/trace follows a frame through the
whole fabric.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from knotless.forwarding.openflow.directory import write_dir
from knotless.forwarding.openflow.rules import FabricRules
from knotless.topologies import Fabric
from knotless.topologies.numbering import mac_text
from tests.support.one_switch import Frame
from tests.support.waiting import HANG_S, until

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


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
            timeout=HANG_S,
        )
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    def appctl(self, *command: str) -> str:
        return self.run("ovs-appctl", "-t", str(self.folder / "switch.ctl"), *command)

    def start(self) -> None:
        self.run("ovsdb-tool", "create", str(self.folder / "conf.db"), SCHEMA)
        database = f"unix:{self.folder / 'db.sock'}"
        self._daemon("ovsdb-server", "conf.db", "--remote=punix:db.sock", "--unixctl=db.ctl")
        until("db.sock", (self.folder / "db.sock").exists)
        self.run("ovs-vsctl", f"--db={database}", "--no-wait", "init")
        self._daemon("ovs-vswitchd", database, "--enable-dummy=override", "--unixctl=switch.ctl")
        until("switch.ctl", (self.folder / "switch.ctl").exists)
        self.run("ovs-vsctl", f"--db={database}", "--timeout=500", *self._bridges())
        write_dir(self.fabric, self.rules, self.folder / "rules")
        self.load(self.folder / "rules")
        for host, number in re.findall(r"^ +(h\d+) \d+/(\d+):", self.appctl("dpif/show"), re.M):
            self.host_of[int(number)] = host

    def load(self, folder: Path) -> None:
        """Replace the rules of all switches by those in a folder of ours."""
        for switch in self.fabric.switches:
            self.ofctl("del-flows", switch.name)
            self.ofctl("del-groups", switch.name)
            groups = str(folder / f"{switch.name}.groups")
            self.ofctl("add-groups", switch.name, groups)
            self.ofctl("add-flows", switch.name, str(folder / f"{switch.name}.flows"))

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

    def stop(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            daemon.wait(timeout=HANG_S)
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
