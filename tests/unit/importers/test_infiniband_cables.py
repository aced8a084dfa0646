"""What the cables of an InfiniBand subnet show besides links: loopbacks, errors of discovery."""

from __future__ import annotations

from pathlib import Path

import pytest

from knotless.importers.paths import read_paths
from knotless.routing.plan import make_plan
from knotless.topologies import load
from knotless.verification.imported import verdict_of_imported
from knotless.verification.imported_verdict import ImportedVerdict
from tests.support.infiniband_dumps import Subnet, of_plan

COMPLAINT = "src/query_smp.c:197; umad (DR path 0,1,3 Attr 0x11:0) bad status 110\n"


@pytest.fixture
def subnet() -> Subnet:
    plan = of_plan(make_plan(load("mesh,3,3"), "dor"))
    assert plan is not None
    return plan


def verdict(folder: Path, subnet: Subnet, cables: str) -> ImportedVerdict:
    subnet.write(folder)
    (folder / "ibnetdiscover.txt").write_text(cables)
    return verdict_of_imported(read_paths([folder]))


def looped(subnet: Subnet) -> str:
    """Return the cables with one from port 30 to port 31 of the first switch."""
    first, _, rest = subnet.files()["ibnetdiscover.txt"].partition("[1]\t")
    return f'{first}[30]\t"S-{0x500000:016x}"[31]\t\t# "x" lid 1 4xQDR\n[1]\t{rest}'


def test_a_cable_to_the_switch_itself_changes_no_verdict(subnet: Subnet, tmp_path: Path) -> None:
    plain = verdict(tmp_path / "plain", subnet, subnet.files()["ibnetdiscover.txt"])
    loop = verdict(tmp_path / "loop", subnet, looped(subnet))
    assert plain.acyclic is loop.acyclic is True
    assert plain.pairs == loop.pairs
    (note,) = set(loop.notes) - set(plain.notes)
    assert note.startswith("cables that connect a switch to itself are ignored: S-")


@pytest.mark.parametrize("port", [30, 31])
def test_a_table_that_sends_into_a_loopback_is_not_called_safe(
    subnet: Subnet, port: int, tmp_path: Path
) -> None:
    lid = subnet.lids(0)[0]
    subnet.lfts[0][lid] = port
    judged = verdict(tmp_path, subnet, looped(subnet))
    assert judged.acyclic is None
    assert any(f"by the cable from its port {port} to itself" in gap for gap in judged.missing)


def test_errors_of_discovery_leave_the_verdict_unknown(subnet: Subnet, tmp_path: Path) -> None:
    judged = verdict(tmp_path, subnet, COMPLAINT + subnet.files()["ibnetdiscover.txt"])
    assert judged.acyclic is None
    assert any("what ibnetdiscover could not query: line 1: " in gap for gap in judged.missing)
