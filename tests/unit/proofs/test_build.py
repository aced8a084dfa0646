"""The verifier is built without warnings, and is the same program each time."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support import REPOSITORY
from tests.support.proofs import BUILT, VERIFIER


@BUILT
def test_each_build_gives_the_same_static_program(tmp_path: Path) -> None:
    program = tmp_path / "program"
    done = subprocess.run(
        [REPOSITORY / "tools/verifier.sh", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    assert done.stdout == ""
    assert program.read_bytes() == VERIFIER.read_bytes()
    # A program that needs other libraries names the loader that finds them.
    assert b"ld-linux" not in program.read_bytes()[:4096]
