"""The controller does without Ryu and Eventlet, whatever its runtime is made of."""

from __future__ import annotations

import subprocess
import sys

from tests.support.waiting import HANG_S

PROGRAM = """
import sys
from unittest.mock import MagicMock

sys.modules["knotless.controller.runtime"] = MagicMock()
import knotless.controller.process

used = {name.partition(".")[0] for name in sys.modules}
print(sorted(used & {"ryu", "eventlet", "greenlet", "oslo_config"}))
print("knotless.controller.updates.scheduler" in sys.modules)
"""


def test_its_modules_import_neither_ryu_nor_eventlet() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.stdout == "[]\nTrue\n", done.stderr
