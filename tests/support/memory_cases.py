"""Work whose memory is estimated beforehand: run as a process, one case, it prints what it took.

A process of its own, because memory freed by earlier work would be used again; so would be what the
preparation has freed, which is given back first.
"""

from __future__ import annotations

import ctypes
import gc
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from knotless.base.memory import Cost
from knotless.simulation import memory
from tests.support.infiniband_dumps import Subnet

Work = Callable[[], Any]


def _resident(key: str) -> int:
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"^{key}:\s+(\d+) kB", status, re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


def peak_bytes(work: Work) -> int:
    """Return how much more memory the process has at most while it works than before."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew: proc(5)
    before = _resident("VmRSS")
    kept = work()
    taken = _resident("VmHWM") - before
    del kept
    return taken


def _plan(spec: str, engine: str, **options: str) -> Work:
    from knotless.forwarding.from_plan import state_of_plan
    from knotless.routing.plan import make_plan
    from knotless.topologies import load

    fabric = load(spec)
    state_of_plan(make_plan(load("ring,4"), engine if options else "updown"))

    def work() -> object:
        plan = make_plan(fabric, engine, **options)
        return plan, state_of_plan(plan)

    return work


def _paths() -> Work:
    """Return a plan whose paths are written out, which counts their channels."""
    plan_and_state = _plan("mesh,20,20", "lturn")

    def work() -> object:
        plan, state = plan_and_state()
        Cost.HOP.bytes_for(plan.routes.channels.size)
        return plan, state

    return work


def _fabric_file() -> Work:
    from knotless.topologies import load
    from knotless.topologies.formats import files

    path = Path(tempfile.mkdtemp()) / "fabric.json"
    path.write_text(files.to_text(load("torus,48,48,hosts=4")))
    return lambda: files.read(path)


def _imported_file() -> Work:
    from knotless.importers.reading import read_source
    from knotless.importers.sources import Source

    ports = {f"Ethernet{n}": {"lanes": "1,2", "speed": "100000"} for n in range(50_000)}
    interfaces: dict[str, object] = {f"{port}|10.0.0.0/31": {} for port in ports}
    data = json.dumps({"PORT": ports, "INTERFACE": interfaces}).encode()
    source = Source(Path("config_db.json"), True, data, Path())
    return lambda: read_source(source)


def _infiniband() -> Work:
    from knotless.importers.paths import read_paths

    folder = Path(tempfile.mkdtemp())
    read_paths([_star(2, 2).write(folder / "small")])
    path = _star(8, 250).write(folder / "large")
    return lambda: read_paths([path])


def _star(leaves: int, hosts: int) -> Subnet:
    """Return a subnet of a spine and leaves, each with ``hosts`` hosts."""
    subnet = Subnet(
        ["spine", *(f"leaf{n}" for n in range(1, leaves + 1))],
        [(0, leaf, leaf, 254) for leaf in range(1, leaves + 1)],
        [(f"h{leaf}-{n}", leaf, n) for leaf in range(1, leaves + 1) for n in range(1, hosts + 1)],
    )
    subnet.lfts = [{} for _ in subnet.names]
    for number, (_, home, port) in enumerate(subnet.hosts):
        for switch, table in enumerate(subnet.lfts):
            below = home if switch == 0 else port
            table[subnet.lids(number)[0]] = below if switch in (0, home) else 254
    return subnet


def _routers() -> Work:
    from knotless.importers.paths import read_paths
    from tests.support.router_nets import leaf_spine

    folder = Path(tempfile.mkdtemp())
    read_paths([leaf_spine(2, 1).write(folder / "small")])
    path = leaf_spine(2, 1).write(folder / "large")
    file = path / "leaf1" / "config_db.json"
    values = json.loads(file.read_text())
    values["VLAN_INTERFACE"] = {f"Vlan{n}|10.9.{n >> 6}.{n % 64 * 4}/30": {} for n in range(1500)}
    file.write_text(json.dumps(values))
    return lambda: read_paths([path])


def _neutral() -> Work:
    from knotless.importers.paths import read_paths

    folder = Path(tempfile.mkdtemp())
    (folder / "small.json").write_text(_tables_of_line(3, 1))
    read_paths([folder / "small.json"])
    path = folder / "large.json"
    path.write_text(_tables_of_line(500, 3000))
    return lambda: read_paths([path])


def _tables_of_line(switches: int, paths: int) -> str:
    last = f"s{switches}"
    return json.dumps(
        {
            "knotless-tables": 1,
            "name": "line",
            "flow_control": "pfc",
            "switches": [f"s{n}" for n in range(1, switches + 1)],
            "cables": [[f"s{n}:up", f"s{n + 1}:down"] for n in range(1, switches)],
            "hosts": {"h1": "s1:p", "h2": "s2:p", "h3": f"{last}:p"},
            "paths": [{"from": "h1", "to": "h2", "hops": ["s1:up/0"]}] * paths,
        }
    )


def _simulation(spec: str, engine: str, pattern: str, load: float | None = None) -> Work:
    """Return a simulation; without a load, of phases without barriers between them."""
    from knotless.routing.plan import make_plan
    from knotless.simulation import Load, Scenario, simulate
    from knotless.topologies import load as load_fabric

    plan = make_plan(load_fabric(spec + ",rate=10000,delay=1"), engine)
    amount = Load(barrier=False) if load is None else Load("poisson", load)
    scenario = Scenario(plan, pattern, amount, duration_us=300.0)
    return lambda: simulate(scenario)


CASES: dict[str, tuple[Cost | None, Callable[[], Work]]] = {
    "fabric-file": (Cost.FABRIC_FILE, _fabric_file),
    "imported-file": (Cost.IMPORTED_FILE, _imported_file),
    "infiniband": (Cost.INFINIBAND_PAIR, _infiniband),
    "routers": (Cost.ROUTER_PAIR, _routers),
    "listed-paths": (Cost.LISTED_PATH, _neutral),
    "plan": (Cost.SWITCH_PAIR, lambda: _plan("torus,40,40", "dor")),
    "turns": (Cost.TURN, lambda: _plan("fullmesh,200", "updown")),
    "paths": (Cost.HOP, _paths),
    "tables": (Cost.NEXT_HOP, lambda: _plan("dragonflyplus,l=10,s=10,h=5,p=10", "dragonflyplus")),
    "sets": (Cost.NEXT_HOPS, lambda: _plan("fattree3,24", "updown", multipath="ecmp")),
    "choices": (Cost.INTERMEDIATE, lambda: _plan("dragonfly,a=8,h=4,p=4", "ugal")),
    "more-choices": (Cost.INTERMEDIATE, lambda: _plan("fullmesh,100", "ugal")),
    "simulated-torus": (None, lambda: _simulation("torus,8,8,8", "dor", "uniform", 0.2)),
    "simulated-phases": (None, lambda: _simulation("lsft,7", "lsft", "schedule")),
    "simulated-tree": (None, lambda: _simulation("fattree3,12", "fattree", "permutation", 0.9)),
}
"""By name: the cost that is measured (None: those of a simulation), and what prepares the work."""


def main(name: str) -> None:
    """Print the estimate for a case, and the bytes that were taken."""
    cost, prepare = CASES[name]
    work, estimates = prepare(), [0]
    bytes_for, estimated_bytes = Cost.bytes_for, memory.estimated_bytes

    def recorded(each: Cost, count: int) -> int:
        needed = bytes_for(each, count)
        if each is cost:
            estimates.append(needed)
        return needed

    def simulated(*args: Any, **options: Any) -> int:
        estimates.append(estimated_bytes(*args, **options))
        return estimates[-1]

    with (
        patch.object(Cost, "bytes_for", recorded),
        patch.object(memory, "estimated_bytes", simulated),
    ):
        taken = peak_bytes(work)
    sys.stdout.write(f"{max(estimates)} {taken}\n")


if __name__ == "__main__":
    main(sys.argv[1])
