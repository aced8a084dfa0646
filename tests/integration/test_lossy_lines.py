"""``knotless link`` on a running fabric: loss under TCP and pings, and a line that changes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest

from knotless.emulation.network import EmulatedFabric
from tests.support.fabric_fixtures import Knotless, new_fabric, new_names
from tests.support.waiting import HANG_S, until


@pytest.fixture(scope="module")
def fabric() -> Iterator[EmulatedFabric]:
    with new_fabric(new_names(), "ring,4") as running:
        yield running


def lost(fabric: EmulatedFabric) -> tuple[int, int]:
    """Return the frames that h1's line to s1 has carried, and how many it has lost."""
    channels = fabric.daemon.counters()["channels"]
    line = next(channel for channel in channels if channel["channel"] == "h1")
    assert fabric.daemon.counters()["lost_frames"] == line["drops"]["loss"]
    return line["tx_frames"], line["drops"]["loss"]


def connects(fabric: EmulatedFabric) -> bool:
    """Return whether iperf3 listens on h2."""
    out, _, _ = fabric.host("h2").pexec("ss", "-Htln", "sport = :5201")
    return bool(out.strip())


def throughput_mbps(fabric: EmulatedFabric) -> float:
    """Return what one TCP flow (Reno) of iperf3 from h1 to h2 receives, in Mbit/s of real time."""
    server = fabric.host("h2").popen(["iperf3", "-s"])
    try:
        until("the server", lambda: connects(fabric))
        # BBR, which may be the default, does not slow down when frames are lost.
        words = ("iperf3", "-c", "10.0.2.1", "-t", "6", "-J", "-C", "reno")
        out, error, status = fabric.host("h1").pexec(*words)
    finally:
        server.terminate()
        server.communicate(timeout=HANG_S)
    assert status == 0, out + error
    return float(json.loads(out)["end"]["sum_received"]["bits_per_second"]) / 1e6


def test_one_percent_of_pings_and_segments_is_lost(
    fabric: EmulatedFabric, knotless: Knotless
) -> None:
    name = fabric.names.name
    before_mbps = throughput_mbps(fabric)
    fabric.daemon.reset()
    done = knotless("link", "h1", "--from", "h1", "--loss", "1%", "--name", name, "--json")
    assert json.loads(done.stdout)["channels"][0]["loss"] == 0.01
    out, _, _ = fabric.host("h1").pexec(
        "ping", "-q", "-i", "0.002", "-c", "1500", "-W", "2", "10.0.2.1"
    )
    sent, missing = lost(fabric)
    assert sent >= 1500
    assert "1500 packets transmitted" in out
    assert abs(missing - 0.01 * sent) < 3 * math.sqrt(sent * 0.01 * 0.99)
    status = knotless("status", "--name", name)
    assert "loses 1 %" in status.stdout
    assert f"{missing} frames lost so far" in status.stdout
    knotless("link", "h1", "--delay", "20000", "--loss", "1%", "--name", name)
    lossy_mbps = throughput_mbps(fabric)
    knotless("link", "h1", "--loss", "0", "--name", name)
    far_mbps = throughput_mbps(fabric)
    assert lossy_mbps < 0.8 * far_mbps, (before_mbps, far_mbps)


def test_what_is_impossible_is_one_line(fabric: EmulatedFabric, knotless: Knotless) -> None:
    done = knotless("link", "s1-s9", "--loss", "1%", "--name", fabric.names.name)
    assert done.returncode == 2
    assert "no link 's1-s9'" in done.stderr


def test_links_that_repeat_frames_lose_none() -> None:
    with new_fabric(new_names(), "ring,4", retry=0, line_errors=1e-5) as fabric:
        fabric.cables.set_line(fabric.cables.one("h1"), {"loss": 0.05})
        out, _, _ = fabric.host("h1").pexec(
            "ping", "-q", "-i", "0.002", "-c", "500", "-W", "2", "10.0.2.1"
        )
        assert "500 packets transmitted, 500 received" in out
        counters = fabric.daemon.counters()
        assert counters["lost_frames"] == 0
        assert sum(channel["retry"]["llr_tx_replay"] for channel in counters["channels"]) > 10
