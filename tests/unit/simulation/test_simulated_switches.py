"""Simulations with settings of switches: shared buffers, lossy priorities, schedulers and ECN."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from knotless.base.errors import SimulationError
from knotless.base.switch_settings import SwitchFile
from knotless.cli.commands.simulate import command
from knotless.cli.main import main
from knotless.routing.plan import make_plan
from knotless.simulation import Load, Result, Scenario, simulate
from knotless.simulation.result import by_channel, by_pool
from knotless.topologies import load
from tests.support import REPOSITORY

CYCLIC: dict[str, Any] = {"engine": "dor", "vcs": 1, "select": "low-port"}
EXAMPLE = re.search(
    r"```yaml\n(.*?)```", (REPOSITORY / "docs" / "switch-settings.md").read_text(), re.DOTALL
)
SHARED = {
    "pools": {"shared": {"side": "ingress", "bytes": 60_000}},
    "ingress": [{"priorities": [0], "pool": "shared", "alpha": 0.5, "reserved_bytes": 1522}],
}


def run(
    spec: str,
    pattern: str,
    settings: dict[str, Any] | None,
    *,
    flow_control: str = "pfc",
    duration_us: float = 2_000_000,
    **plan: Any,
) -> Result:
    switches = None if settings is None else SwitchFile.model_validate(settings)
    scenario = Scenario(
        make_plan(load(spec), flow_control=flow_control, **plan),
        pattern,
        Load(arrivals="poisson", load=0.9) if pattern == "uniform" else Load(),
        flow_control=flow_control,
        duration_us=duration_us,
        switch_settings=switches,
    )
    return simulate(scenario)


def test_a_file_that_says_nothing_changes_no_counter() -> None:
    without, empty = run("torus,4,4", "uniform", None), run("torus,4,4", "uniform", {})
    ignored = {"wall_s", "setup_s", "packet_hops_per_s", "result_sha256"}
    assert {key: value for key, value in without.summary().items() if key not in ignored} == {
        key: value for key, value in empty.summary().items() if key not in ignored
    }
    assert by_channel(without) == by_channel(empty)
    assert by_pool(empty) == []
    assert empty.summary()["pool_peaks"] == {}


def test_nothing_is_lost_with_a_shared_pool_and_its_peaks_are_reported() -> None:
    first, second = (run("torus,4,4", "uniform", SHARED) for _ in range(2))
    summary = first.summary()
    assert summary["lost_frames"] == 0
    assert summary["pauses"] > 0
    peak = summary["pool_peaks"]["shared"]
    assert 0 < peak["peak_bytes"] <= 60_000
    assert len(by_pool(first)) == 16
    assert max(row["peak_bytes"] for row in by_pool(first)) == peak["peak_bytes"]
    assert peak["switch"] in {switch.name for switch in load("torus,4,4").switches}
    assert first.result_sha256 == second.result_sha256
    assert first.result_sha256 != run("torus,4,4", "uniform", None).result_sha256


def test_a_ring_with_shared_pools_freezes_and_its_knot_is_dated() -> None:
    summary = run("ring,4", "shift:2", SHARED, duration_us=5_000_000, **CYCLIC).summary()
    assert summary["deadlock"]
    assert summary["knot"] == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert 0 < summary["knot_since_us"] < 5_000_000
    assert summary["lost_frames"] == 0


def test_a_lossy_priority_loses_frames_and_never_freezes() -> None:
    lossy = {**SHARED, "lossless": [3]}
    summary = run("ring,4", "shift:2", lossy, duration_us=5_000_000, **CYCLIC).summary()
    assert not summary["deadlock"]
    assert summary["pauses"] == 0
    assert summary["drops"]["ingress"] > 0
    assert summary["lost_frames"] == sum(summary["drops"].values())


def test_lossless_frames_beyond_an_egress_pool_count_as_lost() -> None:
    egress = {
        "pools": {"out": {"side": "egress", "bytes": 5000}},
        "egress": [{"priorities": [0], "pool": "out"}],
    }
    summary = run("torus,4,4", "uniform", egress).summary()
    assert summary["drops"]["lossless_queue"] > 0
    assert summary["lost_frames"] == summary["drops"]["lossless_queue"]
    assert summary["pool_peaks"]["out"]["peak_bytes"] <= 5000


def test_frames_are_marked_where_queues_are_long() -> None:
    marking = {"ecn": [{"priorities": [0], "kmin_bytes": 3000, "kmax_bytes": 9000}]}
    result = run("torus,4,4", "uniform", marking)
    marked = {row["channel"]: row["marked_frames"] for row in by_channel(result)}
    assert result.summary()["marked_frames"] == sum(marked.values()) > 0
    assert all(count == 0 for channel, count in marked.items() if ":" not in channel)
    other = {"ecn": [{"priorities": [5], "kmin_bytes": 3000, "kmax_bytes": 9000}]}
    assert run("torus,4,4", "uniform", other).summary()["marked_frames"] == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"switches": {"s99": {}}}, 'switches: there is no switch "s99"'),
        ({"ports": {"77": {}}}, 'ports: no switch has a port "77"'),
        ({"switches": {"s2": {"ports": {"9": {}}}}}, 'switches: s2: ports: there is no port "9"'),
        ({"egress": [{"priorities": [1]}]}, "s1:1: egress: priority 1: give a pool or limit_bytes"),
    ],
)
def test_settings_that_do_not_fit_the_fabric_are_one_line(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SimulationError) as raised:
        run("torus,4,4", "uniform", settings)
    assert str(raised.value) == f"switch settings: {message}"


def test_settings_need_pfc_where_priorities_differ() -> None:
    with pytest.raises(SimulationError, match="use PFC"):
        run("torus,4,4", "uniform", {"lossless": [3]}, flow_control="pause")
    with pytest.raises(SimulationError, match="hubs have no buffers"):
        run("hub,4", "shift:1", SHARED, flow_control="pause")


FRAMES = {"pause_frames": {"quanta": 1000, "response_us": 50}}


def test_pause_frames_lose_nothing_and_take_their_place_on_the_wire() -> None:
    without, framed = (run("torus,4,4", "uniform", given) for given in ({}, FRAMES))
    assert without.summary()["pause_frames"] == 0
    summary = framed.summary()
    assert summary["lost_frames"] == 0
    # Each pause is a frame, and so are its end and its repetitions.
    assert summary["pause_frames"] > summary["pauses"] > 0
    assert framed.result_sha256 == run("torus,4,4", "uniform", FRAMES).result_sha256
    headroom = framed.channels.headroom_bytes - without.channels.headroom_bytes
    entering = framed.channels.enters >= 0
    # A frame of 1,522 bytes and one of 64, with 20 bytes of gap each, and 50 us at 10 Mbit/s.
    assert set(headroom[entering].tolist()) == {1542 + 84 + 63}
    assert not headroom[~entering].any()


def test_a_knot_is_found_though_its_pauses_are_repeated_for_ever() -> None:
    settings = SwitchFile.model_validate(
        {**FRAMES, "watchdog": {"detection_us": 1e4, "action": "alert"}}
    )
    scenario = Scenario(
        make_plan(load("ring,4"), flow_control="pfc", **CYCLIC),
        "shift:2",
        Load(arrivals="acknowledged", message_bytes=1_000_000, messages=1),
        flow_control="pfc",
        switch_settings=settings,
    )
    endless = simulate(scenario).summary()
    assert endless["knot"] == ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]
    assert endless["lost_frames"] == 0
    assert endless["storms"]["alerts"] == endless["storms"]["detected"] > 0
    ended = simulate(scenario.lasting(5e6)).summary()
    assert (ended["knot"], ended["knot_since_us"]) == (endless["knot"], endless["knot_since_us"])
    assert ended["pause_frames"] > endless["pause_frames"]


RING = ["ring,4", "--engine", "dor", "--vcs", "1", "--select", "low-port", "--json"]
RING += ["--pattern", "shift:2", "--flow-control", "pfc", "--duration", "300000"]


@pytest.mark.parametrize("action", ["drop", "drop-egress", "forward"])
def test_a_watchdog_of_the_file_is_that_of_the_option(tmp_path: Path, action: str) -> None:
    path = tmp_path / "switch.yaml"
    path.write_text(f"watchdog: {{detection_us: 20000, restoration_us: 30000, action: {action}}}\n")
    option = ["--watchdog", "20000", "--watchdog-restore", "30000", "--watchdog-action", action]
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    from_file, from_option, without = (
        json.loads(CliRunner().invoke(command, [*RING, *more]).output)
        for more in (["--switch", str(path)], ["--switch", str(empty), *option], [])
    )
    assert from_file["result_sha256"] == from_option["result_sha256"]
    assert from_file["packet_hops"] > without["packet_hops"], "the watchdog resolves the deadlock"


def test_watchdogs_of_the_file_differ_by_port_and_priority(tmp_path: Path) -> None:
    watchdog = "{detection_us: 20000, polling_us: 50000, priorities: [PRIORITY], action: ACTION}"
    path = tmp_path / "switch.yaml"

    def found(priority: int, action: str) -> dict[str, Any]:
        own = watchdog.replace("PRIORITY", str(priority)).replace("ACTION", action)
        path.write_text(f"ports: {{'2': {{watchdog: {own}}}}}\n")
        asked = [*RING, "--switch", str(path)]
        counted: dict[str, Any] = json.loads(CliRunner().invoke(command, asked).output)
        return counted

    assert found(3, "drop")["storms"] == {"detected": 0, "restored": 0, "alerts": 0}
    reported, dropped = found(0, "alert"), found(0, "drop")
    assert reported["storms"] == {"detected": 4, "restored": 0, "alerts": 4}
    assert (reported["deadlock"], reported["lost_frames"]) == (True, 0)
    assert dropped["storms"]["detected"] >= 4
    assert dropped["storms"]["alerts"] == 0
    assert dropped["drops"]["watchdog"] > 0


@pytest.mark.parametrize(
    ("restored_by", "detected", "restored"),
    [("unpaused", 1, 0), ("frames", 1, 0), ("frames-while-enabled", 8, 8)],
)
def test_a_storm_that_goes_on_ends_again_and_again_where_no_frames_are_counted(
    tmp_path: Path, restored_by: str, detected: int, restored: int
) -> None:
    path = tmp_path / "switch.yaml"
    times = "detection_us: 20000, restoration_us: 20000, polling_us: 20000"
    path.write_text(f"watchdog: {{{times}, priorities: [0], restored_by: {restored_by}}}\n")
    asked = ["ring,4", "--engine", "updown", "--flow-control", "pfc", "--pattern", "shift:1"]
    asked += ["--load", "0.5", "--duration", "500000", "--switch", str(path), "--json"]
    done = CliRunner().invoke(command, [*asked, "--pause-host", "h1@1000", "--host-pause", "1"])
    storms = json.loads(done.output)["storms"]
    assert (storms["detected"], storms["restored"]) == (detected, restored)


def test_a_watchdog_is_in_the_file_or_an_option(tmp_path: Path) -> None:
    path = tmp_path / "switch.yaml"
    path.write_text("watchdog: {detection_us: 9}")
    done = CliRunner().invoke(main, ["simulate", *RING, "--switch", str(path), "--watchdog", "9"])
    assert done.exit_code == 2
    assert "watchdog: the switch settings have one: leave out --watchdog" in done.output


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    assert EXAMPLE is not None
    path, out = tmp_path / "switch.yaml", tmp_path / "all.json"
    path.write_text(EXAMPLE.group(1))
    asked = ["torus,4,4", "--flow-control", "pfc", "--pattern", "uniform", "--load", "0.9"]
    asked += ["--switch", str(path)]
    done = CliRunner().invoke(command, [*asked, "--json", "--out", str(out)])
    assert done.exit_code == 0, done.output
    values = json.loads(done.output)
    assert values["marked_frames"] > 0
    assert values["lost_frames"] == 0
    assert values["pool_peaks"]["shared"]["peak_bytes"] > 0
    assert len(json.loads(out.read_text())["by_pool"]) == 16
    text = CliRunner().invoke(command, asked).output
    assert re.search("fullest pool .* bytes of shared at s", text)
    assert "fullest pool" not in CliRunner().invoke(command, asked[:-2]).output


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "switch.yaml: cannot be read"), ("lossless: [9]\n", "lossless")],
)
def test_a_bad_file_is_one_line_and_exit_2(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    message: str,
) -> None:
    path = tmp_path / "switch.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "ring,4", "--pattern", "shift:1", "--switch", str(path)])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
