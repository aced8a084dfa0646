"""The programs of the page about writing an experiment run on a fabric as they stand there."""

from __future__ import annotations

import runpy
from pathlib import Path

from docs.generator.shell import BLOCK
from knotless.emulation.names import Names
from tests.support import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorials" / "writing-an-experiment.md"


def test_the_programs_of_the_page_measure_a_pattern(names: Names, tmp_path: Path) -> None:
    for _, options, body in BLOCK.findall(PAGE.read_text()):
        if options.startswith(" file="):
            (tmp_path / options.removeprefix(" file=")).write_text(body)
    measure = runpy.run_path(str(tmp_path / "measure.py"))
    times_ms = measure["main"]("mesh,2,2", "complement", "updown", name=names.name)
    # 20 messages of 1400 bytes, one after another, on links of the fabric's rate.
    rate_mbps = measure["load"]("mesh,2,2").links[0].rate_mbps
    line_ms = 20 * 1400 * 8 / rate_mbps / 1000
    assert len(times_ms) == 5
    assert all(time_ms > line_ms for time_ms in times_ms)
