"""A fabric in the background: one process that holds it until it is told to end.

:func:`start` is called by whoever wants one. It runs ``python -m emulation.supervisor``,
gives it the job (fabric and options) as JSON on standard input, and reads back one JSON
object a line: ``{"step": ...}`` as it goes on, then ``{"ready": true}`` or ``{"error": ...}``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from common.errors import EmulationError, KnotlessError
from emulation.names import REPOSITORY
from emulation.network import EmulatedFabric
from emulation.runtime import OWNER_PATIENCE_S
from routing.plan import Plan
from routing.request import PlanRequest
from topologies.formats import files


def start(plan: Plan, options: Mapping[str, Any], progress: Callable[[str], None]) -> None:
    """Start the fabric of a plan in the background and return when it is ready.

    ``options`` are the keyword arguments of :meth:`EmulatedFabric.of`, but ``progress``.
    Raises :class:`EmulationError` with the reason where it does not start; it then leaves
    nothing behind, as when this call is interrupted.
    """
    job = json.dumps(
        {
            "fabric": files.to_json(plan.fabric),
            "request": plan.settled_request().model_dump(),
            "options": {**options, "host_tags": plan.host_tags()},
        }
    )
    child = subprocess.Popen(
        [sys.executable, "-m", "emulation.supervisor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
        text=True,
        start_new_session=True,
    )
    if child.stdin is None or child.stdout is None:  # pragma: no cover - both are pipes
        raise ValueError("no pipes")
    try:
        with child.stdin as file:
            file.write(job)
        for line in child.stdout:
            said = json.loads(line)
            if "ready" in said:
                return
            if "error" in said:
                child.wait()
                raise EmulationError(said["error"])
            progress(said["step"])
        raise EmulationError(f"the fabric's supervisor has ended ({child.wait()})")
    except BaseException:
        child.terminate()
        try:
            child.wait(OWNER_PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
        raise


def end_at_signal() -> None:
    """From now on TERM and HUP raise SystemExit, so that a fabric ends in good order."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)


def _say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _main() -> int:
    end_at_signal()
    job = json.load(sys.stdin)
    try:
        fabric = EmulatedFabric(
            files.from_json(job["fabric"]),
            PlanRequest.of(**job["request"]),
            progress=lambda step: _say(step=step),
            **job["options"],
        )
        with fabric:
            _say(ready=True)
            # Whoever started us must see the end of our output, and may be gone.
            with fabric.names.log_file("supervisor").open("ab") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            while True:
                signal.pause()
    except KnotlessError as error:
        _say(error=str(error))
        return 2


if __name__ == "__main__":
    sys.exit(_main())
