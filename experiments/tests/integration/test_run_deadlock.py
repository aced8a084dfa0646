"""The deadlock experiment on an emulated fabric: routes that deadlock, and routes that cannot."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from knotless.emulation import state
from knotless.emulation.names import RUN_DIRECTORY, names_of
from knotless.results import results
from tests.support.waiting import HANG_S, until

KNOTLESS = [sys.executable, "-m", "knotless"]
Quick = Callable[[str], dict[str, Any]]
RING = ["s1:2/0", "s2:2/0", "s3:2/0", "s4:2/0"]


def printed_by(*args: str, out: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*KNOTLESS, "run", "deadlock", *args, "--json", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Quick:
    """Return what ``run deadlock --quick --json`` prints for some routes, which it runs once."""

    @cache
    def output(routes: str) -> dict[str, Any]:
        return printed_by("--quick", "--routes", routes, out=tmp_path_factory.mktemp(routes))

    return output


def row(quick: Quick, routes: str, flow_control: str) -> dict[str, Any]:
    (chosen,) = (row for row in quick(routes)["rows"] if row["flow_control"] == flow_control)
    return dict(chosen)


@pytest.mark.smoke
def test_cyclic_routes_freeze_in_the_predicted_knot(quick: Quick) -> None:
    frozen = row(quick, "cyclic", "pause")
    assert frozen["deadlock"]
    assert frozen["cycle"] == frozen["predicted_cycle"] == RING
    assert frozen["flows_mbps"] == [0, 0, 0, 0]
    assert frozen["valid"], frozen["problems"]
    assert frozen["lost_frames"] == 0


def test_tcp_freezes_as_well(tmp_path: Path) -> None:
    case = ("--routes", "cyclic", "--flow-control", "pause", "--protocol", "tcp")
    (frozen,) = printed_by(*case, out=tmp_path)["rows"]
    assert frozen["deadlock"]
    assert frozen["cycle"] == frozen["predicted_cycle"] == RING
    assert frozen["flows_mbps"] == [0, 0, 0, 0]


def test_acyclic_routes_run_without_loss(quick: Quick) -> None:
    ran = row(quick, "acyclic", "pause")
    assert not ran["deadlock"]
    assert ran["cycle"] == ran["predicted_cycle"] == []
    assert ran["valid"], ran["problems"]
    assert ran["delivered_frames"] <= ran["sent_frames"]
    assert ran["lost_frames"] == ran["iperf3_lost"] == 0
    # Two flows share each link that is full: what one program sends late, the other gains.
    assert sum(ran["flows_mbps"]) == pytest.approx(4 * ran["theory_mbps"], rel=0.005)
    assert ran["flows_mbps"] == pytest.approx([ran["theory_mbps"]] * 4, rel=0.05)


def test_virtual_channels_do_not_freeze(quick: Quick) -> None:
    ran = row(quick, "dateline", "pfc")
    assert not ran["deadlock"]
    assert ran["predicted_cycle"] == []
    assert min(ran["flows_mbps"]) > 0.5
    assert ran["valid"], ran["problems"]
    assert ran["lost_frames"] == 0


@pytest.mark.smoke
def test_without_flow_control_frames_are_lost_and_nothing_freezes(quick: Quick) -> None:
    lossy = row(quick, "cyclic", "none")
    assert not lossy["deadlock"]
    assert lossy["lost_frames"] > 1000
    assert min(lossy["flows_mbps"]) > 0.5


@pytest.mark.smoke
def test_the_results_are_whole(quick: Quick) -> None:
    printed = quick("cyclic")
    directory = Path(printed["report"]).parent
    run, samples = results.read(directory)
    assert run["status"] == printed["status"] == "complete"
    assert run["rows"] == printed["rows"]
    assert {sample["row"] for sample in samples} == {0, 1}
    assert "exactly the knot" in Path(printed["report"]).read_text()


def fabrics_of(pid: int) -> set[str]:
    """Return the names of the running fabrics that this process owns."""
    states = [state.read(names_of(path.name)) for path in RUN_DIRECTORY.glob("run-*")]
    return {stored.name for stored in states if stored is not None and stored.owner.pid == pid}


def test_ctrl_c_keeps_what_was_measured_and_takes_the_fabric_down(tmp_path: Path) -> None:
    args = ["run", "deadlock", "--routes", "cyclic", "--flow-control", "pause", "--repeats", "50"]
    process = subprocess.Popen(
        [*KNOTLESS, *args, "--protocol", "udp", "--out", str(tmp_path)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    names: set[str] = set()

    def measured() -> bool:
        names.update(fabrics_of(process.pid))
        files = tmp_path.glob("*/run.json")
        return process.poll() is not None or any(json.loads(f.read_text())["rows"] for f in files)

    until("a row", measured)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 130, errors
    (directory,) = tmp_path.iterdir()
    run, _ = results.read(directory)
    assert (run["status"], run["reason"]) == ("incomplete", "interrupted")
    assert run["rows"]
    assert "This run is incomplete" in (directory / "report.html").read_text()
    assert names
    for name in names:
        assert not state.existing_namespaces(names_of(name))
