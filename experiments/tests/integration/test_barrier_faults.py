"""Barriers between real processes with lost, duplicate and late messages, delays and crashes.

The processes are on a plain network, a bridge and a namespace for each; the faults happen at the
receiver (``core/messages/programs/src/real/faults.rs``). ``make test-barriers`` runs 10,000
barriers with each fault, ``make test-deep`` fewer.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.tests.support.barrier_jobs import barrier_jobs, rounds_of
from knotless.emulation import namespaces
from knotless.emulation.names import MARK, NETNS_DIRECTORY
from knotless_experiments.workloads.barriers.processes import outcomes, running
from tests.support.waiting import until

BARRIERS = int(os.environ.get("KNOTLESS_BARRIERS", "300"))
"""With each fault, over all algorithms."""
ALGORITHMS = ("shuffle", "tree2", "tree3", "tree4", "concurrent", "unicast")
RETRY_US, PATIENCE_US = 3_000, 3_000_000
LIMIT_S = 60.0 + BARRIERS / 20
SHARE = 0.01
FAULTS: Mapping[str, Mapping[str, float]] = {
    "lost": {"lost": SHARE},
    "twice": {"twice": SHARE},
    "reordered": {"late": SHARE},
    "late processes": {"slow": SHARE},
    "all at once": {"lost": SHARE, "twice": SHARE, "late": SHARE, "slow": SHARE},
}
LATE_US = 2_000
GROUP = "03:00:00:00:00:05"


@contextmanager
def network(processes: int) -> Iterator[list[dict[str, Any]]]:
    """Connect namespaces to a bridge in another one; yield the network of each for its job."""
    secret = secrets.token_hex(3)
    middle, *others = [f"kb-{secret}-{number}" for number in range(processes + 1)]
    macs = [f"02:00:00:00:01:{number:02x}" for number in range(processes)]
    try:
        for name in (middle, *others):
            namespaces.add(name)
        lines = ["link add bridge type bridge mcast_snooping 0", "link set bridge up"]
        for number, (name, mac) in enumerate(zip(others, macs, strict=True)):
            port = f"p{number}"
            peer = f"peer name e0 address {mac} netns {name}"
            lines.append(f"link add {port} type veth {peer}")
            lines.append(f"link set {port} master bridge up")
        namespaces.ip_batch(lines, namespace=middle)
        for name in others:
            namespaces.ip_batch(["link set e0 up"], namespace=name)
        yield [
            {
                "namespace": str(NETNS_DIRECTORY / name),
                "interface": "e0",
                "members": macs,
                "group": GROUP,
            }
            for name in others
        ]
    finally:
        namespaces.remove([middle, *others])


def jobs(
    networks: Sequence[Mapping[str, Any]],
    rounds: Sequence[Mapping[str, Any]],
    faults: Mapping[str, float],
) -> list[dict[str, Any]]:
    return barrier_jobs(
        [[own] for own in networks],
        rounds,
        retry_us=RETRY_US,
        patience_us=PATIENCE_US,
        faults={"late_us": LATE_US, "seed": 1, **faults},
    )


@pytest.mark.smoke
@pytest.mark.thin(2)
@pytest.mark.parametrize("processes", [2, 5, 16])
@pytest.mark.parametrize("fault", FAULTS)
def test_no_process_leaves_a_barrier_before_all_have_entered_under_faults(
    processes: int, fault: str
) -> None:
    each = -(-BARRIERS // len(ALGORITHMS))
    rounds = rounds_of(ALGORITHMS, each)
    environment = {MARK: f"test-{os.getpid()}-faults"}
    with (
        network(processes) as networks,
        running(jobs(networks, rounds, FAULTS[fault]), environment) as members,
    ):
        told = outcomes(members, LIMIT_S)
    assert [outcome["dead"] for outcome in told] == [None] * processes
    for number, name in enumerate(ALGORITHMS):
        entered, left = (
            np.array([outcome["rounds"][number][key] for outcome in told])
            for key in ("entered_ns", "left_ns")
        )
        assert entered.shape == left.shape == (processes, each)
        early = (left.min(axis=0) < entered.max(axis=0)).sum()
        assert early == 0, f"{name}: {early} barriers were left early"
    # The faults must have happened, and lost messages must have been requested again.
    if fault != "late processes":
        assert sum(outcome["faults"] for outcome in told) > 0
    if "lost" in FAULTS[fault]:
        assert sum(outcome["repeated"] for outcome in told) > 0


@pytest.mark.parametrize("algorithm", ["shuffle", "tree3", "concurrent", "unicast"])
def test_a_process_that_dies_among_faults_is_learnt_of_in_time(algorithm: str) -> None:
    processes, victim = 8, 5
    endless = rounds_of([algorithm], 1_000_000)
    environment = {MARK: f"test-{os.getpid()}-death"}
    with (
        network(processes) as networks,
        running(jobs(networks, endless, FAULTS["all at once"]), environment) as members,
    ):
        _until_busy(networks[victim]["namespace"])
        killed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        members[victim].process.kill()
        others = [member for member in members if member.rank != victim]
        told = outcomes(others, LIMIT_S)
    assert [outcome["dead"] for outcome in told] == [victim] * (processes - 1)
    for outcome in told:
        (passed,) = outcome["rounds"]
        assert 0 < len(passed["left_ns"]) < 1_000_000
        # Who asks the dead gives up after the patience and an eighth, and tells the others; who
        # misses that asks them. The rest of the bound is for a busy machine.
        assert outcome["learnt_ns"] - killed_ns < 2 * PATIENCE_US * 1000


def test_an_interruption_ends_processes_in_the_middle_of_a_barrier() -> None:
    environment = {MARK: f"test-{os.getpid()}-interruption"}
    endless = rounds_of(["shuffle"], 1_000_000)
    with (
        network(2) as networks,
        suppress(KeyboardInterrupt),
        running(jobs(networks, endless, FAULTS["late processes"]), environment) as members,
    ):
        _until_busy(networks[0]["namespace"])
        raise KeyboardInterrupt
    assert [member.process.returncode for member in members] == [-signal.SIGKILL] * 2


def _until_busy(namespace: str) -> None:
    """Wait until the process in this namespace has received frames: its barriers are running."""
    until("barriers are passed", lambda: _received(namespace) >= 300)


def _received(namespace: str) -> int:
    with namespaces.inside(namespace):
        lines = Path("/proc/thread-self/net/dev").read_text(encoding="utf-8").splitlines()
    (line,) = [line for line in lines if line.strip().startswith("e0:")]
    return int(line.split()[2])
