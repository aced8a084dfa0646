"""One change of the files of a folder of 802.1Q switches, by a random generator."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable

Texts = dict[str, str]
Change = Callable[[Texts, random.Random], None]


class Script:
    """A script: its memberships, by port and VLAN with their flags, and its static addresses."""

    def __init__(self, files: Texts, name: str) -> None:
        self.name = name
        self.switch = name.removesuffix(".bridge")
        self.members: dict[tuple[int, int], set[str]] = {}
        self.static: dict[tuple[int, str], int] = {}
        for line in files[name].splitlines():
            if member := re.fullmatch(r"vlan add dev \S+-eth(\d+) vid (\d+)(.*)", line):
                self.members[int(member[1]), int(member[2])] = {*member[3].split()}
            if static := re.fullmatch(r"fdb replace (\S+) dev \S+-eth(\d+) .* vlan (\d+)", line):
                self.static[int(static[3]), static[1]] = int(static[2])
        self.ports = [int(n) for n in re.findall(r"dev \S+-eth(\d+) learning", files[name])]

    @property
    def vlans(self) -> list[int]:
        """All its VLANs."""
        return sorted({vlan for _, vlan in self.members})

    def write(self, files: Texts) -> None:
        """Write it, without the addresses at ports that are not in their VLAN."""
        head, end, tail = files[self.name].partition("\nEND\n")
        lines = [
            line for line in head.splitlines() if not line.startswith(("vlan add", "fdb replace"))
        ]
        files[self.name] = "\n".join([*lines, *self._changed()]) + end + tail

    def _changed(self) -> list[str]:
        lines = []
        for (port, vlan), flags in self.members.items():
            words = [flag for flag in ("pvid", "untagged") if flag in flags]
            lines.append(" ".join([f"vlan add dev {self.switch}-eth{port} vid {vlan}", *words]))
        for (vlan, mac), port in self.static.items():
            if (port, vlan) in self.members:
                device = f"{self.switch}-eth{port}"
                lines.append(f"fdb replace {mac} dev {device} master static vlan {vlan}")
        return lines


def _script(change: Callable[[Script, random.Random], None]) -> Change:
    """Return a change of the script of any switch."""

    def changed(files: Texts, rng: random.Random) -> None:
        script = Script(files, rng.choice(sorted(n for n in files if n.endswith(".bridge"))))
        if script.static and script.members:
            change(script, rng)
            script.write(files)

    changed.__name__ = change.__name__
    return changed


def _other_port(script: Script, rng: random.Random) -> None:
    script.static[rng.choice([*script.static])] = rng.choice(script.ports)


def _forgotten(script: Script, rng: random.Random) -> None:
    del script.static[rng.choice([*script.static])]


def _other_vlan(script: Script, rng: random.Random) -> None:
    """Move an address to another VLAN."""
    vlan, mac = rng.choice([*script.static])
    script.static[rng.choice(script.vlans), mac] = script.static.pop((vlan, mac))


def _other_address(script: Script, rng: random.Random) -> None:
    vlan, mac = rng.choice([*script.static])
    number = int(mac.replace(":", ""), 16) ^ 1 << rng.choice([0, 8, 9, 16, 41])
    other = ":".join(f"{number:012x}"[i : i + 2] for i in range(0, 12, 2))
    script.static[vlan, other] = script.static.pop((vlan, mac))


def _added(script: Script, rng: random.Random) -> None:
    _, mac = rng.choice([*script.static])
    script.static[rng.choice(script.vlans), mac] = rng.choice(script.ports)


def _exchanged(script: Script, rng: random.Random) -> None:
    a, b = rng.choice([*script.static]), rng.choice([*script.static])
    script.static[a], script.static[b] = script.static[b], script.static[a]


def _no_member(script: Script, rng: random.Random) -> None:
    del script.members[rng.choice([*script.members])]


def _new_member(script: Script, rng: random.Random) -> None:
    key = rng.choice(script.ports), rng.choice(script.vlans)
    script.members.setdefault(key, rng.choice([set(), {"untagged"}]))


def _other_tag(script: Script, rng: random.Random) -> None:
    """Let a port leave the tag on, or take it off."""
    script.members[rng.choice([*script.members])] ^= {"untagged"}


def _other_pvid(script: Script, rng: random.Random) -> None:
    port, _ = rng.choice([*script.members])
    for (other, _), flags in script.members.items():
        if other == port:
            flags.discard("pvid")
    if rng.random() < 0.8:
        vlans = [vlan for other, vlan in script.members if other == port]
        script.members[port, rng.choice(vlans)].add("pvid")


def _reordered(script: Script, rng: random.Random) -> None:
    static = [*script.static.items()]
    rng.shuffle(static)
    script.static = dict(static)


def _other_host(files: Texts, rng: random.Random) -> None:
    """Give a host another address."""
    value = json.loads(files["fabric.json"])
    host = rng.choice(value["hosts"])
    number = int(host["mac"].replace(":", ""), 16) ^ 1 << rng.choice([0, 8, 9, 10])
    mac = ":".join(f"{number:012x}"[i : i + 2] for i in range(0, 12, 2))
    if mac not in {one["mac"] for one in value["hosts"]}:
        host["mac"] = mac
        files["fabric.json"] = json.dumps(value)


def _other_cable(files: Texts, rng: random.Random) -> None:
    """Exchange the far ends of two cables."""
    value = json.loads(files["fabric.json"])
    if len(value["links"]) > 1:
        one, other = rng.sample(value["links"], 2)
        for key in ("b", "b_port"):
            one[key], other[key] = other[key], one[key]
        files["fabric.json"] = json.dumps(value)


CHANGES: tuple[Change, ...] = (
    *map(
        _script,
        (
            *(_other_port, _forgotten, _other_vlan, _other_address, _added),
            *(_exchanged, _no_member, _new_member, _other_tag, _other_pvid, _reordered),
        ),
    ),
    *(_other_host, _other_cable),
)
"""The kinds of damage."""
