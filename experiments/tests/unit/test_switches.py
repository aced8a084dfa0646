"""``--switch`` of experiments, and the switch settings that both clocks run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from knotless.base.errors import KnotlessError
from knotless.base.flow_control import FlowControl
from knotless.base.switch_settings import SwitchFile
from knotless.cli.main import main
from knotless.simulation import simulate
from knotless_experiments.framework.experiment import Common, ExperimentError
from knotless_experiments.framework.routed import Routed
from knotless_experiments.framework.switches import check, with_switches
from knotless_experiments.studies.agreement import switches
from knotless_experiments.studies.agreement.cases import Case, cases
from knotless_experiments.studies.agreement.switches import Inside, inside_simulated
from knotless_experiments.studies.deadlock.matrix import Case as DeadlockCase

LOSSY = """
lossless: [3]
pools: {shared: {side: ingress, bytes: 60000}}
ingress: [{priorities: [0], pool: shared, alpha: 0.5}]
"""
WINDOW_US = 2e6


def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: str, *asked: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the rows of an experiment in the simulator, and the parameters that it stores."""
    file, out = tmp_path / "switch.yaml", tmp_path / "results"
    tmp_path.mkdir(exist_ok=True)
    file.write_text(settings)
    with pytest.raises(SystemExit) as ended:
        main(
            [
                *("run", *asked, "--on", "simulation", "--switch", str(file)),
                *("--out", str(out), "--json"),
            ]
        )
    assert ended.value.code == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    (folder,) = out.iterdir()
    parameters: dict[str, Any] = json.loads((folder / "run.json").read_text())["parameters"]
    return rows, parameters


def test_a_ring_of_lossy_priorities_loses_frames_and_does_not_freeze(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ("deadlock", "--routes", "cyclic", "--flow-control", "pfc", "--duration", "0.5")
    rows, parameters = run(capsys, tmp_path, LOSSY, *asked)
    assert [(row["deadlock"], row["lost_frames"] > 0) for row in rows] == [(False, True)]
    assert parameters["switch_settings"]["lossless"] == [3]
    assert parameters["switch_settings"]["pools"]["shared"]["bytes"] == 60_000


def test_a_watchdog_of_the_file_keeps_the_ring_moving(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ("deadlock", "--routes", "cyclic", "--flow-control", "pfc", "--duration", "2")
    (row,), _ = run(capsys, tmp_path, "watchdog: {detection_us: 10000}", *asked)
    (frozen,), _ = run(capsys, tmp_path / "other", "lossless: [0]", *asked)
    assert row["lost_frames"] > 0
    assert sum(row["flows_mbps"]) > sum(frozen["flows_mbps"]) == 0


def test_traffic_runs_with_the_settings_under_pfc(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = ("traffic", "--quick", "--part", "open-loop", "--duration", "1")
    (row,), parameters = run(
        capsys, tmp_path, "egress: [{priorities: [0], limit_bytes: 3000}]", *asked
    )
    assert row["lost_frames"] > 0
    assert parameters["switch_settings"] == {"egress": [{"priorities": [0], "limit_bytes": 3000}]}


@pytest.mark.parametrize(
    ("settings", "asked", "message"),
    [
        (
            "lossless: [3]",
            ["deadlock", "--quick", "--flow-control", "pause"],
            "--switch: ring,4, flow control pause: switch settings: s1:1: lossless: PAUSE",
        ),
        (
            "switches: {s9: {}}",
            ["deadlock", "--flow-control", "pfc"],
            'there is no switch "s9"',
        ),
        ("lossless: [9]", ["traffic", "--quick"], "switch.yaml: lossless"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(
    settings: str,
    asked: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "switch.yaml"
    file.write_text(settings)
    with pytest.raises(SystemExit) as ended:
        main(["run", *asked, "--on", "simulation", "--switch", str(file), "--out", str(tmp_path)])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_a_running_fabric_starts_with_the_settings_and_the_flow_control_of_its_case() -> None:
    settings = SwitchFile.model_validate({"lossless": [3]})
    case = DeadlockCase("cyclic", FlowControl.PFC, "udp", switches=settings)
    fabric = case.routed.running()
    assert fabric.switch_settings == settings.for_model()
    assert fabric.request.flow_control == FlowControl.PFC
    assert DeadlockCase("cyclic", FlowControl.PFC, "udp").routed.running().switch_settings is None


def test_settings_that_a_fabric_cannot_have_are_refused() -> None:
    settings = SwitchFile.model_validate({"pause_frames": True})
    routed = with_switches(Routed("ring,4"), settings, FlowControl.PFC)
    check([(routed, FlowControl.PFC)])
    with pytest.raises(ExperimentError, match="pause_frames: credits need none"):
        check([(routed, FlowControl.CREDITS)])


def inside_cases() -> list[Case]:
    return cases(Common(), "switches")


def test_each_kind_of_settings_has_a_case() -> None:
    names = [case.settings for case in inside_cases()]
    assert set(names) == {
        *(switches.ALPHA, switches.HEADROOM_POOL, switches.DWRR),
        *(switches.STRICT, switches.LOSSY, switches.MARKING, switches.PAUSE_FRAMES),
        *(switches.WATCHDOG, switches.LATE_WATCHDOG, switches.ALERT),
    }
    with pytest.raises(KnotlessError, match="no case is left"):
        cases(Common(quick=True), "switches")


@pytest.mark.parametrize("case", inside_cases(), ids=str)
def test_the_settings_show_in_what_is_compared(case: Case) -> None:
    result = simulate(case.scenario.lasting(WINDOW_US))
    inside, plain = inside_simulated(result), case.scenario.switching.switch_settings
    assert plain is not None
    # Every flow delivers, or there is a deadlock: else the emulator's senders do not start.
    assert result.knot or min(result.report.flow_packets.tolist()) >= 20
    assert (inside.marked > 0) == (case.settings == switches.MARKING)
    assert (inside.pause_frames > 0) == (case.settings == switches.PAUSE_FRAMES)
    assert bool(inside.storms) == plain.has_watchdog
    drops = (switches.LOSSY, switches.WATCHDOG, switches.LATE_WATCHDOG)
    assert (result.lost_frames > 0) == (case.settings in drops)
    assert bool(inside.pools) == bool(plain.pools)
    headroom = sum(peaks[1] for peaks in inside.pools.values())
    assert headroom > 0 or not plain.pools
    knots = (switches.ALPHA, switches.PAUSE_FRAMES, switches.LATE_WATCHDOG, switches.ALERT)
    assert bool(result.knot) == (case.pattern == "shift:2" and case.settings in knots)


def test_marked_frames_agree_within_three_standard_deviations() -> None:
    # 100 of 1,000 frames: the difference of two has a standard deviation of 13.4.
    first = Inside(100, 1000)
    assert first.marks_agree(Inside(139, 1000))
    assert not first.marks_agree(Inside(145, 1000))
    assert Inside().marks_agree(Inside())
    assert not Inside(0, 10).marks_agree(Inside(10, 10))


def test_pools_that_differ_are_named() -> None:
    one = Inside(pools={("s1", "p"): (10, 5), ("s2", "p"): (10, 5)})
    other = Inside(pools={("s1", "p"): (8, 5), ("s2", "p"): (10, 5)})
    assert list(one.pools_apart(other)) == ["s1 p +2, headroom +0"]
    assert not list(one.pools_apart(one))
