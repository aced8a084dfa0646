"""Exports on Linux bridges with VLAN filtering: every frame arrives exactly once.

Each fabric has a kernel of its own; see machine.py. The bridges get the exported scripts and
nothing else, their ports come up after that, and real frames are counted where they come out.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from knotless.forwarding.dot1q.files import read_folder
from tests.kernel import machine
from tests.support.dot1q_exports import EXPORTS, export_to, verdicts_of

pytestmark = pytest.mark.skipif(
    not machine.installed(), reason="needs user-mode-linux: Debian has it for x86-64 alone"
)
USUAL = [
    "mesh,4,4 --engine dor --tagging switch",
    "clos,4,hosts=2 --engine updown --tagging host",
    "mesh,3,3 --engine updown --tagging host",
]
PROGRAM = Path(__file__).with_name("bridges.py")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(arguments, marks=[] if arguments in USUAL else pytest.mark.long)
        for arguments in EXPORTS
    ],
)
def test_bridges_deliver_every_unicast_and_every_broadcast_once(
    arguments: str, tmp_path: Path
) -> None:
    exported = export_to(tmp_path / "export", arguments)
    words = ("unshare", "--net", "python3", str(PROGRAM), str(tmp_path / "export"))
    status, printed = machine.run(*words, shared=tmp_path)
    assert status == 0, printed
    counted = json.loads(printed)
    assert (counted["idle_packets"], counted["foreign"], counted["tagged"]) == (0, 0, 0)
    assert (counted["wrong"], counted["examples"]) == (0, [])
    # Of each host: a unicast to each other, one broadcast, and one to an address that is unknown;
    # where hosts tag, each with its tag and without.
    hosts = _hosts(tmp_path)
    ways = 2 if "--tagging host" in arguments else 1
    assert counted["frames"] == ways * (exported["pairs"] + 2 * hosts)
    assert counted["copies"] == counted["due"] == ways * 3 * exported["pairs"]


def _hosts(folder: Path) -> int:
    return len(json.loads((folder / "export" / "fabric.json").read_text())["hosts"])


@pytest.mark.smoke
def test_bridges_with_wrong_tables_behave_as_verified(tmp_path: Path) -> None:
    """A switch without static entries floods: the same unicasts fail here and in the check."""
    folder = tmp_path / "export"
    export_to(folder, "ring,4 --engine prefix")
    script = folder / "s1.bridge"
    lines = script.read_text().splitlines(keepends=True)
    script.write_text("".join(line for line in lines if not line.startswith("fdb ")))
    verdict = verdicts_of(read_folder(folder, ".bridge"))["untagged"]
    words = ("unshare", "--net", "python3", str(PROGRAM), str(folder))
    status, printed = machine.run(*words, shared=tmp_path)
    assert status == 0, printed
    wrong = {text.split(",")[0] for text in json.loads(printed)["examples"]}
    assert wrong == {text.split(":")[0] for text in verdict.problems}
    assert verdict.undelivered == len(wrong) > 0


@pytest.mark.smoke
def test_the_kernel_returns_the_output_of_its_command(tmp_path: Path) -> None:
    status, printed = machine.run("sh", "-c", "id -u; touch /made; exit 3", shared=tmp_path)
    assert (status, printed.splitlines()[0]) == (3, "0")
    assert "Read-only file system" in printed


def test_a_command_without_an_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(machine.NoKernel, match="no end after 5"):
        machine.run("sleep", "1000", shared=tmp_path, deadline_s=5.0)
