"""An exported fabric of real Linux bridges, through which every frame is sent and counted.

Runs in an empty network namespace, uses only the exported files, and prints one line of JSON. All
hosts send from this process, each through its own interface, and all frames that arrive there are
counted.

    unshare --net python3 bridges.py FOLDER
"""

from __future__ import annotations

import json
import select
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ETHERTYPE = 0x88B5  # for local experiments
BROADCAST = "ff:ff:ff:ff:ff:ff"
UNKNOWN = "0a:00:00:00:00:0a"
ETH_P_ALL, PACKET_AUXDATA, PACKET_IGNORE_OUTGOING, VLAN_VALID = 3, 8, 23, 1 << 4
DEADLINE_S = 60.0
SILENCE_S = 0.3
STORM = 10
"""So many times the copies that are due are a storm."""


def build(folder: Path, fabric: dict[str, Any]) -> None:
    """Make the bridges and links, all down; apply the scripts; then bring the hosts up."""
    Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
    lines = [f"link add {switch['name']} type bridge" for switch in fabric["switches"]]
    ports = []
    for link in fabric["links"]:
        a, b = f"{link['a']}-eth{link['a_port']}", f"{link['b']}-eth{link['b_port']}"
        lines.append(f"link add {a} type veth peer name {b}")
        ports += [(a, link["a"]), (b, link["b"])]
    for host in fabric["hosts"]:
        port = f"{host['switch']}-eth{host['port']}"
        lines.append(f"link add {port} type veth peer name {host['name']} address {host['mac']}")
        ports.append((port, host["switch"]))
    lines += [f"link set {port} master {switch}" for port, switch in ports]
    ip(lines)
    for switch in fabric["switches"]:
        subprocess.run(["sh", "-e", f"{switch['name']}.bridge"], cwd=folder, check=True)
    ip([f"link set {host['name']} up" for host in fabric["hosts"]])
    until(lambda: forwarding() == {port for port, _ in ports}, "all ports to forward")


def ip(lines: list[str]) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def forwarding() -> set[str]:
    """Return the ports that are up, with whatever is at their other ends."""
    done = subprocess.run(["bridge", "-json", "link"], capture_output=True, check=True)
    return {port["ifname"] for port in json.loads(done.stdout) if port["state"] == "forwarding"}


def until(condition: Any, what: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"waited {DEADLINE_S} s in vain for {what}")
        time.sleep(0.02)


def packets() -> int:
    """Return how many packets all interfaces of this namespace have received."""
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    return sum(int(line.split(":")[1].split()[1]) for line in lines)


def open_socket(interface: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.bind((interface, ETH_P_ALL))
    sock.setsockopt(263, PACKET_AUXDATA, 1)
    sock.setsockopt(263, PACKET_IGNORE_OUTGOING, 1)
    sock.setblocking(False)
    return sock


def frame(to: str, source: str, vlan: int, number: int) -> bytes:
    addresses = bytes.fromhex((to + source).replace(":", ""))
    tag = struct.pack("!HH", 0x8100, vlan) if vlan else b""
    return (addresses + tag + struct.pack("!HI", ETHERTYPE, number)).ljust(60, b"\0")


class Counted:
    """The frames that left each interface: (number of the frame, receiver) -> copies."""

    def __init__(self, sockets: list[socket.socket]) -> None:
        self.sockets = sockets
        self.copies: Counter[tuple[int, int]] = Counter()
        self.tagged = 0
        self.foreign = 0
        self.poll = select.poll()
        self.receiver = {one.fileno(): i for i, one in enumerate(sockets)}
        for one in sockets:
            self.poll.register(one, select.POLLIN)

    def take(self, wait_s: float = 0.0) -> int:
        """Wait for the first frame, then count all that have arrived; return the number."""
        before = self.copies.total()
        for file, _ in self.poll.poll(1000 * wait_s):
            receiver = self.receiver[file]
            while True:
                try:
                    data, more, _, _ = self.sockets[receiver].recvmsg(2048, 256)
                except BlockingIOError:
                    break
                kind, number = struct.unpack_from("!HI", data, 12)
                if kind != ETHERTYPE:
                    self.foreign += 1
                    continue
                status = struct.unpack_from("=I", more[0][2])[0] if more else 0
                self.tagged += bool(status & VLAN_VALID)
                self.copies[number, receiver] += 1
        return self.copies.total() - before


def measure(fabric: dict[str, Any], tags: dict[str, dict[str, int]] | None) -> dict[str, Any]:
    """Send every unicast, every broadcast and, from every host, one to an unknown address."""
    hosts = fabric["hosts"]
    counted = Counted([open_socket(host["name"]) for host in hosts])
    sent: list[tuple[str, set[int]]] = []
    due = 0

    def send(s: int, to: str, what: str, receivers: set[int]) -> None:
        nonlocal due
        own = (tags or {}).get(hosts[s]["name"])
        for vlan in [0] if own is None else [own.get(to, own["default"]), 0]:
            data = frame(to, hosts[s]["mac"], vlan, len(sent))
            counted.sockets[s].send(data)
            sent.append((f"{what}, {f'VLAN {vlan}' if vlan else 'untagged'}", receivers))
            due += len(receivers)

    everybody = set(range(len(hosts)))
    for s, source in enumerate(hosts):
        for d, host in enumerate(hosts):
            if d != s:
                send(s, host["mac"], f"{source['name']} to {host['name']}", {d})
                counted.take()
        for to, name in ((BROADCAST, "all"), (UNKNOWN, "an unknown address")):
            send(s, to, f"{source['name']} to {name}", everybody - {s})
            counted.take()
    end = time.monotonic() + DEADLINE_S
    while counted.take(SILENCE_S) and time.monotonic() < end:
        if counted.copies.total() > STORM * due:
            break
    wrong = [
        f"{what}: {counted.copies[n, r]} copies at {hosts[r]['name']}"
        for n, (what, receivers) in enumerate(sent)
        for r in sorted(everybody)
        if counted.copies[n, r] != (r in receivers)
    ]
    return {
        "frames": len(sent),
        "copies": counted.copies.total(),
        "due": due,
        "tagged": counted.tagged,
        "foreign": counted.foreign,
        "wrong": len(wrong),
        "examples": wrong[:10],
    }


def main() -> None:
    folder = Path(sys.argv[1])
    fabric = json.loads((folder / "fabric.json").read_text())
    tags_file = folder / "tags.json"
    tags = json.loads(tags_file.read_text()) if tags_file.exists() else None
    began = time.monotonic()
    build(folder, fabric)
    built = time.monotonic()
    before = packets()
    time.sleep(SILENCE_S)  # nothing to wait for: nothing may happen
    idle = packets() - before
    counts = measure(fabric, tags)
    times = {"build_s": round(built - began, 2), "all_s": round(time.monotonic() - began, 2)}
    sys.stdout.write(json.dumps({"idle_packets": idle, **counts, **times}) + "\n")


if __name__ == "__main__":
    main()
