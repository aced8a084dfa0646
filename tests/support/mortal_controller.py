"""Our controller, which ends at a change of a switch that a test chooses: ``ryu-manager FILE``.

It is killed there, as by ``kill -9``, at no moment that depends on how busy the machine is. While
there is a file ``knotless.left`` beside its configuration, ``knotless.yaml``, that says how many
changes it may send before.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from knotless.controller import app
from knotless.controller.openflow.session import Session


class KnotlessController(app.KnotlessController):
    """Ryu runs applications that the file itself defines, not those that it imports."""


def _mortal(change: Any, file: Path) -> Any:
    def change_at_once(session: Session, steps: Sequence[Any]) -> Any:
        if file.exists():
            left = int(file.read_text())
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            file.write_text(str(left - 1))
        return change(session, steps)

    return change_at_once


_LEFT = Path(os.environ["KNOTLESS_CONFIG"]).with_suffix(".left")
Session.change_at_once = _mortal(Session.change_at_once, _LEFT)  # type: ignore[method-assign]
