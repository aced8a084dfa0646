"""The Mininet prompt, with a few words more for what Mininet does not know."""

from __future__ import annotations

import readline  # noqa: F401 - importing it is what makes lines editable
from typing import Any, TextIO

from common.errors import KnotlessError
from emulation.mn import CLI, setLogLevel
from emulation.network import EmulatedFabric


class Prompt(CLI):  # type: ignore[misc]  # Mininet is not typed
    """Mininet's prompt on a running fabric; ``help`` lists its commands and ours."""

    readlineInited = True  # noqa: N815 - Mininet's name; or it would keep a file in our user's home

    def __init__(self, fabric: EmulatedFabric, **params: Any) -> None:
        """Run the prompt until ``exit`` or the end of input."""
        self._fabric = fabric
        setLogLevel("info")
        try:
            super().__init__(fabric.net, **params)
        finally:
            setLogLevel("warning")

    def do_deadlock(self, _line: str) -> None:
        """Say whether the fabric is deadlocked, and which channels wait for each other."""

        def tell() -> str:
            found = self._fabric.daemon.deadlock()
            if found is None:
                return "no deadlock"
            return " -> ".join([*found.cycle, found.cycle[0]])

        self._answer(tell)

    def do_counters(self, line: str) -> None:
        """Show the traffic of every channel, or of those whose names begin so: counters s1."""

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

    def do_lateness(self, _line: str) -> None:
        """Show how late the link emulator sends, in microseconds, and its limit."""
        self._answer(lambda: str(self._fabric.daemon.status()["lateness_us"]))

    def do_link(self, line: str) -> None:
        """Cut a link or mend it: link s1 s2 down, link h1 s1 up."""
        words = line.split()

        def tell() -> str:
            if len(words) != 3 or words[2] not in ("up", "down"):
                return "usage: link END1 END2 up|down"
            ends = {words[0], words[1]}
            found = [
                link.cable
                for link in self._fabric.net.links
                if {link.cable.a.owner, link.cable.b.owner} == ends
            ]
            for cable in found:
                self._fabric.daemon.set_link(cable.name, up=words[2] == "up")
            return "" if found else f"no link between {words[0]} and {words[1]}"

        self._answer(tell)

    def do_iperf(self, line: str) -> None:
        """Measure TCP from one host to another for five seconds, by iperf3: iperf h1 h3."""
        names = line.split() or [self.mn.hosts[0].name, self.mn.hosts[-1].name]
        if len(names) != 2 or not set(names) <= {host.name for host in self.mn.hosts}:
            self.stdout.write("usage: iperf [HOST HOST]\n")
            return
        near, far = (self.mn[name] for name in names)
        with far.popen(["iperf3", "-s", "-1", "--forceflush"], text=True) as server:
            # It names its port, and draws a line, when it listens.
            for said in server.stdout:
                if "listening" in said:
                    break
            near.cmdPrint("iperf3", "-c", far.IP(), "-t", "5", "--connect-timeout", "5000")
            server.terminate()

    def _answer(self, tell: Any) -> None:
        """Print what ``tell`` returns, or the one line of its error, and stay at the prompt."""
        out: TextIO = self.stdout
        try:
            text = tell() if self._fabric.links == "emulated" else "plain links: no emulator"
        except KnotlessError as error:
            text = f"knotless: {error}"
        if text:
            out.write(text + "\n")
