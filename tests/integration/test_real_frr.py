"""Routes computed from configurations are those that real FRR installs: random fabrics."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import REPOSITORY

PACKAGES = ("frr", "libyang2", "libc-ares2", "libsnmp40", "libpci3", "libcap2", "libjson-c5")
CASES = 20


@pytest.mark.long
def test_random_configurations_have_the_routes_of_frr(tmp_path: Path) -> None:
    """Debian's packages of FRR are unpacked, not installed."""
    packages, unpacked = tmp_path / "packages", tmp_path / "frr"
    packages.mkdir()
    subprocess.run(["apt-get", "download", *PACKAGES], cwd=packages, check=True)
    for package in sorted(packages.glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(package), str(unpacked)], check=True)
    words = ["-m", "tests.prove_frr", "--frr", str(unpacked), "--cases", str(CASES)]
    done = subprocess.run(
        [sys.executable, *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    same = int(done.stdout.split("\n")[-2].split(" same")[0])
    assert same >= CASES // 2
