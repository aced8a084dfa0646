"""Reading the output of iperf3 and the emulator's counters."""

from __future__ import annotations

import json
import os
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from knotless.base.flow_control import FlowControl
from knotless.emulation import waiting
from knotless_experiments.studies.deadlock import measure, scenario
from knotless_experiments.studies.deadlock.matrix import Case
from knotless_experiments.workloads import iperf, open_loop

WARNING = "warning: UDP block size 1472 exceeds TCP MSS 1448, may result in fragmentation\n"


def end(**received: Any) -> str:
    return WARNING + json.dumps({"end": {"sum_received": received}})


def test_a_udp_summary_is_the_receivers() -> None:
    text = end(bits_per_second=4_773_000, lost_packets=3, packets=1900)
    assert iperf.parse_summary(text) == iperf.Summary(4.773, 3, 1900)


def test_a_tcp_summary_has_no_losses() -> None:
    assert iperf.parse_summary(end(bits_per_second=4_500_000)) == iperf.Summary(4.5, None, None)


@pytest.mark.parametrize(
    "text",
    ["", WARNING, "{", '{"error": "unable to connect"}', end(), end(bits_per_second="x"), "[1]"],
)
def test_a_test_that_did_not_end_has_no_summary(text: str) -> None:
    assert iperf.parse_summary(text) is None


def test_a_client_sends_at_full_rate() -> None:
    args = iperf.client_args("10.0.3.1", "udp", 6)
    assert args[:3] == ["iperf3", "-c", "10.0.3.1"]
    assert args[-5:] == ["-u", "-b", "0", "-l", "1472"]
    by_tcp = iperf.client_args("10.0.3.1", "tcp", 6)
    assert "-u" not in by_tcp
    assert by_tcp[by_tcp.index("-C") + 1] == "reno"  # not the machine's own, whatever it is


def test_listening_sees_this_namespaces_sockets() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert iperf.listening(os.getpid(), port)
    assert not iperf.listening(os.getpid(), port)


PACE = {
    "stretch": 1.0,
    "slow_down": 1.0,
    "host_wait_us": 2000,
    "datapath": "kernel",
    "problems": [],
}


class FakeDaemon:
    """A daemon whose ring delivers ``mbps`` per flow, and deadlocks after ``freeze_us``.

    It reports a deadlock ``patience_us`` later. Each look at it takes ``step_us``.
    """

    def __init__(
        self,
        mbps: float,
        freeze_us: int | None = None,
        step_us: int = 100_000,
        patience_us: int = 0,
    ) -> None:
        self.now_us, self.mbps, self.freeze_us = 0, mbps, freeze_us
        self.step_us, self.patience_us = step_us, patience_us
        self.resets: list[str] = []

    def reset(self, *, flow_control: str) -> None:
        self.resets.append(flow_control)

    def status(self) -> dict[str, Any]:
        self.now_us += self.step_us
        frozen = self.freeze_us is not None and self.now_us > self.freeze_us + self.patience_us
        return {
            "deadlock": {"since_us": self.freeze_us, "cycle": ["s1:2/0"]} if frozen else None,
            "frames_in_network": 0,
            **PACE,
            "valid": True,
        }

    def counters(self) -> dict[str, Any]:
        moving_us = self.now_us if self.freeze_us is None else min(self.now_us, self.freeze_us)
        frames = int(self.mbps * moving_us / 8 / 1472)
        planned = scenario.for_case(Case("cyclic", FlowControl.PAUSE, "udp"))
        names = [flow.last_channel for flow in planned.flows]
        names += [host.name for host in planned.fabric.hosts]
        channels = [
            {
                "channel": name,
                "tx_frames": frames,
                "rx_frames": frames,
                "rx_bytes": frames * 1518,
                "drops": {"queue": 1, "headroom": 0},
            }
            for name in names
        ]
        return {"now_us": self.now_us, "channels": channels, "lost_frames": 8}


class FakeLab:
    def __init__(self, daemon: FakeDaemon) -> None:
        self.daemon = daemon

    def host(self, name: str) -> iperf.Host:
        raise AssertionError(name)


