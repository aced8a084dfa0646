"""A fabric and ``mn -c``, to run in namespaces of their own only: see test_mininet_cleanup.py."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from knotless.emulation import state
from knotless.emulation.names import Names
from knotless.emulation.network import EmulatedFabric
from knotless.topologies import load


def main() -> None:
    """Print what of a fabric is missing after Mininet's clean-up, and whether its hosts talk."""
    with EmulatedFabric(load("flat,2"), name="kept", openflow_port=0, rest_port=0) as fabric:
        # The user's own: it ends, so the clean-up has done what it does.
        victim = subprocess.Popen(["bash", "-c", "exec -a mininet:other sleep 600"])
        # Any of these commands would take the user's other programs with it, outside of here.
        subprocess.run(["mn", "-c"], check=True, capture_output=True)
        running = state.read(Names("kept"))
        told: dict[str, Any] = {
            "victim": victim.wait(timeout=60),
            "missing": None if running is None else sorted(running.missing()),
            "shells": [fabric.host(name).shell.poll() for name in ("h1", "h2")],
        }
        if told["missing"] or any(told["shells"]):
            print(json.dumps(told), flush=True)  # noqa: T201 - the test reads it
            os._exit(0)  # the rest would wait for the dead, and ends with this namespace
        told |= {
            "shell": fabric.host("h1").cmd("echo alive").strip(),
            "lost": fabric.host("h1").popen("ping -c 1 -W 20 10.0.1.2").wait(timeout=60),
            "controller": bool(fabric.controller_status()),
        }
    print(json.dumps(told))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main()
