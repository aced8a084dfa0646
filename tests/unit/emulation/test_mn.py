"""Mininet is imported without what it does to other modules' logs."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import logging
import {module}
log = logging.getLogger("of.another.module")
assert type(log) is logging.Logger and not log.handlers and log.level == logging.NOTSET
"""


@pytest.mark.parametrize("module", ["knotless.emulation.mn", "knotless.emulation.fabric_topo"])
def test_logs_of_other_modules_stay_as_they_are(module: str) -> None:
    program = PROGRAM.format(module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
