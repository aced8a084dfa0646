"""A small fabric for each form that readers read: damaged by fuzzing, drawn by tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from knotless.forwarding.openflow.compiler import compile_rules
from knotless.routing.plan import make_plan
from knotless.topologies import load
from tests.support.adaptive_subnets import far_text
from tests.support.classical_deadlocks import dual_tor, routing_loop
from tests.support.infiniband_dumps import of_plan
from tests.support.linux_dumps import fdb_rows, fdb_text, write_linux
from tests.support.ovs_dumps import write_ovs
from tests.support.router_dumps import RouterNet
from tests.support.techsupports import write_techsupports


def fabrics(folder: Path) -> list[Path]:
    """Write all of them; return their folders."""
    return [write(folder / name) for name, write in WRITERS.items()]


def _infiniband(folder: Path) -> Path:
    subnet = of_plan(make_plan(load("ring,5"), "minimal"))
    assert subnet is not None
    return subnet.write(folder)


def _adaptive(folder: Path) -> Path:
    """Write the same, and that switches choose among no further ports."""
    subnet = of_plan(make_plan(load("ring,5"), "minimal"))
    assert subnet is not None
    (subnet.write(folder) / "ibdiagnet2.far").write_text(far_text(subnet, {}))
    return folder


def _routers(form: str) -> Callable[[Path], Path]:
    return lambda folder: routing_loop().write(folder, form)


def _vrfs(folder: Path) -> Path:
    """Write a fabric whose routes, interfaces and cables are those of VRF Vrf1."""
    net = in_vrf(routing_loop(), "Vrf1")
    for router in net.routers:
        directory = folder / router
        directory.mkdir(parents=True)
        (directory / "config.json").write_text(json.dumps(net.config(router)))
        routes = net.appl_routes(router)
        named = {key.replace("TABLE:", "TABLE:Vrf1:"): row for key, row in routes.items()}
        (directory / "appl.json").write_text(json.dumps({**named, **net.lldp_appl(router)}))
    return folder


def in_vrf(net: RouterNet, vrf: str) -> RouterNet:
    """Return ``net`` with all interfaces in a VRF."""
    for router in net.routers:
        vlans = {port: {"vrf_name": vrf} for name, port in net.hosts if name == router}
        ports = {port: {"vrf_name": vrf} for port in net.ports(router)}
        net.more[router] = {"INTERFACE": ports, "VLAN_INTERFACE": vlans, "VRF": {vrf: {}}}
    return net


def neutral_ring(folder: Path) -> Path:
    """Write a ring of four switches, which send everything to the right, in a format of our own."""
    names = [f"s{n}" for n in range(4)]
    tables = {
        "knotless-tables": 1,
        "switches": names,
        "cables": [[f"s{n}:right", f"s{(n + 1) % 4}:left"] for n in range(4)],
        "hosts": {f"h{n}": f"s{n}:p1" for n in range(4)},
        "next_hops": {
            name: {f"h{m}": ["right"] for m in range(4) if f"s{m}" != name} for name in names
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tables.json").write_text(json.dumps(tables))
    return folder


def _paused(folder: Path) -> Path:
    """Write the same, and what switches print about pauses."""
    net = routing_loop()
    net.write(folder)
    for router in net.routers:
        queues = [f"{port}:3  stormed  1/0  0/0  0/0  0/0  0/0" for port in net.ports(router)]
        stats = "QUEUE STATUS STORM DETECTED/RESTORED TX OK/DROP\n------ ------\n"
        (folder / router / "pfcwd").write_text(stats + "\n".join(queues) + "\n")
        heads = " ".join(f"PFC{n}" for n in range(8))
        rows = "\n".join(f"{port} 0 0 0 1,204 0 0 0 0" for port in net.ports(router))
        text = "\n\n".join(f"Port {way} {heads}\n------ ----\n{rows}" for way in ("Rx", "Tx"))
        (folder / router / "pfc").write_text(text + "\n")
    return folder


def bridge_ring(folder: Path, *, text: bool = False) -> Path:
    """Write three bridges, which send all frames for other bridges' hosts to the right."""
    macs = {f"h{n}": f"02:00:00:00:00:0{n}" for n in range(3)}
    for n in range(3):
        rows = fdb_rows(macs, 10, {f"h{m}": "swp9" if m == n else "right" for m in range(3)})
        directory = folder / f"b{n}"
        directory.mkdir(parents=True)
        (directory / "fdb").write_text(fdb_text(rows) if text else json.dumps(rows))
    ends = [((f"b{n}", "right"), (f"b{(n + 1) % 3}", "left")) for n in range(3)]
    edges = [
        {
            f"node{side}": {"hostname": end[0], "interfaceName": end[1]}
            for side, end in enumerate(cable, 1)
        }
        for cable in ends
    ]
    (folder / "cables.json").write_text(json.dumps({"edges": edges}))
    return folder


def _remarked(folder: Path) -> Path:
    """Write a routing loop whose packets with DSCP 3 have DSCP 4 after the first switch."""
    net = routing_loop()
    for qos in net.qos.values():
        qos.maps["TC_TO_DSCP_MAP"] = {"NEXT": {tc: {3: 4, 4: 4}.get(tc, 0) for tc in range(8)}}
        for port in qos.ports.values():
            port["tc_to_dscp_map"] = "NEXT"
    return net.write(folder)


def _open_vswitch(*, hosts: bool) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        plan = make_plan(load("ring,4"), "minimal")
        return write_ovs(plan.fabric, compile_rules(plan), folder, hosts=hosts)

    return write


def one_dump(folder: Path) -> Path:
    """Write the same with the dumps of all switches in one file, as Mininet's ``dpctl`` prints."""
    apart = _open_vswitch(hosts=True)(folder / "apart")
    sections = [
        f"*** {switch.name} {'-' * 72}\n{(switch / file).read_text()}"
        for file in ("ports", "groups", "flows")
        for switch in sorted(apart.glob("s*"))
    ]
    (folder / "dump.txt").write_text("".join(sections))
    (apart / "cables.json").rename(folder / "cables.json")
    shutil.rmtree(apart)
    return folder


WRITERS: dict[str, Callable[[Path], Path]] = {
    "infiniband": _infiniband,
    "infiniband-adaptive": _adaptive,
    **{form: _routers(form) for form in ("sonic", "flat", "redis", "frr", "older", "text")},
    "dual-tor": lambda folder: dual_tor(remapped=False).write(folder),
    "remarked": _remarked,
    "vrf": _vrfs,
    "techsupport": lambda folder: write_techsupports(routing_loop(), folder),
    "neutral": lambda folder: neutral_ring(folder),
    "pauses": lambda folder: _paused(folder),
    "linux": lambda folder: write_linux(routing_loop(), folder),
    "linux-pfc": lambda folder: write_linux(routing_loop(), folder, pfc=True),
    "bridges": lambda folder: bridge_ring(folder),
    "bridges-text": lambda folder: bridge_ring(folder, text=True),
    "open-vswitch": _open_vswitch(hosts=True),
    "open-vswitch-learned": _open_vswitch(hosts=False),
    "open-vswitch-one-dump": lambda folder: one_dump(folder),
}
"""The functions that write each fabric into a folder. All can deadlock."""