class FakeClient(iperf.Iperf):
    def __init__(self, daemon: FakeDaemon, until_us: int) -> None:
        self.daemon, self.until_us = daemon, until_us

    @property
    def running(self) -> bool:
        return self.daemon.now_us < self.until_us

    def kill(self) -> None:
        self.until_us = self.daemon.now_us


@pytest.fixture
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY_S", 0.0)


def run(
    daemon: FakeDaemon,
    flow_control: FlowControl,
    until_us: int = 7_000_000,
    rate_mbps: float = 10.0,
    *,
    may_deadlock: bool = True,
) -> SimpleNamespace:
    case = Case("cyclic", flow_control, "udp", rate_mbps=rate_mbps)
    lab, planned = FakeLab(daemon), scenario.for_case(case)
    clients: list[iperf.Iperf] = [FakeClient(daemon, until_us)] * 4
    readings, missing = open_loop.launch(lab, planned, "udp", flow_control, clients)
    seen = open_loop.watch(
        lab,
        planned,
        "udp",
        clients,
        3.0 * open_loop.pace(rate_mbps),
        readings,
        may_deadlock=may_deadlock,
    )
    row = measure.judge(planned, case, seen, [iperf.Summary(4.0, 2, 100)] * 4, missing)
    return SimpleNamespace(**row)


@pytest.mark.usefixtures("_no_waiting")
def test_a_moving_run_is_measured_in_its_window() -> None:
    row = run(FakeDaemon(4.7), FlowControl.PAUSE)
    assert row.flows_mbps == pytest.approx([4.7] * 4, rel=0.005)
    assert (row.deadlock, row.cycle, row.valid) == (False, [], True)
    assert row.window_s == pytest.approx(3.0, abs=0.2)
    assert (row.lost_frames, row.drops, row.iperf3_lost) == (8, {"queue": 8}, 8)


@pytest.mark.usefixtures("_no_waiting")
def test_a_frozen_run_is_measured_after_the_freeze() -> None:
    row = run(FakeDaemon(4.7, freeze_us=1_000_000), FlowControl.PAUSE)
    assert (row.deadlock, row.cycle) == (True, ["s1:2/0"])
    assert row.flows_mbps == [0, 0, 0, 0]
    assert row.frozen_after_s == pytest.approx(1.0, abs=0.1)
    assert row.window_s == pytest.approx(open_loop.FROZEN_WINDOW_S, abs=0.2)


@pytest.mark.usefixtures("_no_waiting")
def test_senders_that_end_early_make_a_run_invalid() -> None:
    row = run(FakeDaemon(4.7), FlowControl.PAUSE, until_us=2_500_000)
    assert not row.valid
    assert "ended before" in row.problems[0]


@pytest.mark.usefixtures("_no_waiting")
def test_where_frames_can_be_lost_counting_begins_when_all_send() -> None:
    lossless, lossy = FakeDaemon(4.7), FakeDaemon(4.7)
    run(lossless, FlowControl.PAUSE)
    run(lossy, FlowControl.NONE)
    assert lossless.resets == []
    assert lossy.resets == ["none"]


@pytest.mark.usefixtures("_no_waiting")
def test_fast_links_are_measured_for_as_many_frames() -> None:
    daemon = FakeDaemon(470.0, step_us=1000)
    row = run(daemon, FlowControl.NONE, rate_mbps=1000.0, may_deadlock=False)
    assert row.flows_mbps == pytest.approx([470.0] * 4, rel=0.05)
    assert (row.deadlock, row.valid) == (False, True)
    assert row.window_s == pytest.approx(0.03, abs=0.002)
    # The senders, which would go on until 7 s, were ended.
    assert daemon.now_us < 100_000


@pytest.mark.usefixtures("_no_waiting")
def test_a_deadlock_of_fast_links_that_is_reported_after_the_window_counts() -> None:
    daemon = FakeDaemon(470.0, freeze_us=20_000, step_us=1000, patience_us=500_000)
    row = run(daemon, FlowControl.PAUSE, rate_mbps=1000.0)
    assert (row.deadlock, row.flows_mbps) == (True, [0, 0, 0, 0])
    assert row.window_s == pytest.approx(0.02, abs=0.002)
