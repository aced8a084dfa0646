"""What is missing to run fabrics: rights, packages, and what the kernel refuses."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from knotless.base.errors import EmulationError
from knotless.emulation import requirements
from knotless.emulation.requirements import PACKAGES, WITHOUT, require_fabrics, why_not

PROGRAM = "from knotless.emulation.requirements import why_not; print(why_not())"
AS_ROOT = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
AS_NOBODY = ["setpriv", "--reuid=65534", "--clear-groups"] if os.geteuid() == 0 else []


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [
        (AS_NOBODY, "needs root: put sudo before the command"),
        (
            [*AS_ROOT, "capsh", "--drop=cap_net_admin,cap_sys_admin", "--shell=/usr/bin/env", "--"],
            "needs CAP_NET_ADMIN, CAP_SYS_ADMIN, which root lacks here: a container needs"
            " --privileged",
        ),
        (
            [*AS_ROOT, "capsh", "--drop=cap_net_admin", "--shell=/usr/bin/env", "--"],
            "needs CAP_NET_ADMIN, which root lacks here: a container needs --privileged",
        ),
    ],
    ids=["nobody", "container", "without one right"],
)
def test_rights_that_are_missing_are_named(prefix: Sequence[str], reason: str) -> None:
    before = Path("/proc/self/mounts").read_text()
    done = subprocess.run(
        [*prefix, sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    # These tests may run where more is missing.
    assert all(part in done.stdout for part in reason.split("CAP_NET_ADMIN"))
    assert len(done.stdout.splitlines()) == 1
    assert Path("/proc/self/mounts").read_text() == before


def _machine(tools: Path, monkeypatch: pytest.MonkeyPatch, trial: str) -> None:
    """Have programs of a machine in the path: ``unshare`` is a script, the others do nothing."""
    for tool in PACKAGES:
        (tools / tool).write_text(f"#!/bin/sh\n{trial if tool == 'unshare' else ''}\n")
        (tools / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(requirements, "_lacking_capabilities", list)


def test_packages_and_what_the_kernel_refuses_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = "echo 'make pairs (module veth)'; echo 'Unknown device type.' >&2; exit 1"
    _machine(tmp_path, monkeypatch, refused)
    assert why_not() == "cannot make pairs (module veth): Unknown device type."
    (tmp_path / "ovs-vswitchd").unlink()
    assert why_not() == "needs packages: apt-get install openvswitch-switch"
    with pytest.raises(EmulationError) as caught:
        require_fabrics()
    assert str(caught.value).endswith(f"openvswitch-switch; {WITHOUT}")


def test_nothing_is_missing_where_all_that_is_tried_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _machine(tmp_path, monkeypatch, "exit 0")
    assert why_not() is None
    (tmp_path / "unshare").unlink()
    assert why_not() == "needs packages: apt-get install util-linux"
