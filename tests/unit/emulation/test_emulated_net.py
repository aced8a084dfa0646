"""Measurements of Mininet's object end also where nothing arrives: nodes are programs of ours."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation import emulated_net
from knotless.emulation.daemon import Deadlock
from knotless.emulation.emulated_net import EmulatedNet
from knotless.emulation.ovs_process import references
from knotless.emulation.running_fabric import RunningFabric

KNOT = Deadlock(0, ("s1:2/0", "s2:2/0"), ())
REPORT = {
    "end": {
        "sum_sent": {"bits_per_second": 10.1e6},
        "sum_received": {"bits_per_second": 9.33e6},
    }
}
SERVER = "echo Server listening on 5001; exec sleep 600"


class Node:
    """A node of Mininet, on which each program is replaced by a line of the shell."""

    def __init__(self, name: str, line: Callable[[Sequence[str]], str]) -> None:
        self.name, self._line = name, line
        self.started: list[list[str]] = []

    def IP(self) -> str:  # noqa: N802 - Mininet's name
        return f"ip-of-{self.name}"

    def popen(self, words: list[str]) -> subprocess.Popen[bytes]:
        self.started.append(words)
        pipe = subprocess.PIPE
        return subprocess.Popen(["sh", "-c", self._line(words)], stdout=pipe, stderr=pipe)

    def __str__(self) -> str:
        return self.name


class Running:
    """A running fabric that is deadlocked, or not."""

    def __init__(self, deadlock: Deadlock | None) -> None:
        self.settings, self.links = {"virtual_clock": False}, "plain"
        self.daemon = None
        self._deadlock = deadlock

    def deadlock(self) -> Deadlock | None:
        return self._deadlock


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what Mininet's log is told, and let no test wait."""
    lines: list[str] = []
    for name in ("output", "error"):
        monkeypatch.setattr(emulated_net, name, lambda *words: lines.append("".join(words)))
    monkeypatch.setattr(emulated_net, "POLL_S", 0.01)
    monkeypatch.setattr(emulated_net, "DEADLOCK_POLL_S", 0.0)
    return lines


def net_of(line: Callable[[Sequence[str]], str], deadlock: Deadlock | None = None) -> Any:
    net: Any = EmulatedNet(controller=None, build=False)
    net.hosts = [Node(name, line) for name in ("h1", "h2", "h3")]
    net.running = cast(RunningFabric, Running(deadlock))
    return net


def iperf3(client: str) -> Callable[[Sequence[str]], str]:
    return lambda words: SERVER if "-s" in words else client


def test_iperf_returns_what_arrived_and_what_was_sent(said: list[str]) -> None:
    net = net_of(iperf3(f"echo '{json.dumps(REPORT)}'"))
    assert net.iperf(seconds=1) == ["9.33 Mbits/sec", "10.1 Mbits/sec"]
    assert net.iperf(net.hosts[:2], l4Type="UDP", udpBw="5M", fmt="k") == [
        "5M",
        "9330 Kbits/sec",
        "10100 Kbits/sec",
    ]
    assert net.hosts[0].started[-1][-3:] == ["-u", "-b", "5M"]
    assert said[0] == "*** Iperf: testing TCP bandwidth between h1 and h3\n"


@pytest.mark.parametrize(
    ("client", "deadlock", "reason"),
    [
        ("exec sleep 600", KNOT, "deadlock: s1:2/0 -> s2:2/0 -> s1:2/0; 'why' explains it"),
        ('echo \'{"error": "unable to connect"}\'', None, "unable to connect"),
        ("echo nonsense", None, "iperf3 prints b'nonsense"),
        ("exit 1", None, "iperf3 prints b''"),
    ],
)
def test_iperf_ends_with_a_reason(
    said: list[str], client: str, deadlock: Deadlock | None, reason: str
) -> None:
    assert net_of(iperf3(client), deadlock).iperf() == ["", ""]
    assert reason in said[-1]
    assert said[-1].count("\n") == 1


def test_iperf_ends_after_its_time(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulated_net, "IPERF_GRACE_S", 0.0)
    assert net_of(iperf3("exec sleep 600")).iperf(seconds=0) == ["", ""]
    assert said[-1] == "*** Error: iperf: no end in time\n"


def test_iperf_says_why_a_server_does_not_start(said: list[str]) -> None:
    net = net_of(lambda _words: "echo unable to start listener >&2; exit 1")
    assert net.iperf() == ["", ""]
    assert said[-1] == "*** Error: iperf: the server does not start: unable to start listener\n"
    with pytest.raises(EmulationError, match="l4Type is TCP or UDP"):
        net.iperf(l4Type="SCTP")


def test_ping_counts_the_answers_of_all_pairs(said: list[str]) -> None:
    net = net_of(lambda words: "exit 1" if words[-1] == "ip-of-h3" else "exit 0")
    assert net.pingAll() == pytest.approx(100 * 2 / 6)
    assert "".join(said).splitlines()[1:] == [
        "h1 -> h2 X ",
        "h2 -> h1 X ",
        "h3 -> h1 h2 ",
        "*** Results: 33% dropped (4/6 received)",
    ]
    assert net.ping(net.hosts[:1]) == 0.0


def test_ping_ends_in_a_deadlock_and_names_it(said: list[str]) -> None:
    """Of six pairs one avoids the knot; the others never have an answer."""
    net = net_of(lambda words: f"exit {int(words[-1] != 'ip-of-h2')}", KNOT)
    assert net.pingAll() == pytest.approx(100 * 4 / 6)
    limits = {words[words.index("-W") + 1] for node in net.hosts for words in node.started}
    assert limits == {str(emulated_net.FROZEN_PING_S)}
    assert said[-1] == "*** deadlock: s1:2/0 -> s2:2/0 -> s1:2/0; 'why' explains it\n"


def test_a_deadlock_that_forms_meanwhile_ends_a_ping(said: list[str]) -> None:
    answers = iter([None, KNOT])
    net = net_of(lambda words: "exec sleep 600" if words[-2] == "10" else "exit 1")
    net.running.deadlock = lambda: next(answers, KNOT)
    assert net.pingAll() == 100.0
    assert "*** deadlock" in said[-1]


def test_a_link_that_does_not_exist_is_one_line(said: list[str]) -> None:
    net = net_of(lambda _words: "exit 0")
    net.running = None
    net.configLinkStatus("s1", "s2", "down")
    assert said == ["*** Error: the fabric does not run: net.start() starts it\n"]


def test_a_column_of_ovsdb_has_one_reference_or_a_set() -> None:
    assert references(["uuid", "a"]) == {"a"}
    assert references(["set", []]) == set()
    assert references(["set", [["uuid", "a"], ["uuid", "b"]]]) == {"a", "b"}
