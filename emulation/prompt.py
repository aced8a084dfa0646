"""The Mininet prompt, with additional commands for the emulated fabric."""

from __future__ import annotations

import readline  # noqa: F401 - importing it is what makes lines editable
from typing import Any, TextIO

from common.errors import KnotlessError
from emulation.mn import CLI, setLogLevel
from emulation.network import EmulatedFabric
from emulation.report import pace


class Prompt(CLI):  # type: ignore[misc]  # Mininet is not typed
    """Mininet's prompt on a running fabric; ``help`` lists its commands and ours."""

    readlineInited = True  # noqa: N815 - Mininet's name; prevents a history file in the user's home

    def __init__(self, fabric: EmulatedFabric, **params: Any) -> None:
        """Run the prompt until ``exit`` or the end of input."""
        self._fabric = fabric
        setLogLevel("info")
        try:
            super().__init__(fabric.net, **params)
        finally:
            setLogLevel("warning")

    def do_deadlock(self, _line: str) -> None:
        """Show whether the fabric is deadlocked, and which channels wait for each other."""

        def tell() -> str:
            found = self._fabric.daemon.deadlock()
            if found is None:
                return "no deadlock"
            return " -> ".join([*found.cycle, found.cycle[0]])

        self._answer(tell)

    def do_counters(self, line: str) -> None:
        """Show the counters of all channels, or of those that start with a prefix: counters s1."""

        def tell() -> str:
            counters = self._fabric.daemon.counters()
            rows = [f"{'channel':<12}{'frames':>10}{'bytes':>14}{'dropped':>9}{'paused ms':>11}"]
            for channel in counters["channels"]:
                if not channel["channel"].startswith(line.strip()):
                    continue
                paused_us = max((p["paused_us"] for p in channel["priorities"]), default=0)
                rows.append(
                    f"{channel['channel']:<12}{channel['tx_frames']:>10}{channel['tx_bytes']:>14}"
                    f"{channel['dropped_frames']:>9}{paused_us / 1000:>11.1f}"
                )
            return "\n".join([*rows, f"lost frames: {counters['lost_frames']}"])

        self._answer(tell)

    def do_stretch(self, _line: str) -> None:
        """Show how much slower than real time virtual time is, and what holds it."""
        self._answer(lambda: pace(self._fabric.daemon.status()))

    def do_link(self, line: str) -> None:
        """Cut or restore a link: link s1 s2 down, link h1 s1 up.

        Both ends lose the carrier. 'link s1 s2 down silent' drops the frames instead.
        """
        words = line.split()

        def tell() -> str:
            if tuple(words[2:]) not in (("up",), ("down",), ("down", "silent")):
                return "usage: link END1 END2 up|down|down silent"
            cables = self._fabric.cables
            for cable in cables.find(f"{words[0]}-{words[1]}"):
                if words[2] == "up":
                    cables.mend(cable)
                else:
                    cables.cut(cable, silent="silent" in words)
            return ""

        self._answer(tell, plain=True)

    def do_iperf(self, line: str) -> None:
        """Measure TCP from one host to another for five seconds, by iperf3: iperf h1 h3."""
        names = line.split() or [self.mn.hosts[0].name, self.mn.hosts[-1].name]
        if len(names) != 2 or not set(names) <= {host.name for host in self.mn.hosts}:
            self.stdout.write("usage: iperf [HOST HOST]\n")
            return
        near, far = (self.mn[name] for name in names)
        with far.popen(["iperf3", "-s", "-1", "--forceflush"], text=True) as server:
            # iperf3 prints its port and a separator when it listens.
            for said in server.stdout:
                if "listening" in said:
                    break
            near.cmdPrint("iperf3", "-c", far.IP(), "-t", "5", "--connect-timeout", "5000")
            server.terminate()

    def _answer(self, tell: Any, plain: bool = False) -> None:
        """Print the result of ``tell``, or the one line of its error, and stay at the prompt.

        ``plain`` is whether it works without the emulator.
        """
        out: TextIO = self.stdout
        possible = plain or self._fabric.links == "emulated"
        try:
            text = tell() if possible else "plain links: no emulator"
        except KnotlessError as error:
            text = f"knotless: {error}"
        if text:
            out.write(text + "\n")
