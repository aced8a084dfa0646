"""Links that repeat frames: the closed form, cores, and the cases of SONiC's test standard."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knotless._core.simulator import headroom_bytes
from knotless.base.errors import SimulationError
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Result, Scenario, simulate
from knotless.simulation.result import by_channel
from knotless.topologies import load
from knotless.topologies.fabric import Fabric
from tests.support import REPOSITORY

PAGE = (REPOSITORY / "docs" / "retry.md").read_text()
FRAME_BYTES, LINE_BYTES = 1522, 1542
"""A tagged frame of 1,500 bytes, and what it takes of a line."""
PAIR = load("flat,2,rate=100000,delay=0.127")


def run(fabric: Fabric, pattern: str = "shift:1", **more: Any) -> Result:
    return simulate(Scenario(make_plan(fabric, "updown"), pattern, Load(), **{"retry": 0, **more}))


def sent(folder: Path, fabric: Fabric, packets: int, **more: Any) -> Result:
    """Return the result of so many packets from h1 to h2."""
    trace = folder / "trace.csv"
    size = more.get("packet_bytes", 1500)
    trace.write_text(f"time_us,source,destination,bytes\n0,h1,h2,{packets * size}\n")
    return run(fabric, "trace", trace=str(trace), **more)


def counted(result: Result, channel: str = "h1") -> dict[str, int]:
    """Return what a channel has counted, without what is 0."""
    (row,) = [row["retry"] for row in by_channel(result) if row["channel"] == channel]
    return {name.removeprefix("llr_"): count for name, count in row.items() if count}


def closed_form(errors: float) -> tuple[float, float]:
    """Return the share of the line that new frames get, and the mean bytes in the replay buffer."""
    share = -math.expm1(8 * FRAME_BYTES * math.log1p(-errors))
    round_trip = 2 * 0.127 / (8 * LINE_BYTES / 100_000)
    wasted = math.ceil(round_trip)
    cost = 1 + share * wasted
    stuck = share * (1 + wasted) / cost
    kept = (1 - stuck) * (1 + round_trip) + stuck * (1 + wasted)
    return (1 - share) / cost, FRAME_BYTES * kept


ROWS = re.findall(r"^\| `([\d.e-]+)` \| `([\d.]+) %` \| `([\d,]+) bytes` \|$", PAGE, re.MULTILINE)


def test_the_page_has_three_rates() -> None:
    assert len(ROWS) == 3


@pytest.mark.parametrize(("errors", "share", "kept"), ROWS)
def test_throughput_and_replay_buffers_are_those_of_the_closed_form(
    errors: str, share: str, kept: str
) -> None:
    expected_share, expected_kept = closed_form(float(errors))
    assert float(share) == round(100 * expected_share, 2)
    assert int(kept.replace(",", "")) == round(expected_kept)
    # Two flows share the link between two switches, in both directions.
    fabric = load("mesh,2,1,hosts=2,rate=100000,delay=0.127")
    result = run(fabric, "shift:2", line_errors=float(errors), duration_us=8000.0)
    line_mbps = 2 * 100_000 * 1500 / LINE_BYTES
    assert result.throughput_mbps / line_mbps == pytest.approx(expected_share, rel=0.02)
    values = result.summary()
    assert values["retry"]["replay_mean_bytes"] == pytest.approx(expected_kept, rel=0.02)
    assert (values["lost_frames"], values["deadlock"]) == (0, False)


@pytest.mark.parametrize("flow_control", ["pause", "pfc", "none"])
def test_several_cores_count_what_one_counts(flow_control: str) -> None:
    fabric = load("fattree2,4,rate=10000,delay=1")
    more = {"line_errors": 1e-6, "errors_in_a_row": 2, "duration_us": 300.0}
    scenario = Scenario(
        make_plan(fabric, "updown"), "shift:5", Load(), retry=2, flow_control=flow_control, **more
    )
    one, two = (simulate(scenario, cores=cores) for cores in (1, 2))
    assert (two.cores, one.result_sha256) == (2, two.result_sha256)
    assert by_channel(one) == by_channel(two)
    assert one.summary()["retry"]["llr_tx_replay"] > 10
    assert one.result_sha256 != simulate(scenario.changed(seed=2)).result_sha256


def test_credits_are_simulated_on_one_core() -> None:
    fabric = load("fattree2,4,rate=10000,delay=1")
    scenario = Scenario(
        make_plan(fabric, "updown"), "shift:5", Load(), retry=0, flow_control="credits"
    )
    because = simulate(scenario.lasting(10.0), cores=2).one_core_because
    assert because == "credits on links that repeat frames, which return them when they give up"


def test_without_retry_frames_with_errors_are_lost() -> None:
    result = run(PAIR, retry=None, line_errors=1e-6, duration_us=5000.0)
    report = result.report
    on_lines = int(report.channel_tx_frames.sum())
    share = -math.expm1(8 * 1518 * math.log1p(-1e-6))
    assert abs(result.lost_frames - share * on_lines) < 4 * math.sqrt(share * on_lines)
    assert result.summary()["drops"]["loss"] == result.lost_frames
    assert "retry" not in result.summary()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"cut_through": 64}, "do not go with cut-through"),
        ({"retry": 256}, "256 replays are not in 0..255"),
        ({"line_errors": 0.5}, "0.5 for each bit are not in 0..0.01"),
        ({"errors_in_a_row": 0}, "frames in a row may have errors, not 0"),
    ],
)
def test_impossible_settings_are_refused(more: dict[str, Any], reason: str) -> None:
    with pytest.raises(SimulationError, match=reason):
        run(PAIR, duration_us=10.0, **more)


def test_llr_01_frames_without_errors_are_acknowledged(tmp_path: Path) -> None:
    counts = counted(sent(tmp_path, PAIR, 100))
    kept = {name: counts.pop(name) for name in ("replay_peak_bytes", "replay_mean_bytes")}
    names = ("tx_ok", "rx_ok", "rx_expected_seq_good", "tx_ack_ctl_os", "rx_ack_ctl_os")
    assert counts == dict.fromkeys(names, 100)
    assert 1518 < kept["replay_mean_bytes"] < kept["replay_peak_bytes"]


@pytest.mark.parametrize("fault", ["loss", "errors"])
def test_llr_02_and_04_one_frame_is_asked_for_once_and_repeated(fault: str, tmp_path: Path) -> None:
    first, other = PAIR.hosts
    fabric = replace(PAIR, hosts=(replace(first, loss=0.005), other)) if fault == "loss" else PAIR
    errors = 0.0 if fault == "loss" else 3e-7
    for seed in range(1, 40):
        result = sent(tmp_path, fabric, 100, seed=seed, line_errors=errors)
        counts = counted(result)
        spoilt = counts["tx_ok"] - counts["rx_ok"]
        if spoilt == 1 and counts.get("rx_missing_seq"):
            break
    else:
        pytest.fail("no seed spoils one frame")
    once = ("tx_nack_ctl_os", "rx_nack_ctl_os", "tx_replay", "rx_replay")
    assert {name: counts[name] for name in once} == dict.fromkeys(once, 1)
    assert counts.get("rx_expected_seq_bad", 0) == (fault == "errors")
    assert counts["rx_expected_seq_good"] == result.report.flow_packets.sum() == 100
    assert counts["tx_ok"] == 101 + counts["rx_missing_seq"]


def test_llr_03_and_06_a_line_that_carries_nothing_is_given_up(tmp_path: Path) -> None:
    first, other = PAIR.hosts
    result = sent(tmp_path, replace(PAIR, hosts=(replace(first, loss=1.0), other)), 100, retry=3)
    counts = counted(result)
    assert counts["tx_replay"] == 3 * counts["given_up"]
    assert counts["tx_discard"] == result.lost_frames == 100
    # No more is repeated than the replay buffer holds.
    buffer = headroom_bytes(100_000_000_000, 127_000, FRAME_BYTES)
    assert buffer - 2 * FRAME_BYTES < counts["replay_peak_bytes"] <= buffer
    values = result.summary()
    assert values["deadlock"] is None
    assert "LINKS GAVE UP" in values["verdict"]


@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
@pytest.mark.parametrize("packet_bytes", [46, 9000])
def test_llr_07_and_cbfc_12_a_link_of_500_metres_carries_its_line_rate(
    packet_bytes: int, flow_control: str
) -> None:
    # There and back 500 m: at 5 ns for each metre.
    result = run(
        load("flat,2,rate=400000,delay=1.25"),
        packet_bytes=packet_bytes,
        flow_control=flow_control,
        warm_up_us=20.0,
        duration_us=120.0,
    )
    line_mbps = 2 * 400_000 * packet_bytes / (packet_bytes + 38)
    assert result.throughput_mbps == pytest.approx(line_mbps, rel=0.005)
    assert result.lost_frames == 0


def test_llr_08_a_link_that_gave_up_begins_anew(tmp_path: Path) -> None:
    first, other = PAIR.hosts
    result = sent(tmp_path, replace(PAIR, hosts=(replace(first, loss=0.4), other)), 300, retry=1)
    assert counted(result)["given_up"] > 1
    assert 0 < result.lost_frames == 300 - int(result.report.flow_packets.sum())
    assert result.report.in_network == 0


def test_llr_09_frames_of_all_sizes_are_repeated(tmp_path: Path) -> None:
    sizes = [64, 65, 9215, 9216]
    sizes += [size + more for size in (128, 256, 512, 1518, 2048, 4096) for more in (-1, 0, 1)]
    replays = 0
    for size in sizes:
        result = sent(tmp_path, PAIR, 60, packet_bytes=size - 18, line_errors=2e-6)
        assert (result.lost_frames, int(result.report.flow_packets.sum())) == (0, 60), size
        replays += result.summary()["retry"]["llr_tx_replay"]
    assert replays > 20


@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
def test_cbfc_10_an_incast_over_links_that_repeat_frames_loses_none(
    flow_control: str, tmp_path: Path
) -> None:
    trace = tmp_path / "incast.csv"
    rows = [f"0,h{host},h1,300000" for host in (2, 3, 4)]
    trace.write_text("\n".join(["time_us,source,destination,bytes", *rows]) + "\n")
    result = run(
        load("flat,4,rate=100000,delay=0.127"),
        "trace",
        trace=str(trace),
        flow_control=flow_control,
        line_errors=3e-6,
    )
    values = result.summary()
    assert (values["packets"], values["lost_frames"], values["in_network"]) == (600, 0, 0)
    assert values["pauses"] > 0
    assert values["retry"]["llr_tx_replay"] > 5
