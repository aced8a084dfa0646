"""Routers and bridges of Linux as the files that ip, bridge and lldpctl print."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.router_dumps import RouterNet


def ip_route(net: RouterNet, router: str) -> list[dict[str, Any]]:
    """Return what ``ip -j route show table all`` prints."""
    routes: list[dict[str, Any]] = []
    for prefix, hops in net.routes[router].items():
        listed: list[dict[str, Any]] = [
            {"gateway": address, "dev": port, "weight": 1, "flags": []}
            if address
            else {"dev": port, "scope": "link", "flags": []}
            for address, port in hops
        ]
        if not hops:
            routes.append({"type": "blackhole", "dst": prefix, "flags": []})
        elif len(hops) == 1:
            routes.append({"dst": prefix, "protocol": "kernel", **listed[0]})
        else:
            routes.append({"dst": prefix, "protocol": "bgp", "flags": [], "nexthops": listed})
            worse = {"gateway": "9.9.9.9", "dev": hops[0][1], "metric": 20, "flags": []}
            routes.append({"dst": prefix, **worse})
    own = {"type": "local", "dst": "127.0.0.1", "dev": "lo", "table": "local", "flags": []}
    return [*routes, own]


def ip_addr(net: RouterNet, router: str) -> list[dict[str, Any]]:
    """Return what ``ip -j addr`` prints; networks of hosts are behind bridges."""
    members = {port: lag for (r, lag), ports in net.lags.items() if r == router for port in ports}
    hosts = {port: prefix for (r, port), prefix in net.hosts.items() if r == router}
    lags = {lag for r, lag in net.lags if r == router}
    devices: list[dict[str, Any]] = [{}, _device("lo", ["LOOPBACK", "UP"])]
    for port in net.ports(router):
        more = {"master": members[port]} if port in members else {}
        devices.append(_device(port, ["UP", *(["SLAVE"] if more else [])], **more))
    devices += [_device(lag, ["MASTER", "UP"]) for lag in sorted(lags)]
    for bridge, prefix in hosts.items():
        address, _, length = prefix.partition("/")
        info = {"family": "inet", "local": address, "prefixlen": int(length), "scope": "global"}
        devices.append(_device(bridge, ["UP"], addr_info=[info]))
        devices.append(_device(f"tap-{bridge}", ["UP"], master=bridge))
    return devices


def _device(name: str, flags: list[str], **more: object) -> dict[str, Any]:
    return {"ifindex": 1, "ifname": name, "flags": flags, "link_type": "ether", **more}


def lldp_text(net: RouterNet, router: str) -> str:
    """Return what ``lldpctl`` prints."""
    lines = ["-" * 79, "LLDP neighbors:", "-" * 79]
    for (name, port), (peer, peer_port) in sorted(net.peers.items()):
        if name == router:
            lines += [
                f"Interface:    {port}, via: LLDP, RID: 1, Time: 0 day, 00:00:06",
                "  Chassis:     ",
                "    ChassisID:    mac 02:00:00:00:00:01",
                f"    SysName:      {peer}",
                "    Capability:   Router, on",
                "  Port:        ",
                f"    PortID:       ifname {peer_port}",
                f"    PortDescr:    {peer_port}",
                "-" * 79,
            ]
    return "\n".join(lines)


def dcb(net: RouterNet, router: str) -> str:
    """Return what dcb prints of each port whose classes are the priorities of the fabric."""
    qos, lines = net.qos[router], []
    for port in net.ports(router):
        enabled = qos.enabled(port)
        states = " ".join(f"{p}:{'on' if p in enabled else 'off'}" for p in range(8))
        same = " ".join(f"{p}:{p}" for p in range(8))
        of_dscp = qos.maps["DSCP_TO_TC_MAP"]["AZURE"]
        dscps = " ".join(f"{dscp}:{tc}" for dscp, tc in of_dscp.items() if tc != 1)
        lines += [
            f"dcb pfc show dev {port}",
            "pfc-cap 8 macsec-bypass off delay 0",
            f"prio-pfc {states}",
            f"dcb -N app show dev {port}",
            "default-prio 1",
            f"dscp-prio {dscps}",
            f"dcb ets show dev {port}",
            "willing off ets-cap 8 cbs off",
            "tc-bw 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0",
            f"prio-tc {same}",
            "reco-prio-tc 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0",
            f"dcb buffer show dev {port}",
            f"prio-buffer {same}",
            "buffer-size 0:0b 1:0b",
            "total-size 100Kb",
        ]
    return "\n".join(lines) + "\n"


def write_linux(net: RouterNet, folder: Path, *, pfc: bool = False) -> Path:
    """Write the files of each router; ``pfc``: also what dcb prints."""
    for router in net.routers:
        directory = folder / router
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "route").write_text(json.dumps(ip_route(net, router)))
        (directory / "addr").write_text(json.dumps(ip_addr(net, router)))
        (directory / "lldp").write_text(lldp_text(net, router))
        if pfc:
            (directory / "dcb").write_text(dcb(net, router))
    return folder


def fdb_rows(macs: dict[str, str], vlan: int, port_of: dict[str, str]) -> list[dict[str, Any]]:
    """Return what ``bridge -j fdb`` prints: the port of each host, and entries that do not count.

    ``macs`` are by host, ``port_of`` the ports by host.
    """
    learned = [
        {"mac": macs[host], "ifname": port, "vlan": vlan, "flags": [], "master": "br0", "state": ""}
        for host, port in port_of.items()
    ]
    own = {"mac": "02:ff:00:00:00:01", "ifname": "swp1", "master": "br0", "state": "permanent"}
    group = {"mac": "33:33:00:00:00:01", "ifname": "swp1", "flags": ["self"], "state": "permanent"}
    return [own, group, *learned]


def fdb_text(rows: list[dict[str, Any]]) -> str:
    """Return the same as ``bridge fdb`` prints it."""
    lines = []
    for row in rows:
        words = [row["mac"], "dev", row["ifname"]]
        words += ["vlan", str(row["vlan"])] if "vlan" in row else []
        words += ["master", row["master"]] if "master" in row else ["self"]
        lines.append(" ".join([*words, *([row["state"]] if row["state"] else [])]))
    return "\n".join(lines) + "\n"
