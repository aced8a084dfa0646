"""A fabric in the background: a process that runs it until it is asked to end.

:func:`start` runs ``python -m knotless.emulation.supervisor``, writes the job (fabric and options)
as JSON to its standard input, and reads back one JSON object per line: ``{"step": ...}`` as
progress, then ``{"ready": true}`` or ``{"error": ...}``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from knotless.base.errors import EmulationError, KnotlessError
from knotless.base.package import WORKING_DIRECTORY, python_module
from knotless.emulation.network import EmulatedFabric
from knotless.emulation.priority import Part, Priority, prioritise
from knotless.emulation.runtime import OWNER_PATIENCE_S
from knotless.emulation.signals import end_at_signal
from knotless.routing.plan import Plan
from knotless.routing.request import PlanRequest
from knotless.topologies.formats import files


def start(plan: Plan, options: Mapping[str, Any], progress: Callable[[str], None]) -> None:
    """Start the fabric of a plan in the background and return when it is ready.

    ``options`` are the keyword arguments of :meth:`EmulatedFabric.from_plan` except ``progress``.
    Raises :class:`EmulationError` with the reason if it does not start; nothing is then left
    behind, nor if this call is interrupted.
    """
    job = json.dumps(
        {
            "fabric": files.to_json(plan.fabric),
            "request": plan.settled_request().as_settings(),
            "options": {**options, "host_tags": plan.host_tags()},
        }
    )
    child = subprocess.Popen(
        python_module("knotless.emulation.supervisor"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=WORKING_DIRECTORY,
        text=True,
        start_new_session=True,
    )
    if child.stdin is None or child.stdout is None:  # pragma: no cover - both are pipes
        raise ValueError("no pipes")
    try:
        with child.stdin as file:
            file.write(job)
        for line in child.stdout:
            message = json.loads(line)
            if "ready" in message:
                return
            if "error" in message:
                child.wait()
                raise EmulationError(message["error"])
            progress(message["step"])
        raise EmulationError(_ended(child.wait()))
    except BaseException:
        child.stdout.close()
        child.terminate()
        try:
            child.wait(OWNER_PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
        raise


def _say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _ended(status: int) -> str:
    """Describe why a fabric does not start whose process has ended with a status, as of a shell."""
    number = -status if status < 0 else status - 128
    if number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        name = signal.Signals(number).name
        return (
            f"the fabric was taken down while it started (knotless down, or {name} from elsewhere)"
        )
    return f"the fabric's supervisor has ended with status {status}"


def _main() -> int:
    end_at_signal()
    job = json.load(sys.stdin)
    prioritise(Part.HOST, Priority(job["options"].get("priority") or Priority.NORMAL))
    is_ready = False
    try:
        fabric = EmulatedFabric(
            files.from_json(job["fabric"]),
            PlanRequest.from_options(**job["request"]),
            progress=lambda step: _say(step=step),
            **job["options"],
        )
        with fabric:
            _say(ready=True)
            is_ready = True
            # The parent must see the end of our output, and may already be gone.
            with fabric.names.log_file("supervisor").open("ab") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            while True:
                signal.pause()
    except (KnotlessError, OSError, MemoryError) as error:
        _say(error=str(error) or type(error).__name__)
        return 2
    except SystemExit as end:
        if not is_ready and isinstance(end.code, int):
            with suppress(OSError):  # whoever started it may have gone
                _say(error=_ended(end.code))
        raise


if __name__ == "__main__":
    sys.exit(_main())
