"""Mininet's object of a running fabric, whose measurements end also where nothing arrives."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from knotless.base.errors import EmulationError, KnotlessError
from knotless.base.printable import printable
from knotless.emulation.mn import Mininet, error, output
from knotless.emulation.real_time import RealTimeMeasurement
from knotless.emulation.running_fabric import RunningFabric, cycle_text

POLL_S = 0.1
DEADLOCK_POLL_S = 0.5
"""How often a measurement that has no answer yet asks the emulator for a deadlock."""
FROZEN_PING_S = 2
"""Time for an answer to a ping in a deadlocked fabric: of pairs that avoid the knot."""
PINGS_AT_ONCE = 64
PING_LIMIT_S = 10
"""Time for an answer to a ping, as of ping(8)."""
IPERF_GRACE_S = 30.0
"""Time that a measurement of throughput takes at most, in addition to what was asked for."""
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


class EmulatedNet(Mininet):  # type: ignore[misc]  # Mininet is not typed
    """A Mininet whose fabric can freeze.

    ``running`` is the running fabric, None before it has started. What a user's command needs is
    refused in one line on Mininet's log, as Mininet does, so that no command ends the fabric.
    """

    running: RunningFabric | None = None
    # Mininet's own initialisation would change sysctl settings of the whole machine.
    inited = True

    def ping(self, hosts: Sequence[Any] | None = None, timeout: Any = None) -> float:
        """Ping between all these hosts, and print the answers; returns the lost share in percent.

        Once the fabric is deadlocked, all other pings are sent together and get
        :data:`FROZEN_PING_S`.
        """
        if not hosts:
            output("*** Ping: testing ping reachability\n")
        hosts = list(hosts or self.hosts)
        limit_s = int(float(timeout)) if timeout else PING_LIMIT_S
        pairs = [(a, b) for a in hosts for b in hosts if a != b]
        measured = self._measurement()
        answered: dict[tuple[Any, Any], bool] = {}
        knot = self._knot()
        for node in hosts:
            output(f"{node.name} -> ")
            for pair in (pair for pair in pairs if pair[0] == node):
                if knot is None:
                    answered[pair], knot = self._ping(*pair, limit_s)
                if knot is not None and pair not in answered:
                    answered |= _pings([p for p in pairs if p not in answered])
                output(f"{pair[1].name if answered[pair] else 'X'} ")
            output("\n")
        lost = len(pairs) - sum(answered.values())
        share = 100.0 * lost / len(pairs) if pairs else 0.0
        output(f"*** Results: {share:.0f}% dropped ({len(pairs) - lost}/{len(pairs)} received)\n")
        if knot is not None:
            output(f"*** deadlock: {knot}; 'why' explains it\n")
        _caution(measured)
        return share

    def iperf(
        self,
        hosts: Sequence[Any] | None = None,
        l4Type: str = "TCP",  # noqa: N803 - Mininet's name
        udpBw: str = "10M",  # noqa: N803 - likewise
        fmt: str | None = None,
        seconds: float = 5,
        port: int = 5001,
    ) -> list[str]:
        """Measure throughput from the first to the last host, by iperf3; print and return it.

        Mininet's own counts lines of iperf 2, which prints fewer of them since version 2.1.8, and
        so waits for ever.

        Parameters
        ----------
        hosts : sequence of hosts, optional
            Client and server. None: the first and the last host.
        l4Type : str
            ``TCP`` or ``UDP``.
        udpBw : str
            What the client sends with UDP, such as ``10M``.
        fmt : str, optional
            Unit of the results: ``k m g`` for bits, ``K M G`` for bytes. None: the one that fits.
        seconds : float
            Time for which the client sends.
        port : int
            The server's port.

        Returns
        -------
        list of str
            What the server received and the client sent, such as ``9.42 Mbits/sec``; with UDP,
            ``udpBw`` comes first. Empty texts if nothing could be measured, with the reason on
            Mininet's log.

        Raises
        ------
        EmulationError
            There are no two hosts, or the protocol is neither TCP nor UDP.

        """
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        if l4Type not in ("TCP", "UDP"):
            raise EmulationError(f"iperf: l4Type is TCP or UDP, not {l4Type!r}")
        output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
        udp = ["-u", "-b", str(udpBw)] if l4Type == "UDP" else []
        measured = self._measurement()
        try:
            received, sent = self._iperf3(client, server, port, seconds, udp)
        except KnotlessError as problem:
            error(f"*** Error: iperf: {problem}\n")
            return [*udp[2:], "", ""]
        result = [*udp[2:], _rate(received, fmt), _rate(sent, fmt)]
        output(f"*** Results: {result}\n")
        _caution(measured)
        return result

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:  # noqa: N802 - Mininet's
        """Cut all links between two nodes (``down``) or restore them (``up``)."""

        def change() -> None:
            cables = self._require_running().cables
            if status not in ("up", "down"):
                raise EmulationError(f"a link is set up or down, not {status!r}")
            for cable in cables.find(f"{src}-{dst}"):
                if status == "up":
                    cables.mend(cable)
                else:
                    cables.cut(cable)

        self._perform(change)

    def _measurement(self) -> RealTimeMeasurement | None:
        return None if self.running is None else RealTimeMeasurement(self.running)

    def _require_running(self) -> RunningFabric:
        if self.running is None:
            raise EmulationError("the fabric does not run: net.start() starts it")
        return self.running

    def _perform(self, change: Callable[[], object]) -> None:
        """Do what a user's command asks for; a mistake is one line on Mininet's log."""
        try:
            change()
        except KnotlessError as problem:
            error(f"*** Error: {printable(str(problem))}\n")

    def _knot(self) -> str | None:
        """Return the deadlock of now as text, or None."""
        if self.running is None:
            return None
        try:
            deadlock = self.running.deadlock()
        except KnotlessError:  # the emulator has ended; what is measured will show it
            return None
        return None if deadlock is None else cycle_text(deadlock)

    def _ping(self, node: Any, target: Any, limit_s: int) -> tuple[bool, str | None]:
        """Ping once; return whether an answer came, and the deadlock in which none can."""
        with node.popen(_ping_words(target, limit_s)) as program:
            knot = self._wait(program, lambda: False)
            return program.returncode == 0, knot

    def _wait(self, program: Any, too_late: Callable[[], bool]) -> str | None:
        """Wait for the end of a program; end it in a deadlock, which is returned, or too late."""
        look_at = time.monotonic() + DEADLOCK_POLL_S
        while program.poll() is None:
            try:
                program.wait(POLL_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() >= look_at:
                    look_at = time.monotonic() + DEADLOCK_POLL_S
                    knot = self._knot()
                    if knot is not None or too_late():
                        _end(program)
                        return knot
        return None

    def _iperf3(
        self, client: Any, server: Any, port: int, seconds: float, udp: list[str]
    ) -> tuple[float, float]:
        """Return the bits per second that the server received and the client sent."""
        with ExitStack() as programs:
            listening = programs.enter_context(
                server.popen(["iperf3", "-s", "-1", "-p", str(port), "--forceflush"])
            )
            programs.callback(_end, listening)
            lines = []
            for line in listening.stdout:
                lines.append(line.decode(errors="replace").strip())
                if "listening" in lines[-1]:
                    break
            else:
                why = " ".join(lines) or listening.stderr.read().decode(errors="replace")
                raise EmulationError(f"the server does not start: {' '.join(why.split())[:200]}")
            words = ["iperf3", "-c", server.IP(), "-p", str(port), "-t", f"{seconds:g}", "-J"]
            sending = programs.enter_context(
                client.popen([*words, "--connect-timeout", "5000", *udp])
            )
            programs.callback(_end, sending)
            knot = self._wait(sending, self._deadline(seconds + IPERF_GRACE_S))
            if sending.returncode < 0:
                why = f"deadlock: {knot}; 'why' explains it" if knot else "no end in time"
                raise EmulationError(why)
            return _bits_per_second(sending.stdout.read())

    def _deadline(self, limit_s: float) -> Callable[[], bool]:
        """Return whether so much of the time that programs see has passed."""
        running = self.running
        if running is None or not running.settings.get("virtual_clock"):
            end = time.monotonic() + limit_s
            return lambda: time.monotonic() > end
        daemon = running.daemon
        end_us = daemon.counters()["now_us"] + 1e6 * limit_s
        return lambda: daemon.counters()["now_us"] > end_us


def _pings(pairs: Iterable[tuple[Any, Any]]) -> dict[tuple[Any, Any], bool]:
    """Ping all pairs together; return which have an answer."""
    left, answered = list(pairs), dict[tuple[Any, Any], bool]()
    while left:
        now, left = left[:PINGS_AT_ONCE], left[PINGS_AT_ONCE:]
        with ExitStack() as stack:
            words = {pair: _ping_words(pair[1], FROZEN_PING_S) for pair in now}
            programs = {pair: stack.enter_context(pair[0].popen(words[pair])) for pair in now}
            answered |= {pair: program.wait() == 0 for pair, program in programs.items()}
    return answered


def _ping_words(target: Any, limit_s: int) -> list[str]:
    return ["ping", "-n", "-q", "-c", "1", "-W", str(max(1, limit_s)), target.IP()]


def _caution(measured: RealTimeMeasurement | None) -> None:
    """Say by how much what has been measured is wrong, if it is."""
    if measured is not None and (caution := measured.caution()):
        output(f"*** {caution}\n")


def _end(program: Any) -> None:
    """Kill a program that still runs."""
    if program.poll() is None:
        program.kill()
        program.wait()


def _bits_per_second(text: bytes) -> tuple[float, float]:
    """Return what the server received and the client sent, from iperf3's JSON.

    Raises :class:`EmulationError` with iperf3's error.
    """
    try:
        report = json.loads(text)
        if "error" in report:
            raise EmulationError(" ".join(str(report["error"]).split())[:200])
        end = report["end"]
        sent = end.get("sum_sent") or end["sum"]
        received = end.get("sum_received") or end["sum"]
        return float(received["bits_per_second"]), float(sent["bits_per_second"])
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise EmulationError(f"iperf3 prints {text[:80]!r}") from problem


def _rate(bits_per_second: float, fmt: str | None) -> str:
    """Return a rate as iperf writes it: three digits and a unit.

    Examples
    --------
    >>> _rate(9_423_000, None), _rate(9_423_000, "K")
    ('9.42 Mbits/sec', '1150 KBytes/sec')

    """
    unit = (fmt or "").strip()[:1]
    if unit.lower() not in _UNITS:
        unit = next((name for name in "tgmk" if bits_per_second >= _UNITS[name]), "k")
    value = bits_per_second / _UNITS[unit.lower()]
    if unit.isupper():
        value = bits_per_second / 8 / 1024 ** ("kmgt".index(unit.lower()) + 1)
    digits = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    return f"{digits} {unit.upper()}{'Bytes' if unit.isupper() else 'bits'}/sec"
