"""The command under a limit of the operating system."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable

from tests.support import REPOSITORY
from tests.support.waiting import HANG_S

KNOTLESS = str(REPOSITORY / ".venv/bin/knotless")


def limited(what: int, count: int) -> Callable[[], None]:
    """Return a function that sets a limit in a process before it starts its program."""
    return lambda: resource.setrlimit(what, (count, count))


def refused(*words: str, limit: Callable[[], None]) -> str:
    """Run the command under a limit; return its error line."""
    done = subprocess.run(
        [KNOTLESS, *words], preexec_fn=limit, capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 2, done.stderr
    *before, line = done.stderr.splitlines()
    assert line.startswith("knotless: ")
    assert all("Traceback" not in other and "knotless" not in other for other in before)
    return line
