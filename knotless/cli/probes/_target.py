"""The target of probes: a running fabric with its plan, links, senders and captures."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import rdpcap

from knotless.base.errors import EmulationError
from knotless.base.flow_control import LinkFlowControl
from knotless.base.package import WORKING_DIRECTORY, python_module
from knotless.emulation import namespaces, rest, state, wiring
from knotless.emulation.daemon import Daemon
from knotless.emulation.interface_names import host_interface
from knotless.emulation.names import MARK, Names
from knotless.routing.plan import Plan, make_plan
from knotless.routing.repair import repair
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.drained import avoided
from knotless.topologies.fabric import Fabric, Host
from knotless.topologies.failures import Failures
from knotless.traffic.flows import channels_of

PROBE_TYPE = 0x88B6
"""The EtherType of probe frames: 'local experimental 2' of IEEE 802."""
PAYLOAD_BYTES = 46
START_LIMIT_S = 10.0
ARRIVAL_LIMIT_S = 5.0
LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Seen:
    """A frame on a link, at Unix time ``at_s`` of its first bit."""

    link: str
    at_s: float
    packet: Packet


class Sender:
    """Sends frames from a host's interface; a context manager."""

    def __init__(self, names: Names, host: str, interface: str) -> None:
        self._host = host
        self._process = subprocess.Popen(
            namespaces.enter(
                names.host_namespace(host),
                python_module("knotless.cli.probes._send", interface),
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=WORKING_DIRECTORY,
            env={**os.environ, MARK: names.name},
        )

    def __enter__(self) -> Sender:
        self._expect(b"ready\n")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.kill()
        self._process.wait()

    def send(self, frame: Packet) -> None:
        """Send one frame; the kernel has it when this returns."""
        if self._process.stdin is None:  # pragma: no cover - it was opened with a pipe
            raise ValueError("no pipe")
        self._process.stdin.write(bytes(frame).hex().encode() + b"\n")
        self._process.stdin.flush()
        self._expect(b"sent\n")

    def _expect(self, word: bytes) -> None:
        stream = self._process.stdout
        if stream is None or not select.select([stream], [], [], START_LIMIT_S)[0]:
            raise EmulationError(f"{self._host}: its sender of frames does not answer")
        if stream.readline() != word:
            raise EmulationError(f"{self._host}: frames cannot be sent from its interface")


@dataclass
class Capture:
    """A capture of all links of a fabric; the frames are available after the block."""

    files: Mapping[str, Path]
    daemon: Daemon
    seen: list[Seen] = field(default_factory=list)

    def await_marker(self, link: str, marker: bytes, limit_s: float = ARRIVAL_LIMIT_S) -> bool:
        """Wait until a frame with the marker was on a link; return False if it does not arrive."""

        def there() -> bool:
            self.daemon.status()  # the emulator flushes captures before it answers
            return marker in self.files[link].read_bytes()

        return wait_for(there, limit_s)

    def marked_frames(self, marker: bytes) -> list[Seen]:
        """Return the links on which the marked frame was seen, in order of time."""
        matches = [seen for seen in self.seen if marker in bytes(seen.packet)]
        return sorted(matches, key=lambda seen: seen.at_s)


@dataclass(frozen=True)
class Target:
    """A running fabric. ``pairs`` are the hosts whose paths are of interest.

    Its rules add ``first_vlan`` and ``first_priority`` to the VLANs and priorities of ``plan``.
    """

    names: Names
    fabric: Fabric
    settings: Mapping[str, Any]
    plan: Plan
    daemon: Daemon
    pairs: Sequence[tuple[Host, Host]]
    first_vlan: int = 0
    first_priority: int = 0

    def sender(self, host: Host) -> Sender:
        """Return a sender of frames from a host."""
        return Sender(self.names, host.name, host_interface(self.fabric, host.name))

    def outputs(self, source: Host, destination: Host) -> list[tuple[str, int, int]]:
        """Return each switch on a frame's planned path with its output port and priority there.

        Under ECMP the path is the one that the hash gives, and all priorities are 0.
        """
        if self.plan.has_choices:
            channels = channels_of(self.plan, source.name, destination.name)
            ends = (channel.rsplit(":", 1) for channel in channels)
            return [(switch, int(port), 0) for switch, port in ends]
        path = self.plan.path(source.name, destination.name)
        return [(hop.switch, hop.out_port, hop.priority) for hop in path]

    def link_of(self, switch: str, port: int) -> str:
        """Return the name of the link at a switch's port."""
        return self._links[switch, port]

    @property
    def _links(self) -> dict[tuple[str, int], str]:
        cables = wiring.wire(self.fabric)
        return {(end.owner, end.port): cable.name for cable in cables for end in cable.ends}

    def flow_control(self, host: Host) -> LinkFlowControl:
        """Return the flow control of a host's link."""
        cables = {cable.name: cable for cable in wiring.wire(self.fabric)}
        return wiring.link_flow_control(cables[host.name], self.plan.flow_control)

    def unforwarded(self, host: Host) -> int:
        """Return the number of a host's frames that its switch has dropped."""
        for channel in self.daemon.counters()["channels"]:
            if channel["channel"] == host.name:
                return int(channel["drops"]["unforwarded"])
        raise EmulationError(f"the link emulator has no channel {host.name!r}")

    @contextlib.contextmanager
    def captured(self) -> Iterator[Capture]:
        """Capture every link during the block; the frames are available after it."""
        with (
            tempfile.TemporaryDirectory(prefix="knotless-probe-") as folder,
            contextlib.ExitStack() as stack,
        ):
            links = [cable.name for cable in wiring.wire(self.fabric)]
            files = {link: Path(folder) / f"{index}.pcap" for index, link in enumerate(links)}
            capture = Capture(files, self.daemon)
            for link, file in files.items():
                self.daemon.capture(link, file)
                stack.callback(self.daemon.capture_stop, link)
            yield capture
            stack.close()
            for link, file in files.items():
                for packet in rdpcap(str(file)):
                    capture.seen.append(Seen(link, float(packet.time), packet))


def wait_for(condition: Callable[[], bool], limit_s: float) -> bool:
    """Wait until a condition holds; return False if it does not within ``limit_s``."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(LOOK_EVERY_S)
    return True


def marked(source: str, destination: str, *tags: Packet) -> tuple[Packet, bytes]:
    """Return a frame between two MAC addresses, with these VLAN tags, and its marker."""
    marker = b"knotless" + secrets.token_bytes(8)
    frame: Packet = Ether(src=source, dst=destination, type=PROBE_TYPE)
    if tags:
        frame = Ether(src=source, dst=destination)
        for tag in tags:
            frame /= tag
        frame.lastlayer().type = PROBE_TYPE
    return frame / Raw(marker.ljust(PAYLOAD_BYTES, b"\0")), marker


def target(names: Names, pairs: Sequence[tuple[str, str]], count: int) -> Target:
    """Find the running fabric with that name and plan it as its controller did.

    ``pairs`` names the hosts of interest; if it is empty, ``count`` pairs are used, of
    hosts half the fabric apart. Raises EmulationError if no such fabric is running, or
    if it has no plan or no captures.
    """
    settings = state.require_running(names).settings
    if settings["controller"] != "ryu" or settings["links"] != "emulated":
        raise EmulationError(
            f"fabric {names.name!r}: probes need our controller and emulated links"
        )
    fabric = load(str(names.fabric_file))
    status = rest.status_of(rest.ports_of(settings))
    routes = status["routes"]
    if routes["serves_first"]:
        raise EmulationError(
            f"fabric {names.name!r}: routes are those of repairs of repairs until failures have"
            " settled; probe it when 'serves_first' under 'routes' of GET /status is false"
        )
    plan = make_plan(fabric, PlanRequest.from_settings(status["request"]))
    failures = Failures.from_names(fabric, routes["failed"])
    if unused := avoided(fabric, failures, routes["drained"]).failures:
        plan = repair(plan, unused).plan
    hosts = fabric.hosts
    if len(hosts) < 2:
        raise EmulationError(f"{fabric.name}: a probe needs two hosts")
    for host in (name for pair in pairs for name in pair):
        if host not in fabric.host_index:
            raise EmulationError(f"--pair: {fabric.name} has no host {host!r}")
    if any(a == b for a, b in pairs):
        raise EmulationError("--pair: name two different hosts")
    chosen = [(hosts[fabric.host_index[a]], hosts[fabric.host_index[b]]) for a, b in pairs]
    if not chosen:
        step = max(1, len(hosts) // count)
        distance = len(hosts) // 2
        chosen = [
            (hosts[i], hosts[(i + distance) % len(hosts)]) for i in range(0, len(hosts), step)
        ][:count]
    return Target(
        names,
        fabric,
        settings,
        plan,
        Daemon(names.emulator_socket, fabric.switch_index),
        chosen,
        routes["first_vlan"],
        routes["first_priority"],
    )
