"""Every reader: its fabric can be drawn with the cycle in red, and damage does no harm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from knotless.cli.main import main
from knotless.importers.file_kinds import FoundFile, file_kinds
from knotless.importers.paths import read_paths
from knotless.results.plots import RED
from knotless.verification.imported import verdict_of_imported
from tests import fuzz_readers
from tests.support.classical_deadlocks import routing_loop
from tests.support.readable_fabrics import WRITERS, in_vrf


@pytest.mark.parametrize("form", WRITERS)
def test_fabrics_are_drawn_with_the_cycle_in_red(form: str, tmp_path: Path) -> None:
    folder = WRITERS[form](tmp_path / "fabric")
    cycle = verdict_of_imported(read_paths([folder])).cycle
    assert len(cycle) > 1
    drawing = tmp_path / "cycle.svg"
    done = CliRunner(mix_stderr=False).invoke(
        main, ["check", str(folder), "--draw", str(drawing)], prog_name="knotless"
    )
    assert (done.exit_code, done.stderr) == (1, "")
    # An arrow is a line and a head.
    red = re.findall(rf"<path[^>]*{RED}", drawing.read_text())
    assert len(red) >= len(cycle)


def test_every_reader_is_used() -> None:
    """The fabrics that are drawn and damaged have files of all kinds."""
    used = {
        file.kind.name
        for base in fuzz_readers.bases()
        for file in base.files
        if isinstance(file, FoundFile)
    }
    assert used == set(file_kinds())


def test_damaged_files() -> None:
    """``make fuzz-readers`` does this a million times."""
    ended = list(fuzz_readers.run_cases(0, 300, 1, 1))
    assert [done for done in ended if done.wrong] == []
    assert sum(1 for done in ended if not done.complaint) > 50
    assert sum(1 for done in ended if done.complaint) > 20


def test_a_vrf_has_the_verdict_of_its_routes(tmp_path: Path) -> None:
    plain = verdict_of_imported(read_paths([routing_loop().write(tmp_path / "plain")]))
    folder = WRITERS["vrf"](tmp_path / "vrf")
    verdict = verdict_of_imported(read_paths([folder]))
    assert [name.replace("-Vrf1", "") for name in verdict.cycle] == plain.cycle
    assert (verdict.pairs, verdict.undelivered) == (plain.pairs, plain.undelivered)
    assert any("VRFs of leaf0 are shown as switches" in note for note in verdict.notes)
    net = in_vrf(routing_loop(), "Vrf1")
    net.more["leaf0"]["INTERFACE"]["Ethernet0"] = {"vrf_name": "Vrf2"}
    net.write(tmp_path / "leak")
    assert verdict_of_imported(read_paths([tmp_path / "leak"])).acyclic is None
