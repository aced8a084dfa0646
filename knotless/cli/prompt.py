"""The Mininet prompt, with additional commands for the emulated fabric."""

from __future__ import annotations

import readline  # noqa: F401 - importing it is what makes lines editable
import time
from pathlib import Path
from typing import Any, TextIO

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FLOW_CONTROLS, FlowControl
from knotless.base.printable import printable
from knotless.cli.prompt_texts import paused_lines, why_lines
from knotless.emulation.mn import CLI, setLogLevel
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.ovs_dump import live_state
from knotless.emulation.report import pace
from knotless.verification.check import verdict_of

TOP_S = 10
"""Time for which ``top`` shows paused channels, by default."""
PAUSE_MS = 500
"""Time for which ``pause`` stops a host's link, by default."""


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
            deadlock = self._fabric.daemon.deadlock()
            if deadlock is None:
                return "no deadlock"
            return " -> ".join([*deadlock.cycle, deadlock.cycle[0]])

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

    def do_why(self, _line: str) -> None:
        """Explain the deadlock in sentences: which channel waits for which, and for what packet.

        Without a deadlock: whether the rules in the switches allow one.
        """

        def tell() -> str:
            deadlock = self._fabric.daemon.deadlock()
            state, in_use = live_state(self._fabric.name)
            verdict = verdict_of(state, in_use)
            knot = deadlock.cycle if deadlock is not None else ()
            return "\n".join(why_lines(state, verdict.flow_control, knot, verdict))

        self._answer(tell)

    def do_top(self, line: str) -> None:
        """Show every second which channels are paused, for how much of it: top [SECONDS].

        Ctrl-C ends it.
        """

        def tell() -> str:
            seconds = _number(line or str(TOP_S), "top [SECONDS]", 3600)
            before = self._fabric.daemon.counters()
            try:
                for _ in range(int(seconds)):
                    time.sleep(1)
                    after = self._fabric.daemon.counters()
                    self.stdout.write("\n".join([*paused_lines(before, after), "", ""]))
                    self.stdout.flush()
                    before = after
            except KeyboardInterrupt:
                return ""
            return ""

        self._answer(tell)

    def do_pause(self, line: str) -> None:
        """Let a host pause its own link, as a slow receiver does: pause h1 [MILLISECONDS].

        0 ends a pause. The host sends one frame of the kind that its link obeys.
        """

        def tell() -> str:
            from knotless.cli.probes.pause import pause_for  # Scapy takes a second to load

            words = line.split()
            hosts = {host.name: host for host in self._fabric.fabric.hosts}
            if len(words) not in (1, 2) or words[0] not in hosts:
                raise KnotlessError("usage: pause HOST [MILLISECONDS]")
            wanted_ms = _number([*words, str(PAUSE_MS)][1], "pause HOST [MILLISECONDS]", 1e6)
            got_ms = pause_for(self._fabric.names, hosts[words[0]], wanted_ms)
            return f"{words[0]} asks its switch to send nothing for {got_ms:.0f} ms of virtual time"

        self._answer(tell)

    def do_flowcontrol(self, line: str) -> None:
        """Show which links pause, and the verdict, or change it: flowcontrol [MODE].

        MODE is none, host (links to hosts), switch (between switches), pause (all), or pfc (all).
        A change empties all queues and sets all counters to zero. The controller keeps its plan.
        """

        def tell() -> str:
            wanted = line.strip()
            if wanted and wanted not in FLOW_CONTROLS:
                raise KnotlessError(f"usage: flowcontrol {'|'.join(FLOW_CONTROLS)}")
            if wanted:
                self._fabric.set_flow_control(FlowControl(wanted))
            verdict = verdict_of(*live_state(self._fabric.name))
            return f"flow control {verdict.flow_control}: {verdict.text}"

        self._answer(tell)

    def do_capture(self, line: str) -> None:
        """Write the frames of a link, PAUSE included, to a file: capture s1:2 FILE, capture s1:2.

        The link is named as one of its channels, or s1-s2. Without FILE the capture ends.
        """

        def tell() -> str:
            words = line.split()
            if len(words) not in (1, 2):
                raise KnotlessError("usage: capture LINK [FILE.pcap]")
            name = self._fabric.cables.of_channel(words[0]).name
            if len(words) == 1:
                return f"{self._fabric.daemon.capture_stop(name)} frames of {name} captured"
            self._fabric.daemon.capture(name, Path(words[1]).absolute())
            return f"capturing {name} to {words[1]}; 'capture {words[0]}' ends it"

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

    def do_switch(self, line: str) -> None:
        """Stop, start or restart a switch: switch s1 stop, switch s1 start, switch s1 restart.

        As in a power failure its rules go, and its links lose their carrier.
        """

        def tell() -> str:
            name, _, action = line.strip().partition(" ")
            if action not in ("stop", "start", "restart"):
                raise KnotlessError("usage: switch NAME stop|start|restart")
            getattr(self._fabric.switches, action)(name)
            return ""

        self._answer(tell, plain=True)

    def do_iperf(self, line: str) -> None:
        """Measure TCP from one host to another for five seconds, by iperf3: iperf h1 h3."""
        names = line.split() or [self.mn.hosts[0].name, self.mn.hosts[-1].name]
        if len(names) != 2 or not set(names) <= {host.name for host in self.mn.hosts}:
            self.stdout.write("usage: iperf [HOST HOST]\n")
            return
        source, target = (self.mn[name] for name in names)
        with target.popen(["iperf3", "-s", "-1", "--forceflush"], text=True) as server:
            # iperf3 prints its port and a separator when it listens.
            for output_line in server.stdout:
                if "listening" in output_line:
                    break
            source.cmdPrint("iperf3", "-c", target.IP(), "-t", "5", "--connect-timeout", "5000")
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
            text = f"knotless: {printable(str(error))}"
        if text:
            out.write(text + "\n")


def _number(text: str, usage: str, most: float) -> float:
    """Return a number from 0 to ``most``; raises KnotlessError with the usage."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise KnotlessError(f"usage: {usage}")
    return value
