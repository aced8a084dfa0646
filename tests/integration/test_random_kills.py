"""A process of a fabric is killed at a random moment; after ``down`` nothing is left.

``KNOTLESS_KILLS=50 pytest tests/integration/test_random_kills.py`` kills 50 times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from knotless.emulation import processes, state
from knotless.emulation.names import CREDIT_DIRECTORY, Names
from tests.support.fabric_fixtures import FREE_PORTS, Knotless, Remains
from tests.support.held_namespaces import HeldNamespaces
from tests.support.waiting import HANG_S, Limit

KILLS = int(os.environ.get("KNOTLESS_KILLS", "3"))
LONGEST_S = 8.0
"""Longer than the fabric takes to start; a later kill hits it while it runs."""
ROLES = ["supervisor", "emulator", "ovsdb-server", "ovs-vswitchd", "controller", "any"]


def rules() -> list[str]:
    """Return the packet filter's rules outside of all fabrics, without their counters."""
    done = subprocess.run(["iptables", "-S"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def interfaces() -> set[str]:
    return {entry.name for entry in Path("/sys/class/net").iterdir()}


def credit_files(held: HeldNamespaces) -> list[str]:
    """Keep the fabric's namespaces, and return the credit files of all of them."""
    held.add()
    files = (file.name for file in CREDIT_DIRECTORY.glob("*"))
    return [name for name in files if int(name.partition("-")[0]) in held.inodes]


def victim(names: Names, role: str, rng: random.Random) -> int | None:
    """Return a process of this role, or any process of the fabric; None if there is none yet."""
    stored = state.read(names)
    if stored is None:
        return None
    pids = {name: process.pid for name, process in stored.processes.items()}
    pids["supervisor"] = stored.owner.pid
    if role != "any":
        return pids.get(role) or None
    marked = sorted(process.pid for process in processes.marked(names.name))
    return rng.choice(marked) if marked else None


@pytest.mark.seeds(KILLS)
def test_nothing_is_left(seed: int, names: Names, knotless: Knotless, remains: Remains) -> None:
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    role, wait_s = ROLES[seed % len(ROLES)], rng.uniform(0.2, LONGEST_S)
    before = rules(), interfaces()
    command = [str(Path(sys.executable).with_name("knotless")), "up", "ring,4"]
    with HeldNamespaces(names) as held:
        with subprocess.Popen(
            [*command, "--name", names.name, *FREE_PORTS],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as starting:
            moment, limit = Limit(wait_s), Limit()
            while not moment.is_over or (pid := victim(names, role, rng)) is None:
                limit.check(role)
                held.add()
                time.sleep(0.02)
            held.add()
            with_fabric = len(remains(names))
            os.kill(pid, signal.SIGKILL)
            starting.wait(HANG_S)
        down = knotless("down", "--name", names.name)
        assert with_fabric > 0
        assert down.returncode in (0, 1), down.stderr
        assert remains(names) == [], f"{role} killed after {wait_s:.2f} s"
        assert credit_files(held) == [], f"{role} killed after {wait_s:.2f} s"
    assert (rules(), interfaces()) == before
