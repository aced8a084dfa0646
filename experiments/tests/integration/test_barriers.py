"""Barriers between real processes in the hosts of an emulated fabric."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.tests.support.barrier_jobs import barrier_jobs, rounds_of
from knotless.emulation.names import Names, names_of
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.ovs_dump import live_multicast, read_live
from knotless.routing.plan import make_plan
from knotless.routing.request import PlanRequest
from knotless.topologies import load
from knotless.topologies.numbering import group_mac, mac_text
from knotless.verification.check import check
from knotless_experiments.workloads.barriers.processes import BINARY, outcomes, running
from tests.support.waiting import HANG_S

SPEC = "mesh,2,2"
GROUP = 3
RETRY_US, PATIENCE_US = 50_000, 3_000_000
LIMIT_S = 100.0
ALGORITHMS = ("shuffle", "tree2", "tree3", "concurrent", "unicast")


@pytest.fixture(scope="module")
def labs() -> Iterator[list[EmulatedFabric]]:
    """Run two fabrics; hosts of the same name are one host with two interfaces."""
    started = []
    try:
        for number in range(2):
            lab = EmulatedFabric(
                load(SPEC),
                PlanRequest.from_options(multicast={GROUP: ["all"]}),
                name=f"test-{os.getpid()}-b{number}",
                openflow_port=0,
                rest_port=0,
            )
            lab.start()
            started.append(lab)
        yield started
    finally:
        for lab in started:
            lab.stop()


def jobs(labs: list[EmulatedFabric], rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    hosts = labs[0].fabric.hosts
    networks = [
        [
            {
                "namespace": f"/run/netns/{lab.names.host_namespace(host.name)}",
                "interface": lab.host(host.name).defaultIntf().name,
                "members": [each.mac for each in hosts],
                "group": mac_text(group_mac(GROUP)),
            }
            for lab in labs
        ]
        for host in hosts
    ]
    return barrier_jobs(networks, rounds, retry_us=RETRY_US, patience_us=PATIENCE_US)


@pytest.mark.parametrize("networks", [1, 2])
def test_no_process_leaves_before_all_have_entered(
    labs: list[EmulatedFabric], networks: int
) -> None:
    used = labs[:networks]
    for lab in used:
        lab.daemon.reset()
    with running(jobs(used, rounds_of(ALGORITHMS, 20)), used[0].program_environment()) as processes:
        told = outcomes(processes, LIMIT_S)
    assert [outcome["dead"] for outcome in told] == [None] * 4
    for number in range(len(ALGORITHMS)):
        for barrier in range(20):
            entered = [outcome["rounds"][number]["entered_ns"][barrier] for outcome in told]
            left = [outcome["rounds"][number]["left_ns"][barrier] for outcome in told]
            assert max(entered) <= min(left)
    for lab in used:
        assert lab.daemon.counters()["lost_frames"] == 0
        moved = [channel for channel in lab.daemon.counters()["channels"] if channel["tx_frames"]]
        assert moved, f"{lab.name} carried nothing"


def test_a_killed_process_is_learnt_of_by_all_others(labs: list[EmulatedFabric]) -> None:
    endless = rounds_of(["tree2"], 1_000_000)
    with running(jobs(labs[:1], endless), labs[0].program_environment()) as processes:
        lab = labs[0]
        lab.daemon.reset()
        sent = iter(lambda: lab.daemon.counters()["channels"], None)
        in_the_middle = itertools.islice(sent, 10_000)
        assert any(sum(channel["tx_frames"] for channel in now) > 100 for now in in_the_middle)
        processes[2].process.kill()
        others = [process for process in processes if process.rank != 2]
        told = outcomes(others, LIMIT_S)
    assert [outcome["dead"] for outcome in told] == [2, 2, 2]
    bound_ns = 1000 * PATIENCE_US * 2
    for outcome in told:
        (passed,) = outcome["rounds"]
        assert len(passed["left_ns"]) < 1_000_000
        # It entered the barrier that it never left, and did not wait longer than the limit.
        assert outcome["learnt_ns"] - passed["entered_ns"][-1] < bound_ns


def test_the_switches_rules_are_proven_with_the_group(labs: list[EmulatedFabric]) -> None:
    names: Names = names_of(labs[0].name)
    fabric, rules, _ = read_live(names.name)
    groups = live_multicast(fabric, names.name)
    assert groups == make_plan(fabric, "updown", multicast={GROUP: ["all"]}).multicast
    verdict = check(fabric, rules, multicast=groups, flow_control="pause")
    assert (verdict.multicasts, verdict.ok) == (4 * 3, True)


def test_the_experiment_prints_its_rows(knotless: Any, tmp_path: Path) -> None:
    what = ["--fabric", "ring,3", "--algorithms", "shuffle,tree2", "--quick"]
    done = knotless("run", "barrier", "--on", "emulation", *what, "--json", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["algorithm"] for row in rows] == ["shuffle", "tree2"]
    for row in rows:
        assert (row["hosts"], row["networks"], row["on"]) == (3, 1, "emulation")
        assert 0 < row["min_us"] <= row["mean_us"] <= row["p99_us"]
        assert row["predicted_us"] > 0
        assert row["valid"], row["problems"]


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ("no json", "job: "),
        ('{"rank": 0, "port": 7, "networks": [], "work": {"barrier": {}}}', "missing field"),
        (
            '{"rank": 0, "port": 7, "networks": [],'
            ' "work": {"logp": {"times": 1, "burst": 1, "bytes": 1}}}',
            "every network must have each process",
        ),
        (
            '{"rank": 0, "port": 7, "networks": [{"namespace": null, "interface": "nosuch0",'
            ' "members": ["02:00:00:00:00:01"], "group": "03:00:00:00:00:01"}],'
            ' "work": {"barrier": {"rounds": [], "computing_us": 0, "retry_us": 1,'
            ' "patience_us": 8}}}',
            "nosuch0",
        ),
    ],
)
def test_an_invalid_job_is_refused_in_one_line(job: str, message: str) -> None:
    done = subprocess.run(
        [BINARY], input=job + "\n", capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("knotless-barrier: ")
    assert message in line
