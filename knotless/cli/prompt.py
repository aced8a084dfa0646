"""The prompt of a running fabric: Mininet's, with commands of ours."""

from __future__ import annotations

import inspect
import logging
import readline  # noqa: F401 - importing it is what makes lines editable
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

from knotless.base.counting import counted
from knotless.base.errors import EmulationError, KnotlessError
from knotless.base.flow_control import FLOW_CONTROLS, FlowControl
from knotless.base.printable import printable
from knotless.base.suggestions import suggestion
from knotless.cli.prompt_nodes import node_and_words, quoting_notes, with_addresses
from knotless.cli.prompt_texts import chosen_channels, paused_lines, why_lines
from knotless.emulation.emulated_net import EmulatedNet
from knotless.emulation.mn import CLI as MininetCLI  # noqa: N811 - the prompt's base, not ours
from knotless.emulation.mn import info, setLogLevel
from knotless.emulation.ovs_dump import live_state
from knotless.emulation.report import pace
from knotless.emulation.running_fabric import RunningFabric, cycle_text
from knotless.emulation.signals import ENDING
from knotless.verification.check import verdict_of

TOP_S = 10
"""Time for which ``top`` shows paused channels, by default."""
PAUSE_MS = 500
"""Time for which ``pause`` stops a host's link, by default."""


COMMANDS = (
    *("status", "check", "change", "drain", "undrain", "cut", "mend", "traffic", "freeze"),
    *("release", "web"),
)
"""Commands of ``knotless`` that work at the prompt, on its fabric."""


