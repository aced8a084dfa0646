"""The reasons for which a test may be skipped: any other skip is a failure.

A test that is skipped tests nothing, so each row says where that can happen, and where the test
does run.
"""

from __future__ import annotations

import re

ALLOWED = (
    # folder or file, reason of the skip, and why that is no loss
    ("tests/", "(running fabrics )?needs (root|CAP_).*", "the same command as root; CI is root"),
    ("tests/system/", "no mount namespaces can be made here", "as root or a user with them: CI"),
    ("tests/", "needs openmpi-bin and .*", "where Open MPI is: tools/setup.sh"),
    ("tests/integration/", "needs Open vSwitch", "tools/setup.sh installs it; CI has it"),
    ("tests/integration/", "mn is not installed", "tools/setup.sh installs it; CI has it"),
    ("tests/unit/proofs/", "needs ocamlopt: .*", "tools/setup.sh --tests installs it; CI has it"),
    ("tests/unit/proofs/", "needs coqc", "tools/setup.sh --deep installs it; CI has it"),
    ("tests/integration/", "needs (cc|go)", "where this compiler is"),
    ("tests/integration/", "the kernel's datapath works here", "where it does not: CI"),
    (
        "experiments/tests/alone/",
        "needs sockperf",
        "test_ping and test_pingpong measure it",
    ),
    ("tests/browser/", "needs /usr/bin/chromium: .*", "by night, for which it is installed"),
    ("tests/kernel/", "needs user-mode-linux: .*", "on x86-64 with Debian; CI is that"),
    ("tests/system/test_web_bundle.py", "needs npm", "where Node.js is; sums are always checked"),
    ("tests/system/test_web_bundle.py", "npm ci has failed: .*", "where npm has its registry"),
    ("tests/system/test_fresh_machine.py", ".*", "by night, as root, where debootstrap is"),
    ("tests/unit/test_setup.py", "vagrant is not installed", "where Vagrant is"),
    ("tests/unit/topologies/test_mn.py", "needs Debian's Mininet", "tools/setup.sh installs it"),
    ("experiments/tests/unit/", "a checkout without history", "in every clone with its history"),
    ("tests/unit/emulation/", "this kernel has no slices of threads", "on Linux 6.12 and newer"),
    ("tests/seeded/test_seeds.py", "none is known", "as soon as a failure is known"),
)
"""(a part of the test's name, pattern of the reason, where it runs)."""


def is_allowed(test: str, reason: str) -> bool:
    """Return whether a test may be skipped for a reason."""
    reason = reason.removeprefix("Skipped: ")
    return any(
        place in test and re.fullmatch(pattern, reason) for place, pattern, _where in ALLOWED
    )
