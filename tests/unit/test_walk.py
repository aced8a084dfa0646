"""tools/walk.py: the files that a command enters."""

from __future__ import annotations

import subprocess
import sys

from tests.support import REPOSITORY


def test_the_files_of_a_command_are_listed_and_counted() -> None:
    words = [sys.executable, str(REPOSITORY / "tools" / "walk.py"), "--files", "plan", "ring,3"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    *files, count = done.stdout.splitlines()
    assert {"cli/commands/plan.py", "routing/engines/dor.py"} <= set(files)
    assert "routing/engines/updown.py" not in files
    assert count == f"{len(files)} files (exit status 0)"
