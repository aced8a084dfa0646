"""Needs of a machine that has nothing: the Vagrantfile's script, and the archive for classrooms.

Each test runs in a minimal Debian of its own. They take long: packages are fetched, and the Rust
programs are compiled.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import REPOSITORY, minimal_debian

VAGRANTFILE = REPOSITORY / "Vagrantfile"
RELEASE = Path("/etc/os-release")
SET_UP_LIMIT_S = 3600.0
LIMIT_S = 300.0
SWITCHES = "test -x /usr/sbin/ovs-vswitchd"
"""Only root has this folder in its PATH."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(2 * SET_UP_LIMIT_S),
    pytest.mark.skipif(
        minimal_debian.missing() is not None, reason=minimal_debian.missing() or "can be made"
    ),
]


def asked(pattern: str) -> str:
    """Return what a pattern finds in the Vagrantfile."""
    setting = re.search(pattern, VAGRANTFILE.read_text(), re.DOTALL)
    assert setting is not None, pattern
    return setting[1]


@pytest.fixture
def folder_of_root(tmp_path: Path) -> Iterator[Path]:
    """Return a folder that is removed after the test, because a Debian takes a gigabyte."""
    yield tmp_path / "root"
    shutil.rmtree(tmp_path)


def test_the_script_of_the_vagrantfile_sets_up_a_fresh_debian(folder_of_root: Path) -> None:
    suite = asked(r'vm\.box = "debian/([a-z]+)64"')
    folder = asked(r'synced_folder "\.", "([^"]+)", type: "rsync"')
    excluded = re.findall(r'"([^"]+)"', asked(r"rsync__exclude: \[([^\]]*)\]"))
    script = asked(r'provision "shell", privileged: false, inline: "([^"]+)"')
    assert excluded
    fresh = minimal_debian.make(folder_of_root, suite)
    fresh.add_user("vagrant")
    fresh.copy_in(REPOSITORY, folder, "vagrant", without=excluded)
    for name in excluded:
        assert not (fresh.root / folder.lstrip("/") / name).exists()

    done = fresh.run(script, user="vagrant", limit_s=SET_UP_LIMIT_S)
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.splitlines()[-1] == "setup: ready"
    repeated = fresh.run(script, user="vagrant", limit_s=LIMIT_S)
    assert (repeated.returncode, repeated.stdout) == (0, "setup: ready\n")

    check = f"cd {folder} && .venv/bin/knotless flows ring,4 --out /tmp/rules >/dev/null"
    check += f" && .venv/bin/knotless check /tmp/rules --json && which iperf3 mn make && {SWITCHES}"
    checked = fresh.run(check, user="vagrant", limit_s=LIMIT_S)
    assert checked.returncode == 0, checked.stdout[-3000:]
    verdict, _ = json.JSONDecoder().raw_decode(checked.stdout)
    assert (verdict["acyclic"], verdict["undelivered"]) == (True, 0)


def test_the_archive_for_classrooms_installs_without_network(
    folder_of_root: Path, tmp_path: Path
) -> None:
    values = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', RELEASE.read_text(), re.MULTILINE))
    subprocess.run([REPOSITORY / "tools/lab-image.sh", "--out", tmp_path], check=True)
    (archive,) = tmp_path.glob("knotless-labs-*.tar")
    machine = minimal_debian.make(folder_of_root, values["VERSION_CODENAME"])
    machine.add_user("ada")
    archive.rename(machine.root / "home/ada" / archive.name)
    folder = f"/home/ada/{archive.stem}"

    def run(command: str) -> str:
        done = machine.run(command, user="ada", network=False, limit_s=LIMIT_S)
        assert done.returncode == 0, done.stdout[-3000:]
        return done.stdout

    run(f"tar -xf ~/{archive.name} -C ~")
    assert "ready: export PATH=" in run(f"{folder}/install.sh")
    command = f"cd {folder}/knotless && .venv/bin/knotless"
    run(f"{command} flows ring,4 --out /tmp/rules")
    assert json.loads(run(f"{command} check /tmp/rules --json"))["acyclic"] is True
    for lab in (2, 7):  # one of a verdict, one that simulates
        work = f"~/lab-{lab}"
        sheet = f"{folder}/knotless/labs/{lab:02}-*"
        run(f"mkdir {work} && cp -r {sheet}/skeleton/. {sheet}/solution/. {work}")
        assert run(f"{command} lab-check {lab} --work {work}").endswith(": all right\n")
    run(f"which iperf3 mn tcpdump && {SWITCHES}")
    packages = f"{folder}/knotless/.venv/lib/python3*/site-packages"
    run(f"test -x {packages}/knotless/_native/knotless-emulator")
