"""``knotless up``, ``status`` and ``down`` as commands."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from docs.generator.screens import RECORDED
from knotless.emulation import datapath
from knotless.emulation.names import Names
from tests.support.fabric_fixtures import FREE_PORTS, Knotless, Remains
from tests.support.proofs import BUILT
from tests.support.scarcity import limited, refused
from tests.support.stderr_lines import our_lines


def up(knotless: Knotless, names: Names, *more: str) -> subprocess.CompletedProcess[str]:
    return knotless("up", "ring,4", "--name", names.name, *FREE_PORTS, *more)


def status(knotless: Knotless, names: Names) -> tuple[int, dict[str, Any]]:
    done = knotless("status", "--name", names.name, "--json")
    return done.returncode, json.loads(done.stdout)["fabrics"][0]


@pytest.mark.smoke
def test_up_ping_all_down(knotless: Knotless, names: Names, remains: Remains) -> None:
    done = up(knotless, names)
    assert (done.returncode, our_lines(done.stderr)) == (0, [])
    assert "4 switches, 4 hosts" in done.stdout
    code, report = status(knotless, names)
    assert (code, report["phase"], report["problems"]) == (0, "ready", [])
    assert report["controller"]["ready"] is True
    assert set(report["parts"]) == {*("ovsdb-server", "ovs-vswitchd", "controller", "emulator")}
    recorded = json.loads(RECORDED.read_text())["before"]
    assert set(report) == set(recorded), "record it again: docs/generator/record_status.py"
    for part in ("controller", "emulator"):
        assert set(report[part]) == set(recorded[part]), part
    for here in range(1, 5):
        for there in range(1, 5):
            words = [
                *("nsenter", f"--net=/run/netns/{names.host_namespace(f'h{here}')}"),
                *("ping", "-c", "1", "-W", "5", f"10.0.{there}.1"),
            ]
            assert subprocess.run(words, capture_output=True, check=False).returncode == 0
    ping = ("ping", "-c", "1", "-W", "5", "10.0.3.1")
    done = knotless("exec", "--name", names.name, "h1", *ping)
    assert (done.returncode, "1 received" in done.stdout) == (0, True)
    _, report = status(knotless, names)
    assert report["emulator"]["deadlock"] is None
    done = knotless("down", "--name", names.name)
    removed = f"fabric {names.name!r}: removed, with all that belongs to it\n"
    assert (done.returncode, done.stdout) == (0, removed)
    assert remains(names) == []
    done = knotless("down", "--name", names.name)
    assert done.returncode == 0
    assert done.stdout == f"fabric {names.name!r}: not running\n"


@BUILT
@pytest.mark.parametrize(
    "option",
    [("--protection", "none"), ("--protection", "fast-failover"), ("--source-check", "arp")],
)
def test_rules_that_are_read_back_are_proven(
    knotless: Knotless, names: Names, tmp_path: Path, option: tuple[str, str]
) -> None:
    done = up(knotless, names, "--engine", "updown", *option, "--proven")
    assert (done.returncode, our_lines(done.stderr)) == (0, [])
    try:
        live = tmp_path / "live"
        done = knotless("check", "--live", "--name", names.name, "--proof", str(live))
        assert done.returncode == 0, done.stderr
        for file in (names.directory / "proof", live):
            done = knotless("verify", f"{file}.rules", str(file))
            assert (done.returncode, done.stdout.split(" under")[0]) == (
                0,
                "accepted: the fabric cannot deadlock",
            )
    finally:
        assert knotless("down", "--name", names.name).returncode == 0


@BUILT
def test_a_fabric_without_a_proof_is_not_ready(knotless: Knotless, names: Names) -> None:
    done = up(knotless, names, "--engine", "updown", "--flow-control", "none", "--proven")
    try:
        assert (done.returncode, done.stdout) == (1, "")
        reason = (
            "proofs do not cover no flow control, with which full buffers lose frames; they cover"
            " pause, pfc and credits"
        )
        assert our_lines(done.stderr) == [
            f"knotless: {names.name} runs, but is not ready: {reason}"
        ]
        code, report = status(knotless, names)
        problem = f"--proven was given, and its rules are not proven: {reason}"
        assert (code, report["problems"]) == (1, [problem])
    finally:
        assert knotless("down", "--name", names.name).returncode == 0


def test_a_second_up_is_one_line(knotless: Knotless, names: Names) -> None:
    assert up(knotless, names).returncode == 0
    done = up(knotless, names)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "already running" in done.stderr
    code, report = status(knotless, names)
    assert (code, report["phase"], report["problems"]) == (0, "ready", [])


@pytest.mark.smoke
def test_up_that_fails_leaves_nothing(knotless: Knotless, names: Names, remains: Remains) -> None:
    done = up(knotless, names, "--engine", "no-such-engine")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no-such-engine" in done.stderr
    assert remains(names) == []


@pytest.mark.smoke
def test_root_is_required(knotless: Knotless, names: Names) -> None:
    for words in (("up", "ring,4"), ("lab", "ring,4"), ("down",), ("status",)):
        done = knotless(*words, "--name", names.name, user=65534, group=65534)
        assert done.returncode == 2, words
        assert done.stderr.startswith("knotless: running fabrics needs root: put sudo before")
        assert done.stderr.count("\n") == 1


def test_two_ups_at_once_make_one_fabric(knotless: Knotless, names: Names) -> None:
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda _: up(knotless, names), range(3)))
    assert sorted(one.returncode for one in done) == [0, 2, 2]
    code, report = status(knotless, names)
    assert (code, report["phase"], report["problems"]) == (0, "ready", [])


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (limited(resource.RLIMIT_NOFILE, 8), "takes up to 288 open files, ulimit -n allows 8"),
        (limited(resource.RLIMIT_AS, 600_000 << 10), "a process, ulimit -v allows 0.6 GiB"),
        (limited(resource.RLIMIT_AS, 150_000 << 10), "needs 256 MiB, ulimit -v allows 146 MiB"),
    ],
)
def test_a_fabric_beyond_a_limit_is_refused(limit: Callable[[], None], message: str) -> None:
    assert message in refused("up", "ring,4", "--name", "scarce", limit=limit)


@pytest.mark.skipif(datapath.why_no_kernel() is None, reason="the kernel's datapath works here")
def test_the_kernels_datapath_is_refused_in_one_line_where_it_does_not_work(
    names: Names, knotless: Knotless, remains: Remains
) -> None:
    words = ("--engine", "updown", "--datapath", "kernel", "--name", names.name)
    done = knotless("up", "ring,4", *words)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--datapath kernel: " in done.stderr
    assert remains(names) == []
