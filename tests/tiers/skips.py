"""The reasons for which a test may be skipped: any other skip is a failure.

A test that is skipped tests nothing, so each row says where that can happen, and where the test
does run.
"""

from __future__ import annotations

import re

ALLOWED = (
    # file of tests, reason of the skip, and why that is no loss
    ("tests/", "needs root", "the same command as root; CI is root"),
    ("tests/integration/", "needs Open vSwitch", "tools/setup.sh installs it; CI has it"),
    ("tests/integration/", "mn is not installed", "tools/setup.sh installs it; CI has it"),
    ("tests/", "needs openmpi-bin and .*", "where Open MPI is: tools/setup.sh"),
    ("tests/integration/", "needs (cc|go)", "where this compiler is"),
    ("tests/integration/", "the kernel's datapath works here", "where it does not: CI"),
    ("tests/alone/", "needs sockperf", "in test_ping and test_pingpong, which measure the same"),
    (
        "tests/browser/",
        "needs /usr/bin/chromium: .*",
        "where Chromium is: CONTRIBUTING.md",
    ),
    ("tests/kernel/", "needs user-mode-linux: .*", "on x86-64 with Debian; CI is that"),
)
"""(beginning of the test's name, pattern of the reason, where it runs)."""


def is_allowed(test: str, reason: str) -> bool:
    """Return whether a test may be skipped for a reason."""
    reason = reason.removeprefix("Skipped: ")
    return any(
        test.startswith(place) and re.fullmatch(pattern, reason)
        for place, pattern, _where in ALLOWED
    )
