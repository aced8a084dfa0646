"""OpenSM on a simulated InfiniBand network with the topology of a fabric.

Measures routing time, virtual lanes and channel loads. Needs the Debian packages opensm and
ibsim-utils. Files are read and written in a temporary directory only, and no port is opened: the
simulator listens on an abstract Unix socket.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path

from knotless.topologies import Fabric

PRELOAD = "umad2sim/libumad2sim.so"
_FIRST_SWITCH_GUID = 0x200000
"""ibsim numbers switches from this GUID, in the order of its file."""
_READY_S = 60
UNFINISHED, CRASHED = "not finished", "crashed"
"""The first words of a reason for no routes from OpenSM, besides `fails`: it gives up by itself."""
_DAY_US = 24 * 3600 * 1_000_000
# OpenSM's log has time stamps in microseconds. Only the lines around the routing are logged:
# 'building routing with' before it, and the first table written after it.
_TIMED = "osm_ucast_mgr.c 0x07\nosm_req.c 0x0B\n"
# OpenSM dumps its tables within the routing callbacks, so a run with dumps is not timed.
_DUMPED = f"{_TIMED}osm_dump.c 0x43\n"
_STAMP = re.compile(r"^\w+ +\d+ (\d\d):(\d\d):(\d\d) (\d{6}) ")


@dataclass(frozen=True)
class Routed:
    """The result of OpenSM on a fabric.

    routing_ms : the time of its routing callbacks, without discovery and programming of tables.
        None if it did not complete them.
    virtual_lanes : the number that it reports, or None.
    max_channel_load : the most paths between hosts over one channel between switches.
    failure : why there are no routes, or an empty string.
    """

    routing_ms: float | None
    virtual_lanes: int | None = None
    max_channel_load: int | None = None
    failure: str = ""


def missing() -> list[str]:
    """Return the Debian packages that are not installed."""
    here = {"opensm": shutil.which("opensm"), "ibsim-utils": shutil.which("ibsim") and _preload()}
    return [name for name, installed in here.items() if not installed]


def _preload() -> Path | None:
    return next(iter(sorted(Path("/usr/lib").glob(f"*/{PRELOAD}"))), None)


class Network:
    """A simulated InfiniBand network with its own directory; see :func:`network`."""

    def __init__(self, fabric: Fabric, folder: Path) -> None:
        self.fabric = fabric
        self._folder = folder
        self._environment = {
            **os.environ,
            "IBSIM_SOCKNAME": f"knotless-{os.getpid()}-{time.monotonic_ns()}",
            "SIM_HOST": fabric.hosts[0].name,
            "OSM_TMP_DIR": str(folder),
            "OSM_CACHE_DIR": str(folder),
        }
        self.write("net", net_file(fabric))

    def write(self, name: str, text: str) -> Path:
        """Write a file to the network's directory and return its path."""
        path = self._folder / name
        path.write_text(text)
        return path

    def start(self) -> subprocess.Popen[bytes]:
        """Start the simulator and wait until it is ready."""
        counts = len(self.fabric.hosts) + len(self.fabric.switches) + 64
        ends = 2 * len(self.fabric.links) + 2 * counts
        limits = ["-N", str(counts), "-S", str(counts), "-P", str(ends + 64), "-L", "49152"]
        log = self._folder / "ibsim.log"
        with log.open("wb") as output:
            simulator = subprocess.Popen(
                ["ibsim", "-s", "-n", *limits, "net"],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _READY_S
        while self._environment["IBSIM_SOCKNAME"] not in Path("/proc/net/unix").read_text():
            if simulator.poll() is not None or time.monotonic() > deadline:
                simulator.kill()
                raise RuntimeError(f"ibsim did not start: {log.read_text()[-200:]}")
            time.sleep(0.01)
        return simulator

    def route(self, engine: str, settings: str, limit_s: float, dump: bool) -> Routed:
        """Run OpenSM once with ``engine`` and the configuration lines ``settings``.

        With ``dump`` its tables are also read; then the time includes writing them.
        """
        folder = self._folder
        log, tables = folder / "osm.log", folder / "opensm-lfts.dump"
        for old in (log, tables):
            old.unlink(missing_ok=True)
        self.write("modules", _DUMPED if dump else _TIMED)
        self.write(
            "conf",
            f"routing_engine {engine}\nper_module_logging_file {folder}/modules\n"
            f"log_flags 0x03\nlog_file {log}\nlog_max_size 0\ndump_files_dir {folder}\n"
            f"partition_config_file {folder}/none\nqos_policy_file {folder}/none\n"
            f"sweep_interval 0\nmax_wire_smps 64\nqos TRUE\n{settings}\n",
        )
        environment = {**self._environment, "LD_PRELOAD": str(_preload())}
        try:
            done = subprocess.run(
                ["opensm", "-F", "conf", "-o"],
                cwd=folder,
                env=environment,
                capture_output=True,
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Routed(None, failure=f"{UNFINISHED} after {limit_s:g} s")
        if done.returncode < 0:
            return Routed(None, failure=f"{CRASHED} by signal {-done.returncode}")
        return self._read(log.read_text(errors="replace").splitlines(), tables)

    def _read(self, log: list[str], tables: Path) -> Routed:
        begins = [i for i, line in enumerate(log) if "building routing with" in line]
        if not begins:
            return Routed(None, failure="its log shows no routing")
        routing = log[begins[0] + 1 :]
        ends = (i for i, line in enumerate(routing) if " Setting " in line or "cannot" in line)
        end = next(ends, len(routing) - 1)
        lapse_us = (_stamp_us(routing[end]) - _stamp_us(log[begins[0]])) % _DAY_US
        inside = "\n".join(routing[:end])
        lanes = _virtual_lanes(inside)
        if len(begins) > 1 or "cannot" in routing[end]:
            return Routed(lapse_us / 1000, lanes, failure="fails")
        if not tables.exists():
            return Routed(lapse_us / 1000, lanes)
        load, unreachable = _loads(self.fabric, tables)
        failure = f"{unreachable} pairs without a route" if unreachable else ""
        return Routed(lapse_us / 1000, lanes, load, failure)


@contextmanager
def network(fabric: Fabric) -> Iterator[Network]:
    """Simulate ``fabric`` in a temporary directory until the context ends."""
    with tempfile.TemporaryDirectory(prefix="knotless-opensm-") as folder:
        simulated = Network(fabric, Path(folder))
        simulator = simulated.start()
        try:
            yield simulated
        finally:
            simulator.terminate()
            simulator.wait()


def net_file(fabric: Fabric) -> str:
    """Return ``fabric`` in the format of ibsim."""
    records = []
    for host in fabric.hosts:
        records.append(f'Hca 1 "{host.name}"\n[1] "{host.switch}"[{host.port}]\n')
    for switch in fabric.switches:
        hosts, links = fabric.hosts_at[switch.name], fabric.neighbours[switch.name]
        lines = [f'Switch {max([*hosts, *links])} "{switch.name}"']
        lines += [f'[{port}] "{host.name}"[1]' for port, host in hosts.items()]
        lines += [f'[{port}] "{peer}"[{peer_port}]' for port, (peer, peer_port) in links.items()]
        records.append("\n".join(lines) + "\n")
    return "\n".join(records)


def roots_file(switches: list[int]) -> str:
    """Return the text of ``root_guid_file``: the root switches of up*/down*."""
    return "".join(f"{_FIRST_SWITCH_GUID + switch:#x}\n" for switch in switches)


def torus_file(fabric: Fabric) -> str:
    """Return the text of ``torus_config`` for a torus of two or three dimensions."""
    assert fabric.grid is not None  # noqa: S101 - called for tori only
    dims = fabric.grid.dims
    lines = ["torus " + " ".join(map(str, [*dims, *[1] * (3 - len(dims))]))]
    for d, (axis, size) in enumerate(zip("xyz", dims, strict=False)):
        stride = prod(dims[:d])
        for sign, step in (("p", stride), ("m", stride * (size - 1))):
            origin = _FIRST_SWITCH_GUID
            lines.append(f"{axis}{sign}_link {origin:#x} {origin + step:#x}")
    most = max(len(hosts) for hosts in fabric.hosts_at.values())
    return "\n".join([*lines, f"portgroup_max_ports {most + 1}"]) + "\n"


def _stamp_us(line: str) -> int:
    stamp = _STAMP.match(line)
    if stamp is None:
        return 0
    hours, minutes, seconds, us = map(int, stamp.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + us


def _virtual_lanes(log: str) -> int | None:
    """Return the number of virtual lanes that lash or dfsssp reports, or None."""
    needed = re.findall(r"Virtual Lanes needed: (\d+)", log)
    layers = [int(layer) + 1 for layer in re.findall(r"Lanes in layer (\d+)", log)]
    if needed:
        return int(needed[-1])
    return max(layers) if layers else None


def _loads(fabric: Fabric, tables: Path) -> tuple[int, int]:
    """Follow the tables for all pairs; return (largest channel load, undelivered pairs)."""
    out: dict[str, dict[str, int]] = defaultdict(dict)
    name = ""
    for line in tables.read_text(errors="replace").splitlines():
        if header := re.match(r"Unicast lids .*\('(.+)'\)", line):
            name = header[1]
        elif header := re.match(r"0x\w+ (\d+) # Channel Adapter .*'(.+)'", line):
            out[name][header[2]] = int(header[1])
    homes = {host.name: host.switch for host in fabric.hosts}
    senders = Counter(homes.values())
    loads: Counter[tuple[str, int]] = Counter()
    unreachable = 0
    for target, home in homes.items():
        for source, hosts in senders.items():
            passed: list[tuple[str, int]] = []
            here = source
            while here != home and len(passed) <= len(fabric.switches):
                port = out[here].get(target, -1)
                if port not in fabric.neighbours[here]:
                    break
                passed.append((here, port))
                here = fabric.neighbours[here][port][0]
            if here == home:
                loads.update(dict.fromkeys(passed, hosts))
            else:
                unreachable += hosts
    return max(loads.values(), default=0), unreachable
