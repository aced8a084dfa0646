"""The commands of docs/check-your-fabric.md on stored archives, from nothing to a verdict.

The archives are those of tests/data/archives: SONiC techsupports with a server on two leaves that
announces a router, FRR on a Clos network, and an InfiniBand cluster with vendors' descriptions.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from docs.generator.shell import Shell
from tests.support import REPOSITORY
from tests.system.test_page_commands import commands

ARCHIVES = REPOSITORY / "tests" / "data" / "archives"
COMMANDS = commands(REPOSITORY / "docs" / "check-your-fabric.md")
CYCLES = {
    "sonic": [
        "leaf2:Ethernet0/3",
        "spine0:Ethernet12/3",
        "leaf3:Ethernet4/3",
        "spine1:Ethernet8/3",
    ],
    "frr": [],
    "infiniband": [
        "A01-P1-IBLEAF-00-00:33/0",
        "B01-P1-IBSPINE-00:2/0",
        "A01-P1-IBLEAF-00-01:34/0",
        "B01-P1-IBSPINE-01:1/0",
    ],
}
"""The cycle in each fabric, as engineers call it."""


@pytest.fixture(scope="module", params=sorted(CYCLES))
def fabric(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that a user has."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "sonic":
        (folder / "my-fabric").mkdir()
        for archive in ARCHIVES.glob("sonic_dump_*.tar.gz"):
            shutil.copy(archive, folder / "my-fabric")
            shutil.copy(archive, folder)
    else:
        (name,) = ARCHIVES.glob(f"{request.param}*.tar.gz")
        # Python 3.12 and 3.13 warn without a filter, which the first releases of 3.11 do not have.
        filtered: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        shutil.unpack_archive(name, folder / "my-fabric", **filtered)
    if request.param == "infiniband":
        for file in (folder / "my-fabric").iterdir():
            shutil.copy(file, folder)
    return folder


def kind(fabric: Path) -> str:
    return next(name for name in CYCLES if fabric.name.startswith(name))


def fits(command: str, fabric: Path) -> bool:
    """Tell whether a command of the page is for this kind of fabric."""
    of_kind = {
        "ibnetdiscover": ["infiniband"],
        "sonic_dump": ["sonic"],
        "--hosts": ["sonic"],
        "--proof": ["frr", "infiniband"],  # the server of the other one has no files
    }
    if "my-configurations" in command:
        return False  # these have routes
    return all(kind(fabric) in kinds for part, kinds in of_kind.items() if part in command)


@pytest.mark.thin(10)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page(command: str, fabric: Path) -> None:
    if not fits(command, fabric):
        assert Shell(fabric).run(command).status == 2
        return
    done = Shell(fabric).run(command)
    assert done.status in (0, 1), done.output[-500:]
    cycle = CYCLES[kind(fabric)]
    if "--hosts" in command or (cycle and kind(fabric) != "sonic"):
        assert done.status == 1
        assert all(name in done.output.replace("\\n", "") for name in cycle)
    elif not cycle and "--failures" not in command and "--json" not in command:
        assert (done.status, "cannot deadlock" in done.output) == (0, True)


def test_a_server_without_files_is_named_and_then_it_is_a_host(tmp_path: Path) -> None:
    """The cycle is one of switches that were read: it is certain, whatever the server does."""
    for archive in ARCHIVES.glob("sonic_dump_*.tar.gz"):
        shutil.copy(archive, tmp_path)
    shell = Shell(tmp_path)
    done = shell.run("knotless check . --json")
    verdict = json.loads(done.output)
    assert (done.status, verdict["acyclic"], verdict["cycle"]) == (1, False, CYCLES["sonic"])
    assert verdict["switches"] == 7
    note = "if gpu-01.example.net are hosts, name them by --hosts"
    assert note in verdict["notes"]
    verdict = json.loads(shell.run("knotless check . --json --hosts 'gpu-*'").output)
    assert (verdict["acyclic"], verdict["cycle"], verdict["missing"]) == (
        False,
        CYCLES["sonic"],
        [],
    )
    assert (verdict["switches"], note in verdict["notes"]) == (6, False)
    shown = shell.run(verdict["witnesses"][0]["command"])
    assert shown.status == 0
    assert "leaf" in shown.output


def test_a_packet_of_the_infiniband_cycle_is_shown(tmp_path: Path) -> None:
    shutil.copy(ARCHIVES / "infiniband.tar.gz", tmp_path)
    shell = Shell(tmp_path)
    verdict = json.loads(shell.run("knotless check infiniband.tar.gz --json").output)
    assert verdict["cycle"] == CYCLES["infiniband"]
    shown = shell.run(verdict["witnesses"][0]["command"])
    assert "A01-P1-IBLEAF-00-00" in shown.output
