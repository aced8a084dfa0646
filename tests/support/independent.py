"""A second, slow tracer of rule files, which shares no code with the project's own.

It reads the ``.flows`` and ``.groups`` text that ``knotless flows`` writes, and follows frames
through it by the OpenFlow 1.3 specification. Only what those files hold is understood.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.cycles import has_cycle

Packet = dict[str, Any]


def _num(text: str) -> int:
    return int(text.replace(":", ""), 16) if ":" in text else int(text, 0)


_CHOICE = re.compile(
    r"move:NXM_OF_ETH_SRC\[\]->NXM_NX_XXREG0\[0..47\],"
    r"move:NXM_OF_ETH_DST\[0..23\]->NXM_OF_ETH_SRC\[24..47\],"
    r"bundle_load\(eth_src,\d+,hrw,ofport,OXM_OF_METADATA\[0..15\],members:([\d,]+)\),"
    r"move:NXM_NX_XXREG0\[0..47\]->NXM_OF_ETH_SRC\[\]"
)
"""The whole of these actions is followed as one, which chooses a port of any of the members."""


def _actions(text: str) -> list[str]:
    text = _CHOICE.sub(lambda found: "choose:" + found[1].replace(",", "/"), text)
    return [] if text == "drop" else text.split(",")


def _flow(line: str) -> dict[str, Any]:
    match, actions = line.split(" actions=")
    fields = dict(part.split("=") for part in match.split(","))
    flow = {
        "table": int(fields.pop("table")),
        "priority": int(fields.pop("priority")),
        "actions": _actions(actions),
        "hits": 0,
    }
    assert fields.pop("cookie") == "0x6b6e6f74"
    flow["match"] = [
        (name, *(_num(part) for part in value.split("/"))) for name, value in fields.items()
    ]
    return flow


class RuleTracer:
    """Follows frames through the files of a directory, or through their texts by name.

    ``choose`` returns which of a number of ports is chosen.
    """

    def __init__(
        self, files: Path | Mapping[str, str], choose: Callable[[int], int] | None = None
    ) -> None:
        self.choose = choose

        def text(name: str) -> str:
            return (files / name).read_text() if isinstance(files, Path) else files[name]

        self.fabric = json.loads(text("fabric.json"))
        self.flows: dict[str, list[dict[str, Any]]] = {}
        self.groups: dict[str, dict[int, list[list[str]]]] = {}
        for switch in self.fabric["switches"]:
            name = switch["name"]
            self.flows[name] = [_flow(line) for line in text(f"{name}.flows").splitlines()]
            self.groups[name] = {}
            for line in text(f"{name}.groups").splitlines():
                parts = re.fullmatch(r"group_id=(\d+),type=all(.*)", line)
                assert parts is not None, line
                number, rest = parts.groups()
                buckets = rest.split(",bucket=actions=")[1:]
                self.groups[name][int(number)] = [bucket.split(",") for bucket in buckets]
        self.peer: dict[tuple[str, int], tuple[str, int | None]] = {}
        for link in self.fabric["links"]:
            a, b = (link["a"], link["a_port"]), (link["b"], link["b_port"])
            self.peer[a], self.peer[b] = b, a
        for host in self.fabric["hosts"]:
            self.peer[host["switch"], host["port"]] = (host["name"], None)
        self.load: Counter[tuple[str, int]] = Counter()
        self.waits: set[tuple[tuple[str, int, int], tuple[str, int, int]]] = set()

    def switch(self, name: str, in_port: int, packet: Packet) -> list[tuple[int, Packet]]:
        """One pass through a switch: the copies that leave."""
        packet = {**packet, "in_port": in_port, "metadata": 0}
        out: list[tuple[int, Packet]] = []
        table: int | None = 0
        while table is not None:
            hit = None
            for flow in self.flows[name]:
                better = hit is None or flow["priority"] > hit["priority"]
                if flow["table"] == table and better and self._fits(flow, packet):
                    hit = flow
            if hit is None:
                break
            hit["hits"] += 1
            table = self._run(name, hit["actions"], packet, out)
        return out

    def choices(self, name: str, in_port: int, packet: Packet) -> list[list[tuple[int, Packet]]]:
        """The copies that leave a switch, for each port that its rules may choose: once at most."""
        found: list[list[tuple[int, Packet]]] = []
        given, count = self.choose, 1

        def chosen(of: int) -> int:
            nonlocal count
            count = of
            return len(found)

        self.choose = chosen
        while len(found) < count:
            found.append(self.switch(name, in_port, packet))
        self.choose = given
        return found

    def _fits(self, flow: dict[str, Any], packet: Packet) -> bool:
        for name, value, *mask in flow["match"]:
            if name == "vlan_vid":
                have = 0 if packet["vlan"] is None else 0x1000 | packet["vlan"]
            elif name == "vlan_pcp":
                if packet["vlan"] is None:
                    return False
                have = packet["pcp"]
            else:
                have = packet[name]
            if have & (mask[0] if mask else -1) != value & (mask[0] if mask else -1):
                return False
        return True

    def _run(
        self, name: str, actions: list[str], packet: Packet, out: list[tuple[int, Packet]]
    ) -> int | None:
        following = None
        for action in actions:
            verb, _, argument = action.partition(":")
            if verb == "output":
                if int(argument) != packet["in_port"]:
                    out.append((int(argument), dict(packet)))
            elif verb == "IN_PORT":
                out.append((packet["in_port"], dict(packet)))
            elif verb == "push_vlan":
                assert packet["vlan"] is None
                packet["vlan"], packet["pcp"] = 0, 0
            elif verb == "pop_vlan":
                assert packet["vlan"] is not None
                packet["vlan"], packet["pcp"] = None, 0
            elif verb == "set_field":
                value, field = argument.split("->")
                assert packet["vlan"] is not None
                key, bits = {"vlan_vid": ("vlan", 0xFFF), "vlan_pcp": ("pcp", 7)}[field]
                packet[key] = int(value) & bits
            elif verb == "group":
                for bucket in self.groups[name][int(argument)]:
                    assert self._run(name, bucket, dict(packet), out) is None
            elif verb == "choose":
                assert self.choose is not None
                members = argument.split("/")
                packet["metadata"] = int(members[self.choose(len(members))])
            elif verb == "write_metadata":
                packet["metadata"] = int(argument, 0)
            elif verb == "goto_table":
                following = int(argument)
            else:
                raise AssertionError(action)
        return following

    def send(
        self, source: dict[str, Any], eth_dst: str, eth_src: str | None = None
    ) -> list[tuple[str, Packet, int]]:
        """Send an untagged frame; return (host, frame, switches passed) of each delivery."""
        packet: Packet = {
            "eth_dst": _num(eth_dst),
            "eth_src": _num(eth_src or source["mac"]),
            "vlan": None,
            "pcp": 0,
        }
        delivered = []
        going: list[tuple[str, int, Packet, int, tuple[str, int, int] | None]] = [
            (source["switch"], source["port"], packet, 1, None)
        ]
        while going:
            switch, port, packet, passed, held = going.pop()
            assert passed <= 10 * len(self.flows), "the frame goes round for ever"
            for out_port, copy in self.switch(switch, port, packet):
                there, there_port = self.peer[switch, out_port]
                if there_port is None:
                    delivered.append((there, copy, passed))
                    continue
                assert copy["vlan"] is not None
                self.load[switch, out_port] += 1
                waits_for = (switch, out_port, copy["pcp"])
                if held is not None:
                    self.waits.add((held, waits_for))
                going.append((there, there_port, copy, passed + 1, waits_for))
        return delivered

    def all_pairs(self) -> tuple[float, int, int]:
        """Send between all pairs; return (mean switches, most switches, largest channel load)."""
        lengths = []
        for source in self.fabric["hosts"]:
            for target in self.fabric["hosts"]:
                if source is target:
                    lengths.append(1)
                    continue
                delivered = self.send(source, target["mac"])
                assert [name for name, _, _ in delivered] == [target["name"]]
                assert delivered[0][1]["vlan"] is None
                lengths.append(delivered[0][2])
        return sum(lengths) / len(lengths), max(lengths), max(self.load.values(), default=0)

    def broadcasts(self) -> None:
        """Broadcast from every host; assert that every other host gets one untagged copy."""
        for source in self.fabric["hosts"]:
            delivered = self.send(source, "ff:ff:ff:ff:ff:ff")
            names = sorted(name for name, _, _ in delivered)
            others = sorted(h["name"] for h in self.fabric["hosts"] if h is not source)
            assert names == others, source["name"]
            assert all(packet["vlan"] is None for _, packet, _ in delivered)

    def has_cycle(self) -> bool:
        """Return whether the dependencies have a cycle."""
        return has_cycle(self.waits)
