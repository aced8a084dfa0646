"""Record what ``knotless status`` knows of a running fabric, for the page of screens.

As root, in a checkout::

    .venv/bin/python -m docs.generator.record_status

It starts ``ring,4`` as ``default``, cuts a link, waits until routes avoid it, and ends the fabric.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from docs.generator.screens import LINK, RECORDED, SPEC

LIMIT_S = 60


def main() -> None:
    """Write :data:`docs.generator.screens.RECORDED`."""
    _knotless("up", SPEC)
    try:
        before = after = _status()
        _knotless("cut", LINK)
        limit = time.monotonic() + LIMIT_S
        while not any("routes: repaired" in note for note in after["notes"]):
            if time.monotonic() > limit:
                raise TimeoutError(f"{LINK} is not avoided: {after['notes']}")
            time.sleep(0.2)
            after = _status()
    finally:
        _knotless("down")
    RECORDED.write_text(json.dumps({"before": before, "after": after}, indent=1) + "\n")


def _status() -> dict[str, Any]:
    (fabric,) = json.loads(_knotless("status", "--name", "default", "--json"))["fabrics"]
    return dict(fabric)


def _knotless(*words: str) -> str:
    program = (sys.executable, "-m", "knotless", *words)
    done = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise ChildProcessError(f"knotless {' '.join(words)}: exit status {done.returncode}")
    return done.stdout


if __name__ == "__main__":
    main()
