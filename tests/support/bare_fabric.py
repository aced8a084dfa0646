"""A fabric without the link emulator, for tests of the controller: OVS switches and plain veths.

Switches, controller and REST are in one network namespace and every host in another, so nothing
outside is affected and the default ports are free.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Self

from knotless.topologies import Fabric, Host, Link
from tests.support import REPOSITORY
from tests.support.controller_programs import controller_command
from tests.support.waiting import HANG_S, until

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


class BareFabric:
    """A running fabric; use it in a ``with`` statement."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.namespace = f"kb{secrets.token_hex(3)}"
        # Short, because a Unix socket's path may have 107 characters.
        self.directory = Path(tempfile.mkdtemp(prefix="kb-", dir="/tmp"))
        self.controller: subprocess.Popen[bytes] | None = None
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._logs: list[IO[bytes]] = []
        self._namespaces: list[str] = []
        self._links = 0

    # --- up and down -------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self._add_namespace(self.namespace)
        self._start_ovs()
        for switch in self.fabric.switches:
            self.add_bridge(switch.name, switch.dpid)
        for link in self.fabric.links:
            self.add_link(link)
        for host in self.fabric.hosts:
            self.add_host(host)

    def stop(self) -> None:
        """Remove everything that was made."""
        self.kill_controller()
        for daemon in reversed(self._daemons):
            daemon.kill()
            daemon.wait()
        for log in self._logs:
            log.close()
        for namespace in reversed(self._namespaces):
            subprocess.run(["ip", "netns", "delete", namespace], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _add_namespace(self, name: str) -> None:
        subprocess.run(["ip", "netns", "add", name], check=True)
        self._namespaces.append(name)
        quiet = (
            "for i in all default; do f=/proc/sys/net/ipv6/conf/$i/disable_ipv6;"
            " [ ! -e $f ] || echo 1 >$f; done; ip link set lo up"
        )
        subprocess.run(["ip", "netns", "exec", name, "sh", "-c", quiet], check=True)

    def _start_ovs(self) -> None:
        database = self.directory / "conf.db"
        subprocess.run(["ovsdb-tool", "create", database, SCHEMA], check=True)
        self._daemon("ovsdb-server", f"--remote=punix:{self.directory}/db.sock", str(database))
        until("ovsdb-server", (self.directory / "db.sock").exists)
        self.vsctl("--no-wait", "init")
        self._daemon("ovs-vswitchd", f"unix:{self.directory}/db.sock")

    def _daemon(self, *argv: str) -> None:
        self._daemons.append(self._spawn(argv, argv[0]))

    def _spawn(self, argv: Sequence[str], name: str, **more: str) -> subprocess.Popen[bytes]:
        log = (self.directory / f"{name}.log").open("wb")
        self._logs.append(log)
        return subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=REPOSITORY,
            env=self._environment(**more),
        )

    def _environment(self, **more: str) -> dict[str, str]:
        places = dict.fromkeys(("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR"), str(self.directory))
        return {**os.environ, **places, **more}

    # --- switches and hosts ------------------------------------------------------------------

    def run(self, *argv: str) -> str:
        """Run a command in the switches' namespace and return what it prints."""
        done = subprocess.run(
            ["ip", "netns", "exec", self.namespace, *argv],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(argv)}: {done.stderr or done.stdout}"
        return done.stdout

    def vsctl(self, *argv: str) -> str:
        """Run ovs-vsctl on the private OVS."""
        return self.run("ovs-vsctl", f"--db=unix:{self.directory}/db.sock", "--timeout=500", *argv)

    def ofctl(self, command: str, bridge: str, *argv: str) -> str:
        """Run ovs-ofctl with OpenFlow 1.3 on a switch."""
        where = f"unix:{self.directory}/{bridge}.mgmt"
        return self.run("ovs-ofctl", "-O", "OpenFlow13", command, where, *argv)

    def add_bridge(self, name: str, dpid: int) -> None:
        """Make a switch that connects to its controller on the default port."""
        self.vsctl(
            *("--id=@c", "create", "controller", 'target="tcp:127.0.0.1:6653"'),
            *("max_backoff=1000", "--"),
            *("add-br", name, "--", "set", "bridge", name, "datapath_type=netdev"),
            *("fail_mode=secure", "protocols=OpenFlow13", "controller=@c"),
            *("other_config:disable-in-band=true", f"other_config:datapath-id={dpid:016x}"),
        )

    def add_link(self, link: Link) -> None:
        """Connect two switches."""
        a, b = f"l{self._links}a", f"l{self._links}b"
        self._links += 1
        self.run("ip", "link", "add", a, "type", "veth", "peer", "name", b)
        self.add_port(link.a, a, link.a_port)
        self.add_port(link.b, b, link.b_port)

    def add_host(self, host: Host) -> None:
        """Connect a host to its switch."""
        namespace = self.host_namespace(host.name)
        self._add_namespace(namespace)
        inner = f"p{host.name}"
        peer = ["peer", "name", "eth0", "netns", namespace]
        self.run("ip", "link", "add", inner, "type", "veth", *peer)
        for command in (
            f"link set eth0 address {host.mac}",
            f"addr add {host.ip}/8 dev eth0",
            "link set eth0 up",
        ):
            self.on(host.name, "ip", *command.split())
        # Between namespaces of one kernel, frames carry no checksum by default.
        self.on(host.name, "ethtool", "-K", "eth0", "tx", "off")
        self.add_port(host.switch, inner, host.port)

    def add_port(self, bridge: str, interface: str, number: int) -> None:
        """Add a port to a switch."""
        self.run("ip", "link", "set", interface, "up")
        self.vsctl(
            *("add-port", bridge, interface, "--"),
            *("set", "interface", interface, f"ofport_request={number}"),
        )

    def host_namespace(self, host: str) -> str:
        """Return the name of a host's namespace."""
        return f"{self.namespace}-{host}"

    def command_on(self, host: str, *argv: str) -> list[str]:
        """Return the command that runs ``argv`` on a host."""
        return ["ip", "netns", "exec", self.host_namespace(host), *argv]

    def on(self, host: str, *argv: str) -> str:
        """Run a command on a host and return what it prints."""
        done = subprocess.run(
            self.command_on(host, *argv), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{host}: {' '.join(argv)}: {done.stderr or done.stdout}"
        return done.stdout

    def flows(self, bridge: str) -> dict[str, float]:
        """Return a switch's flows, without counters -> age in seconds."""
        ages = {}
        for line in self.ofctl("dump-flows", bridge).splitlines():
            age = re.search(r"duration=([0-9.]+)s", line)
            if age:
                text = re.sub(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*, ?", "", line)
                ages[text.strip()] = float(age[1])
        return ages

    # --- the controller ----------------------------------------------------------------------

    def start_controller(self, config: str, app: str | None = None) -> None:
        """Start a controller with ``config`` (YAML), by ``ryu-manager`` if it is an application."""
        path = self.directory / "knotless.yaml"
        path.write_text(config)
        command = controller_command(applications=None if app is None else (app,))
        self.controller = self._spawn(command, "controller", KNOTLESS_CONFIG=str(path))

    def kill_controller(self) -> None:
        """Kill the controller."""
        if self.controller is not None:
            self.controller.kill()
            self.controller.wait()
            self.controller = None

    def controller_log(self) -> str:
        """Return the controller's output so far."""
        return (self.directory / "controller.log").read_text()

    def get(self, path: str) -> Any:
        """Query the REST interface; return None while it does not answer."""
        done = subprocess.run(
            [
                *("ip", "netns", "exec", self.namespace, "curl", "--silent", "--fail"),
                *("--max-time", f"{HANG_S:g}", f"http://127.0.0.1:8080{path}"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        return json.loads(done.stdout) if done.returncode == 0 else None

    def await_ready(self) -> Any:
        """Wait until every switch has its rules; return the status."""

        def ready() -> bool:
            assert self.controller is not None
            assert self.controller.poll() is None, self.controller_log()
            status = self.get("/status")
            return bool(status and status["ready"])

        try:
            until("the controller to be ready", ready)
        except AssertionError as never:
            detail = f"{self.get('/status')}\n{self.controller_log()}"
            raise AssertionError(f"{never}\n{detail}") from None
        return self.get("/status")
