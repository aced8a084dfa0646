"""A fabric outlives the clean-up of Mininet, which ends processes by name.

``mn -c`` runs here in namespaces of processes, mounts and networks of its own, with another folder
for temporary files. Elsewhere it would end programs, and remove files, that are not ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.support import REPOSITORY
from tests.support.waiting import HANG_S

ALONE = ("unshare", "--pid", "--mount", "--net", "--ipc", "--fork", "--kill-child", "--mount-proc")
PREPARE = """
set -e
repository=$1
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/home /run/repository
mount --bind "$repository" /run/repository
mount -t tmpfs tmpfs /tmp
mkdir -p "$repository" # it may have been there
mount --bind /run/repository "$repository"
cd "$repository"
ip link set lo up
export HOME=/run/home
exec "${@:2}"
"""


@pytest.mark.skipif(shutil.which("mn") is None, reason="mn is not installed")
def test_a_fabric_outlives_the_cleanup_of_mininet() -> None:
    program = [sys.executable, "-m", "tests.support.mn_cleanup"]
    done = subprocess.run(
        [*ALONE, "bash", "-c", PREPARE, "bash", str(REPOSITORY), *program],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["victim"], told["missing"], told["shells"]) == (-9, [], [None, None])
    assert (told["shell"], told["lost"], told["controller"]) == ("alive", 0, True)
