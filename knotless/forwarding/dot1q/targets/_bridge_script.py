"""The reader of NAME.bridge: the state of a new Linux bridge after its script has run.

Only the commands that such a script needs are supported; others are refused. A script is also
refused if the bridge would not behave as ``core/forwarding/src/dot1q.rs`` defines: if it learns,
does not filter VLANs, or brings a port up before all else is applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from knotless.base.errors import RuleError
from knotless.base.model_limits import LAST_VLAN
from knotless.forwarding.dot1q.model import L2Port, L2Switch, Macs

BATCH = re.compile(r"(ip|bridge) -batch - <<'(\w+)'")
OPTIONS = {"vlan_filtering": "1", "stp_state": "0", "mcast_snooping": "0"}


def commands_of(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the commands of a script, those of batches too, with their line numbers."""
    program, end = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if end and line.strip() == end:
            program, end = "", ""
        elif not end and (begins := BATCH.fullmatch(" ".join(words))):
            program, end = begins[1], begins[2]
        elif words:
            yield number, [program, *words] if program else words
    if end:
        raise RuleError(f"the batch that should end with {end} does not end")


def read_script(name: str, text: str) -> L2Switch:
    """Return the tables that the script ``text`` gives the bridge ``name``.

    Raises
    ------
    RuleError
        A command is not supported, or the bridge would not behave as ours do.

    """
    bridge = _Bridge(name)
    for number, words in commands_of(text):
        try:
            bridge.apply(words)
        except RuleError as error:
            raise error.within(f"line {number}") from None
    return bridge.result()


class _Bridge:
    """A new Linux bridge with its ports, updated by the commands of a script."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.options: dict[str, str] = {}
        self.silent: set[int] = set()
        self.pvid: dict[int, int] = {}
        self.untagged: dict[int, set[int]] = {}
        self.tagged: dict[int, set[int]] = {}
        self.macs: Macs = {}
        self.is_up: set[int] = set()
        self.is_down = False

    def apply(self, words: list[str]) -> None:
        match words:
            case ["ip", "link", "set", "dev", device, "down"] if device == self.name:
                self.is_down = True
            case ["ip", "link", "set", "dev", device, "up"]:
                self.is_up.add(self._port(device) if device != self.name else 0)
            case _ if self.is_up or not self.is_down:
                raise RuleError(
                    f"the bridge must be down first, and ports must come up last: {_short(words)}"
                )
            case ["ip", "link", "set", "dev", device, "type", "bridge", *pairs] if (
                device == self.name and len(pairs) % 2 == 0
            ):
                self.options |= dict(zip(pairs[::2], pairs[1::2], strict=True))
            case ["bridge", "vlan", "del", "dev", device, "vid", "1", "self"] if (
                device == self.name
            ):
                pass
            case ["bridge", "link", "set", "dev", device, "learning", "off"]:
                self.silent.add(self._port(device))
            case ["bridge", "vlan", "del", "dev", device, "vid", vlan]:
                self._leave(self._port(device), _vlan(vlan))
            case ["bridge", "vlan", "add", "dev", device, "vid", vlan, *flags] if set(flags) <= {
                "pvid",
                "untagged",
            }:
                self._join(self._port(device), _vlan(vlan), flags)
            case ["bridge", "fdb", "replace", mac, "dev", device, *options, vlan] if options == [
                "master",
                "static",
                "vlan",
            ]:
                self._enter(mac.lower(), self._port(device), _vlan(vlan))
            case _:
                raise RuleError(f"unsupported command: {_short(words)}")

    def _port(self, device: str) -> int:
        """Return a device's port; a new port has the kernel's defaults."""
        match = re.fullmatch(re.escape(self.name) + r"-eth([1-9][0-9]{0,8})", device)
        if not match:
            raise RuleError(f"the ports of {self.name} are {self.name}-ethN, not {device[:40]!r}")
        port = int(match[1])
        if port not in self.untagged:
            self.untagged[port], self.tagged[port], self.pvid[port] = {1}, set(), 1
        return port

    def _leave(self, port: int, vlan: int) -> None:
        self.untagged[port].discard(vlan)
        self.tagged[port].discard(vlan)
        if self.pvid.get(port) == vlan:
            del self.pvid[port]

    def _join(self, port: int, vlan: int, flags: list[str]) -> None:
        self._leave(port, vlan)
        (self.untagged if "untagged" in flags else self.tagged)[port].add(vlan)
        if "pvid" in flags:
            self.pvid[port] = vlan

    def _enter(self, mac: str, port: int, vlan: int) -> None:
        if vlan not in self.untagged[port] | self.tagged[port]:
            raise RuleError(f"port {port} is not in VLAN {vlan}: Linux refuses {mac[:40]}")
        self.macs.setdefault(vlan, {})[mac] = port

    def result(self) -> L2Switch:
        for option, value in OPTIONS.items():
            if self.options.get(option) != value:
                raise RuleError(f"{option} must be set to {value}")
        if learning := sorted(set(self.untagged) - self.silent):
            raise RuleError(f"port {learning[0]} learns addresses; it must have learning off")
        if down := sorted({0, *self.untagged} - self.is_up):
            raise RuleError(f"{f'port {down[0]}' if down[0] else self.name} is never brought up")
        ports = [
            L2Port(
                port,
                self.pvid.get(port),
                tuple(sorted(self.untagged[port])),
                tuple(sorted(self.tagged[port])),
            )
            for port in sorted(self.untagged)
        ]
        return L2Switch(self.name, tuple(ports), self.macs)


def _vlan(text: str) -> int:
    if not re.fullmatch("[0-9]{1,4}", text) or not 1 <= int(text) <= LAST_VLAN:
        raise RuleError(f"a VLAN is 1 to {LAST_VLAN}, not {text[:40]!r}")
    return int(text)


def _short(words: list[str]) -> str:
    return repr(" ".join(words)[:80])