class Prompt(MininetCLI):  # type: ignore[misc]  # Mininet is not typed
    """Mininet's prompt on a running fabric; ``help`` lists its commands and ours.

    No mistake and no exception of a command ends it, because with it the fabric may end.

    Parameters
    ----------
    mininet : EmulatedNet
        The Mininet object of a running fabric.
    **params
        ``stdin`` and ``script``, as in Mininet.

    """

    readlineInited = True  # noqa: N815 - Mininet's name; prevents a history file in the user's home

    def __init__(self, mininet: EmulatedNet, **params: Any) -> None:
        """Run the prompt until ``exit`` or the end of input."""
        if mininet.running is None:
            raise EmulationError("the prompt needs a running fabric: call net.start() first")
        self._fabric: RunningFabric = mininet.running
        level = logging.getLogger("mininet").level
        setLogLevel("info")
        for note in quoting_notes(
            (host.name for host in mininet.hosts),
            (switch.name for switch in mininet.switches),
            self._commands(),
        ):
            info(f"*** {note}\n")
        try:
            super().__init__(mininet, **params)
        finally:
            logging.getLogger("mininet").setLevel(level)

    def onecmd(self, line: str) -> Any:
        """Run a line. Whatever goes wrong in it is one line, and the prompt goes on."""
        if not self._fabric.is_running:
            self._complain(f"the fabric {self._fabric.names.name!r} has ended")
            return True
        try:
            if on_node := node_and_words(line, self.mn.nameToNode, self._commands()):
                self._run_on_node(*on_node)
                return None
            return super().onecmd(line)
        except KnotlessError as problem:
            self._complain(str(problem))
        except AssertionError:
            self._complain("that node is busy: end its program with Ctrl-C first")
        except Exception as problem:  # noqa: BLE001 - of a command, a host's shell or Mininet
            self._complain(f"{type(problem).__name__}: {problem}")
        return None

    def default(self, line: str) -> None:
        """Refuse a line that begins with neither a command nor a node."""
        words = line.split()
        choices = [*self._commands(), *self.mn.nameToNode]
        hint = suggestion(words[0], choices, "'help' lists the commands, 'nodes' the nodes")
        raise KnotlessError(f"there is no command or node {words[0][:80]!r}: {hint}")

    def _run_on_node(self, name: str, words: str) -> None:
        """Run a program on a node and print its output; names of hosts become addresses."""
        if not words:
            raise KnotlessError(f"{name}: which program? Such as: {name} ip address")
        hosts = {host.name: host for host in self.mn.hosts}
        node = self.mn.nameToNode[name]
        node.sendCmd(with_addresses(words, hosts, lambda host: _address(hosts[host])))
        self.waitForNode(node)

    @classmethod
    def _commands(cls) -> list[str]:
        """Return the words that the prompt takes as commands."""
        return [word[3:] for word in dir(cls) if word.startswith("do_")]

    def getLocals(self) -> dict[str, Any]:  # noqa: N802 - Mininet's name
        """Return the variables of ``py`` and ``px``: all nodes by name; ``net`` is the Mininet."""
        variables: dict[str, Any] = self.locals
        variables |= {**self.mn.nameToNode, "net": self.mn}
        return variables

    def _complain(self, text: str) -> None:
        self.stdout.write(f"knotless: {printable(' '.join(text.split()))}\n")

    def do_help(self, line: str) -> None:  # type: ignore[override, unused-ignore]
        """List the commands, or explain one.

        Usage: help [COMMAND]
        """
        name = line.strip()
        if name in COMMANDS:
            self._run_command(name, ["--help"])
        elif own := Prompt.__dict__.get(f"do_{name}"):
            self.stdout.write(inspect.cleandoc(own.__doc__) + "\n")
        elif name:
            super().do_help(name)
        else:
            own_words = {key.removeprefix("do_") for key in vars(Prompt) if key[:3] == "do_"}
            ours = sorted(own_words - {*COMMANDS})
            mininets = sorted({word[3:] for word in self.get_names() if word[:3] == "do_"})
            mininets = [word for word in mininets if word not in {*ours, *COMMANDS, "EOF"}]
            for title, words in (
                ("Of Knotless", ours),
                ("As in the shell (knotless COMMAND)", [*COMMANDS]),
                ("Of Mininet", mininets),
            ):
                self.stdout.write(f"{title}:\n  {' '.join(words)}\n")
            self.stdout.write("help COMMAND explains one. h1 ping h3 runs a program on h1.\n")

    def _run_command(self, name: str, words: Sequence[str]) -> None:
        """Run a command of ``knotless`` on this fabric; it prints its own mistakes."""
        from knotless.cli.main import main  # loads the command itself only when it is used

        own = [] if "--help" in words or "-h" in words else ["--name", self._fabric.names.name]
        if name == "check" and own and not (words and words[0][:1] != "-"):
            own.append("--live")
        # After a subcommand, such as 'traffic start', whose option it is.
        place = 1 if name == "traffic" and words and words[0][:1] != "-" else 0
        try:
            main.main([name, *words[:place], *own, *words[place:]], prog_name="knotless")
        except SystemExit as end:
            if end.code in {128 + number for number in ENDING}:
                raise  # the fabric is asked to end

    def do_deadlock(self, _line: str) -> None:
        """Say whether the fabric is deadlocked, and which channels wait for each other.

        s1:2/0 is output port 2 of s1, priority 0. 'why' explains it, 'release' ends it.

        Usage: deadlock
        """

        def tell() -> str:
            deadlock = self._fabric.daemon.deadlock()
            return "no deadlock" if deadlock is None else cycle_text(deadlock)

        self._answer(tell)

    def do_counters(self, line: str) -> None:
        """Show what each channel has sent and dropped, and how long it was paused.

        counters s1 shows all output ports of s1, counters s1:2 one of them. 'paused ms' is the time
        for which the far end has stopped it. A lossless fabric has lost no frames.

        Usage: counters [SWITCH | HOST | CHANNEL]
        """

        def tell() -> str:
            counters = self._fabric.daemon.counters()
            channels = chosen_channels(counters, line.strip())
            rows = [f"{'channel':<12}{'frames':>10}{'bytes':>14}{'dropped':>9}{'paused ms':>11}"]
            for channel in channels:
                paused_us = max((p["paused_us"] for p in channel["priorities"]), default=0)
                rows.append(
                    f"{channel['channel']:<12}{channel['tx_frames']:>10}{channel['tx_bytes']:>14}"
                    f"{channel['dropped_frames']:>9}{paused_us / 1000:>11.1f}"
                )
            return "\n".join([*rows, f"lost frames: {counters['lost_frames']}"])

        self._answer(tell)

    def do_why(self, _line: str) -> None:
        """Explain a deadlock in sentences: which channel waits for which other one, and why.

        Each sentence names a packet that would wait there. Without a deadlock it says whether the
        rules in the switches allow one, and which packets would close the circle. Try 'freeze',
        then 'why', then 'release'.

        Usage: why
        """

        def tell() -> str:
            deadlock = self._fabric.daemon.deadlock()
            state, in_use = live_state(self._fabric.names.name)
            verdict = verdict_of(state, in_use)
            knot = deadlock.cycle if deadlock is not None else ()
            return "\n".join(why_lines(state, verdict.flow_control, knot, verdict))

        self._answer(tell)

    def do_top(self, line: str) -> None:
        """Show every second which channels were paused, and how many bytes wait there.

        It ends after 10 seconds, or as many as you say, or with Ctrl-C.

        Usage: top [SECONDS]
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
        """Have a host pause its own link, as a slow receiver does.

        The host sends one frame of the kind that its link obeys, PAUSE or PFC. 0 ends a pause.
        Example: pause h1 200

        Usage: pause HOST [MILLISECONDS]
        """

        def tell() -> str:
            from knotless.cli.probes.pause import pause_for  # Scapy takes a second to load

            words = line.split()
            hosts = {host.name: host for host in self._fabric.fabric.hosts}
            if len(words) not in (1, 2) or words[0] not in hosts:
                raise KnotlessError("usage: pause HOST [MILLISECONDS]")
            wanted_ms = _number([*words, str(PAUSE_MS)][1], "pause HOST [MILLISECONDS]", 1e6)
            fabric, host = self._fabric.fabric, hosts[words[0]]
            got_ms = pause_for(self._fabric.names, fabric, host, wanted_ms)
            return f"{words[0]} asks its switch to send nothing for {got_ms:.0f} ms of virtual time"

        self._answer(tell)

    def do_flowcontrol(self, line: str) -> None:
        """Show or change which links pause, and say whether the rules can deadlock then.

        MODE is none, host (links to hosts), switch (between switches), pause, pfc or credits (all).
        A change empties all queues and sets all counters to zero. The controller keeps its plan.

        Usage: flowcontrol [MODE]
        """

        def tell() -> str:
            wanted = line.strip()
            if wanted and wanted not in FLOW_CONTROLS:
                raise KnotlessError(f"usage: flowcontrol {'|'.join(FLOW_CONTROLS)}")
            if wanted:
                self._fabric.set_flow_control(FlowControl(wanted))
            verdict = verdict_of(*live_state(self._fabric.names.name))
            return f"flow control {verdict.flow_control}: {verdict.text}"

        self._answer(tell)

    def do_capture(self, line: str) -> None:
        """Write the frames of a link, PAUSE included, to a file that Wireshark opens.

        Both directions are written. The same without FILE ends it. LINK may also be one of its
        channels, such as s1:2. Example: capture s1-s2 ring.pcap

        Usage: capture LINK [FILE.pcap]
        """

        def tell() -> str:
            words = line.split()
            if len(words) not in (1, 2):
                raise KnotlessError("usage: capture LINK [FILE.pcap]")
            name = self._fabric.cables.of_channel(words[0]).name
            if len(words) == 1:
                frames = counted(self._fabric.daemon.capture_stop(name), "frames")
                return f"{frames} of {name} captured"
            self._fabric.daemon.capture(name, Path(words[1]).absolute())
            return f"capturing {name} to {words[1]}; 'capture {words[0]}' ends it"

        self._answer(tell)

    def do_stretch(self, _line: str) -> None:
        """Say how many seconds a second of the emulated fabric takes, and what it waits for.

        1 is real time; on a busy machine the fabric is slower, but as exact.

        Usage: stretch
        """
        self._answer(lambda: pace(self._fabric.daemon.status()))

    def do_link(self, line: str) -> None:
        """Cut or restore a link: both its ends lose or get the carrier. Or change or show it.

        It is as if the cable had been pulled. With 'silent' both ends keep the carrier, and all
        frames are dropped. 'cut' and 'mend' do the same to links named s1-s2. With options it is
        the command of the shell: 'link --help' explains them. Examples: link s1 s2 down, link s1-s2
        --loss 1%

        Usage: link END1 END2 up|down|down silent | link LINK [OPTION...]
        """
        words = line.split()
        if len(words) == 1 or (len(words) > 1 and words[1].startswith("-")):
            _command("link")(self, line)
            return

        def tell() -> str:
            if tuple(words[2:]) not in (("up",), ("down",), ("down", "silent")):
                raise KnotlessError("usage: link END1 END2 up|down|down silent, or link LINK")
            cables = self._fabric.cables
            for cable in cables.find(f"{words[0]}-{words[1]}"):
                if words[2] == "up":
                    cables.mend(cable)
                else:
                    cables.cut(cable, silent="silent" in words)
            return ""

        self._answer(tell, plain=True)

    def do_switch(self, line: str) -> None:
        """Stop or start a switch, as a power failure does.

        Its rules and the frames in its buffers go, and its links lose their carrier. When it
        starts, the controller installs its rules. Example: switch s1 restart

        Usage: switch NAME stop|start|restart
        """

        def tell() -> str:
            name, _, action = line.strip().partition(" ")
            if action not in ("stop", "start", "restart"):
                raise KnotlessError("usage: switch NAME stop|start|restart")
            getattr(self._fabric.switches, action)(name)
            return ""

        self._answer(tell, plain=True)

    def _answer(self, tell: Callable[[], str], plain: bool = False) -> None:
        """Print the result of ``tell``.

        ``plain`` is whether it works without the emulator.
        """
        out: TextIO = self.stdout
        possible = plain or self._fabric.links == "emulated"
        if text := tell() if possible else "plain links: no emulator":
            out.write(text + "\n")


def _address(host: Any) -> str:
    """Return the address of a host as it is now, which a user may have changed."""
    return str(host.defaultIntf().updateIP() or host.name)


def _number(text: str, usage: str, most: float) -> float:
    """Return a number from 0 to ``most``; raises KnotlessError with the usage."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise KnotlessError(f"usage: {usage}")
    return value


def _command(name: str) -> Callable[[Prompt, str], None]:
    """Return the method of the prompt that runs a command of ``knotless``."""

    def do(self: Prompt, line: str) -> None:
        try:
            words = shlex.split(line)
        except ValueError as problem:
            raise KnotlessError(f"{name}: {problem}: a quotation mark is missing") from None
        self._run_command(name, words)

    do.__doc__ = f"Run 'knotless {name}' on this fabric."
    return do


for _name in COMMANDS:
    setattr(Prompt, f"do_{_name}", _command(_name))

CLI = Prompt
